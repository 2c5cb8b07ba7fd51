"""What a run promises, held against its own report: the devnet's exit status.

Pure, so that anyone can hold a report against it again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median_low

from ledger.contracts.verdicts import Fault
from protocol.ids import Address, Epoch, Units
from syntience.devnet.judgements import (
    DISPUTABLE,
    FAKED,
    FALSE_VOTING,
    OVERPAYING,
    fake_convicted,
    innocent_acquitted,
    liars_fined,
    overpayment_struck,
)
from syntience.devnet.picture import Verdict
from syntience.devnet.promise import Promise
from syntience.devnet.trials import Posting, Trial
from syntience.report import HONEST, DevnetReport, MinerSummary
from syntience.table import show_tokens

PROVABLE: Mapping[str, Fault] = {
    "equivocator": Fault.EQUIVOCATION,
    "wrong-data": Fault.WRONG_DATA,
    "wrong-spec": Fault.WRONG_SPEC,
    "local-out-of-line": Fault.LOCAL_STATE,
}
"""Cheats that a hunter proves to a contract."""
USELESS = frozenset({*PROVABLE, "copier", "noise", "late", "zero", "stale"})
"""Cheats that must earn next to nothing. The others do real work: less of it, or louder."""
_MOST_SHARE = 20
"""A useless cheat earns at most one part in so many of the median honest reward."""
_LEAST_SMALLER = 100
_FP32_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the promises need besides the report.

    Attributes:
        settled: epochs with a final settlement.
        unclaimed: how many honest miners were granted more than they claimed.
        epoch_losses: held-out loss at the start and at the end of each epoch.
        verdicts: all proven faults.
        hunters: how many took part.
        gained: by how much the hunters' tokens grew, all together.
        penalised: stake that honest validators lost.
        parameters: of the model.
        kills: how many processes were killed on purpose.
        missed: who was not back at work in the round after its kill.
        overpaying: the settlements that overpayers posted.
        disputes: whether honest hunters open games.
        trials: all games about miners' work.
        false_accusers: the hunters that open games about honest work.
    """

    settled: frozenset[Epoch]
    unclaimed: int
    epoch_losses: Sequence[float]
    verdicts: Sequence[Verdict]
    hunters: int
    gained: Units
    penalised: Units
    parameters: int
    kills: int = 0
    missed: Sequence[str] = ()
    overpaying: Sequence[Posting] = ()
    disputes: bool = False
    trials: Sequence[Trial] = ()
    false_accusers: Sequence[Address] = ()


def hold_promises(report: DevnetReport, evidence: Evidence) -> tuple[Promise, ...]:
    """Every promise of the run, kept or broken."""
    found = [
        _settled(report, evidence),
        _paid(report, evidence),
        _nothing_lost(report, evidence),
        _learns(evidence),
        _agrees(report),
        _accounts(report),
        _small(report, evidence),
    ]
    if evidence.kills:
        found.append(_came_back(evidence))
    cheats = [miner for miner in report.miners if miner.behaviour != HONEST]
    if any(miner.behaviour in USELESS for miner in cheats):
        found.append(_useless(report.miners))
    if evidence.hunters:
        found += [_convicted(miner, evidence) for miner in cheats if miner.behaviour in PROVABLE]
    proven = PROVABLE.keys() | (FAKED if evidence.disputes else frozenset())
    if evidence.hunters and any(miner.behaviour in proven for miner in cheats):
        found.append(_bounty(report, evidence))
    return (*found, *_judged(report, evidence))


def _judged(report: DevnetReport, evidence: Evidence) -> list[Promise]:
    """What rogue validators and games come to."""
    found = []
    if any(validator.behaviour == OVERPAYING for validator in report.validators):
        found.append(overpayment_struck(evidence.overpaying, last=Epoch(report.run.epochs)))
    if evidence.disputes and evidence.hunters:
        found += [
            fake_convicted(miner.behaviour, miner.address, evidence.trials)
            for miner in report.miners
            if miner.behaviour in FAKED
        ]
    found += [innocent_acquitted(each, evidence.trials) for each in evidence.false_accusers]
    liars = [each.address for each in report.validators if each.behaviour == FALSE_VOTING]
    if liars:
        found.append(liars_fined(frozenset(liars), evidence.trials))
    return found


def _settled(report: DevnetReport, evidence: Evidence) -> Promise:
    count, wanted = len(evidence.settled), report.run.epochs
    return Promise(holds=count == wanted, text=f"{count} of {wanted} epochs settled")


