"""Why a miner has the score that it has in an epoch, factor by factor, and what would have raised it.

Read from a validator's reports alone. For each factor the score is computed once more as if that factor alone had been at its best;
the one that would have added most comes first. Where several are zero, no one of them alone helps, and they come in the order in
which they have to be mended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite

from protocol.ids import Address, Epoch, Round
from scoring.advice import FACTOR_ADVICE, FAULT_ADVICE
from scoring.checks import Fault
from scoring.computation import coin_deviation
from scoring.rating import loss_rating
from scoring.report import EpochReport, PeerReport, RoundReport, value_of
from scoring.rules import Rules
from scoring.weights import peer_score

_ORDER = ("barred", "evaluations", "presence", "improvement", "rating", "computation", "standing")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFault:
    """A fault of a round, and what to do about it."""

    round: Round
    fault: str
    advice: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What the score would be if one factor alone were at its best."""

    factor: str
    score: float
    advice: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What an epoch came to on chain. Amount in base units."""

    consensus_weight: int
    amount: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A miner in an epoch, as one validator sees it.

    Attributes:
        rounds: of the epoch that were reported and not void.
        accepted, missed: of these.
        evaluations: of the miner in the epoch; `won` of them gained more on its own data than on unknown data.
        mean_gain, mean_own_gain: mean LossScore on D_rand and on its own batch; None if never measured.
        mu, margin, computation: the average of signs, the luck taken off it, and what counts.
        improvement: the average of signs of "improves the loss on unknown data".
        ordinal, null_ordinal, rating: its rating, doing nothing's, and what counts.
        strikes, standing, presence: see `scoring.book`.
        barred: the fault that bars it from pay, or "".
        score, share: and the part of its square in the sum of all squares.
        weight: u16, as committed; None before.
        settled: None before the settlement, or if the chain was not asked.
        changes: by what they would add, the most first.
    """

    miner: Address
    validator: Address
    epoch: Epoch
    rounds: tuple[Round, ...]
    accepted: tuple[Round, ...]
    missed: tuple[Round, ...]
    faults: tuple[FoundFault, ...]
    evaluations: int
    won: int
    mean_gain: float | None
    mean_own_gain: float | None
    mu: float
    margin: float
    computation: float
    improvement: float
    ordinal: float
    null_ordinal: float
    rating: float
    strikes: int
    standing: float
    presence: float
    barred: str
    score: float
    share: float
    weight: int | None
    settled: Settled | None
    changes: tuple[Change, ...]


def explain(
    miner: Address,
    reports: Sequence[RoundReport],
    *,
    before: RoundReport | None = None,
    weights: EpochReport | None = None,
    settled: Settled | None = None,
) -> Explanation:
    """Explains a miner's score.

    Args:
        miner: known to the newest report's book.
        reports: one validator's, of one epoch, ascending; at least one.
        before: its last one of the epoch before, if there is one: it tells which signs are this epoch's.
        weights: of the epoch.
        settled: what the chain says.
    """
    last, rules = reports[-1], reports[-1].rules
    peer = last.peer(miner)
    if peer is None:
        raise ValueError(f"no report knows {miner}")
    known, null = peer.record(), last.null.rating()
    counted = [report for report in reports if not report.void]
    accepted = [report.round for report in counted if miner in report.accepted]
    measured = [
        loss.evaluation() for report in reports for loss in report.losses if loss.miner == miner
    ]
    gains = [each.rand_score for each in measured if isfinite(each.rand_score)]
    own_gains = [each.own_score for each in measured if isfinite(each.own_score)]
    signs = _signs(miner, reports, before, rules)
    factors = _factors(peer, last, rules)
    margin = (
        rules.mu_margin * coin_deviation(known.computation.count, gamma=rules.mu_gamma)
        if known.computation.count
        else 0.0
    )
    return Explanation(
        miner=miner,
        validator=last.validator,
        epoch=last.epoch,
        rounds=tuple(report.round for report in counted),
        accepted=tuple(accepted),
        missed=tuple(report.round for report in counted if report.round not in accepted),
        faults=_faults(miner, reports),
        evaluations=len(signs),
        won=sum(signs),
        mean_gain=_mean(gains),
        mean_own_gain=_mean(own_gains),
        mu=known.computation.mean,
        margin=margin,
        computation=factors["computation"],
        improvement=known.improvement.mean,
        ordinal=known.rating.ordinal,
        null_ordinal=null.ordinal,
        rating=factors["rating"],
        strikes=known.strikes,
        standing=factors["standing"],
        presence=factors["presence"],
        barred=peer.barred,
        score=value_of(peer.score),
        share=_share(miner, last),
        weight=None if weights is None else weights.weight_of(miner),
        settled=settled,
        changes=_changes(peer, last, signs, rules),
    )