def _paid(report: DevnetReport, evidence: Evidence) -> Promise:
    honest = [miner for miner in report.miners if miner.behaviour == HONEST]
    paid = sum(miner.claimed > 0 for miner in honest)
    late = f", {evidence.unclaimed} of them not all of it" if evidence.unclaimed else ""
    return Promise(
        holds=paid == len(honest) and not evidence.unclaimed,
        text=f"{paid} of {len(honest)} honest miners claimed a reward{late}",
    )


def _nothing_lost(report: DevnetReport, evidence: Evidence) -> Promise:
    """Nobody is slashed but those against whom a fault was proven."""
    proven = PROVABLE.keys() | (DISPUTABLE if evidence.disputes else frozenset())
    lost = [miner for miner in report.miners if miner.slashed and miner.behaviour not in proven]
    if lost or evidence.penalised:
        return Promise(
            holds=False,
            text=f"{len(lost)} miners without a provable fault lost stake, the validators {show_tokens(evidence.penalised)} SYN",
        )
    return Promise(holds=True, text="nobody without a proven fault lost anything")


def _learns(evidence: Evidence) -> Promise:
    losses = evidence.epoch_losses
    falls = all(after < before for before, after in pairwise(losses))
    shown = " → ".join("?" if math.isnan(loss) else f"{loss:.3f}" for loss in losses)
    total = losses[-1] / losses[0] - 1
    also = "" if math.isnan(total) else f" ({total:+.1%})"
    return Promise(holds=falls, text=f"held-out loss by epoch {shown}{also}")


def _agrees(report: DevnetReport) -> Promise:
    whole = sum(root.nodes_agreeing == root.nodes_total for root in report.roots)
    missing = report.run.rounds - sum(root.round <= report.run.rounds for root in report.roots)
    also = f", {missing} rounds without a final root" if missing else ""
    return Promise(
        holds=whole == len(report.roots) and missing <= 0,
        text=f"state roots the same on every honest node in {whole} of {len(report.roots)} rounds{also}",
    )


def _accounts(report: DevnetReport) -> Promise:
    books = report.accounting
    difference = books.token_balance - books.accounted
    return Promise(
        holds=difference == 0,
        text="the contracts hold what they owe, to the unit"
        if difference == 0
        else f"the contracts hold {difference:+d} units more than they owe",
    )


def _small(report: DevnetReport, evidence: Evidence) -> Promise:
    size = report.payload_bytes.median
    ratio = evidence.parameters * _FP32_BYTES / size if size else 0.0
    return Promise(
        holds=ratio >= _LEAST_SMALLER,
        text=f"a payload of {size:,} bytes is {ratio:.0f} times smaller than the model",
    )


def _came_back(evidence: Evidence) -> Promise:
    missed = ", ".join(evidence.missed)
    return Promise(
        holds=not evidence.missed,
        text=f"{evidence.kills} processes were killed, and each was back at work in the next round"
        if not evidence.missed
        else f"{evidence.kills} processes were killed; not back at work: {missed}",
    )


def _useless(miners: Sequence[MinerSummary]) -> Promise:
    honest = median_low([miner.earned for miner in miners if miner.behaviour == HONEST])
    cheats = [miner for miner in miners if miner.behaviour in USELESS]
    most = max(cheats, key=lambda miner: miner.earned)
    share = most.earned / honest if honest else math.inf if most.earned else 0.0
    return Promise(
        holds=_MOST_SHARE * most.earned <= honest,
        text=f"cheats earned at most {share:.1%} of an honest miner's reward ({most.behaviour})"
        if most.earned
        else "cheats earned nothing",
    )


def _convicted(miner: MinerSummary, evidence: Evidence) -> Promise:
    kind = PROVABLE[miner.behaviour]
    proven = [
        verdict
        for verdict in evidence.verdicts
        if (verdict.miner, verdict.kind) == (miner.address, kind)
    ]
    return Promise(
        holds=bool(proven) and miner.slashed > 0,
        text=f"{miner.behaviour} {_when(miner.address, proven)}",
    )


def _when(miner: Address, proven: Sequence[Verdict]) -> str:
    if not proven:
        return f"({miner}) was not convicted"
    return f"convicted and slashed in round {min(verdict.round for verdict in proven)}"


def _bounty(report: DevnetReport, evidence: Evidence) -> Promise:
    bounty = sum(hunter.bounty for hunter in report.hunters)
    arrived = bounty > 0 and evidence.gained == bounty
    return Promise(
        holds=arrived, text="the hunters' bounties " + ("arrived" if arrived else "did not arrive")
    )