def _factors(peer: PeerReport, last: RoundReport, rules: Rules) -> dict[str, float]:
    """The factors without the gates that would pay nothing at all."""
    known = peer.record()
    return {
        "computation": known.computation.above_luck(gamma=rules.mu_gamma, z=rules.mu_margin),
        "rating": loss_rating(known.rating, last.null.rating(), rules),
        "standing": rules.phi**known.strikes,
        "presence": known.accepted / last.rounds if last.rounds else 0.0,
    }


def _changes(
    peer: PeerReport, last: RoundReport, signs: Sequence[bool], rules: Rules
) -> tuple[Change, ...]:
    now = _factors(peer, last, rules)
    known = peer.record()
    average = replace(known.computation, mean=_all_won(known.computation.mean, signs, rules))
    best: Mapping[str, float] = {
        "computation": average.above_luck(gamma=rules.mu_gamma, z=rules.mu_margin),
        "rating": max(_factors(each, last, rules)["rating"] for each in last.peers),
        "standing": 1.0,
        "presence": 1.0,
    }
    short = {name: now[name] == 0 for name in now}
    short |= {"barred": bool(peer.barred), "improvement": known.improvement.mean <= 0}
    short["evaluations"] = not known.computation.count
    if short["evaluations"]:
        short |= {"improvement": False, "rating": False, "computation": False}

    def without(name: str) -> float:
        open_gates = not any(short[gate] for gate in ("barred", "improvement") if gate != name)
        return peer_score(*{**now, name: best.get(name, 1.0)}.values()) if open_gates else 0.0

    score = value_of(peer.score)
    found = [
        Change(factor=name, score=without(name), advice=FACTOR_ADVICE[name])
        for name in _ORDER
        if short[name] or without(name) > score
    ]
    # Sorting is stable: equal ones stay in the order in which they have to be mended.
    return tuple(sorted(found, key=lambda change: -change.score))


def _signs(
    miner: Address, reports: Sequence[RoundReport], before: RoundReport | None, rules: Rules
) -> list[bool]:
    """Whether each of its evaluations in these rounds was won, a barred round's lost one included."""
    earlier = before.peer(miner) if before is not None else None
    mean, count = (
        (value_of(earlier.computation.mean), earlier.computation.count) if earlier else (0.0, 0)
    )
    signs = []
    for report in reports:
        peer = report.peer(miner)
        if peer is None:
            continue
        if before is None and report is reports[0] and peer.computation.count > 1:
            mean, count = value_of(peer.computation.mean), peer.computation.count
            signs += [
                each.evaluation().own_beats_random for each in report.losses if each.miner == miner
            ]
            continue
        after = value_of(peer.computation.mean)
        if peer.computation.count > count:
            signs.append(after > rules.mu_gamma * mean)
        mean, count = after, peer.computation.count
    return signs


def _all_won(mean: float, signs: Sequence[bool], rules: Rules) -> float:
    """The average if every one of its newest signs had been positive."""
    missing = sum(
        2 * (1 - rules.mu_gamma) * rules.mu_gamma**later
        for later, won in enumerate(reversed(signs))
        if not won
    )
    return mean + missing


def _faults(miner: Address, reports: Sequence[RoundReport]) -> tuple[FoundFault, ...]:
    """What was seen round by round, and what the book itself found: a payload that was handed in before."""
    found, barred = [], ""
    for report in reports:
        named = [name for each in report.faults if each.miner == miner for name in each.faults]
        peer = report.peer(miner)
        if peer is not None and peer.barred not in ("", barred, *named):
            named.append(peer.barred)
        barred = peer.barred if peer is not None else barred
        found += [
            FoundFault(round=report.round, fault=name, advice=FAULT_ADVICE[Fault(name)])
            for name in named
        ]
    return tuple(found)


def _share(miner: Address, last: RoundReport) -> float:
    squares = {peer.miner: value_of(peer.score) ** 2 for peer in last.peers}
    total = sum(squares.values())
    return squares[miner] / total if 0 < total < inf else 0.0


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
