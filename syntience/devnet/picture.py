"""Where a run stands, read from its chain alone: who earned, claimed and lost what."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ledger.contracts.verdicts import Fault
from ledger.event_types import (
    BountyMoved,
    BountyPaid,
    Claimed,
    Convicted,
    EpochVoided,
    Excluded,
    Slashed,
    SlotVacated,
)
from ledger.events import EventReader
from node.chain import RunChain
from node.settlements import Settlements
from protocol.ids import Address, Epoch, Hash32, Round, Units
from scoring.consensus import agreement, consensus_weights, weights_by_address
from syntience.devnet.trials import Posting, Trial, postings, trials


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A fault that a hunter proved on chain. `bounty`: what was paid for it so far."""

    kind: Fault
    round: Round
    miner: Address
    hunter: Address
    bounty: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A run as of a block. Amounts by account; whoever has none is missing.

    Attributes:
        settled: final epochs.
        void: epochs that ended without a settlement.
        earned: what the settlements granted, all epochs together.
        slashed: stake taken.
        weights: consensus weights of the newest settled epoch.
        agreement: the share of each validator's weights that the consensus kept, same epoch.
        gone: accounts without a slot, excluded ones apart.
        postings: every settlement that was posted.
        trials: every game about a miner's work.
    """

    block: int
    time: int
    round: Round
    epoch: Epoch
    final_roots: Mapping[Round, Hash32]
    settled: frozenset[Epoch]
    void: frozenset[Epoch]
    earned: Mapping[Address, Units]
    claimed: Mapping[Address, Units]
    slashed: Mapping[Address, Units]
    weights: Mapping[Address, int]
    agreement: Mapping[Address, float]
    verdicts: tuple[Verdict, ...]
    excluded: frozenset[Address]
    gone: frozenset[Address]
    postings: tuple[Posting, ...] = ()
    trials: tuple[Trial, ...] = ()


async def take_picture(chain: RunChain, settlements: Settlements) -> Picture:
    """Reads it from what `chain` has polled."""
    events = chain.events
    settled = sorted(chain.settled())
    weights, agreements = await _consensus(chain, settled[-1]) if settled else ({}, {})
    excluded = frozenset(event.account for event in events.events(Excluded))
    return Picture(
        block=chain.block,
        time=chain.time,
        round=chain.round,
        epoch=chain.epoch,
        final_roots=chain.final_roots(),
        settled=frozenset(settled),
        void=frozenset(event.epoch for event in events.events(EpochVoided)),
        earned=await _earned(settlements, settled),
        claimed=_sums((event.account, event.amount) for event in events.events(Claimed)),
        slashed=_sums((event.account, event.taken) for event in events.events(Slashed)),
        weights=weights,
        agreement=agreements,
        verdicts=_verdicts(events),
        excluded=excluded,
        gone=frozenset(event.account for event in events.events(SlotVacated)) - excluded,
        postings=await postings(events, settlements),
        trials=trials(events),
    )


def _verdicts(events: EventReader) -> tuple[Verdict, ...]:
    """The verdicts; a bounty goes to whoever committed first, and is paid when nobody earlier can come any more."""
    told: list[Convicted | BountyMoved] = [*events.events(Convicted), *events.events(BountyMoved)]
    told.sort(key=lambda event: (event.block, event.log_index))
    winners = {(event.offender, event.round): event.hunter for event in told}
    paid = {
        (event.offender, event.round, event.hunter): event.amount
        for event in events.events(BountyPaid)
    }
    verdicts = []
    for event in events.events(Convicted):
        hunter = winners[event.offender, event.round]
        verdicts.append(
            Verdict(
                kind=event.kind,
                round=event.round,
                miner=event.offender,
                hunter=hunter,
                bounty=paid.get((event.offender, event.round, hunter), Units(0)),
            )
        )
    return tuple(verdicts)


async def _earned(settlements: Settlements, settled: list[Epoch]) -> dict[Address, Units]:
    """The newest leaf of an account says all that it earned so far."""
    earned: dict[Address, Units] = {}
    for epoch in settled:
        tree = await settlements.final(epoch)
        for leaf in tree.leaves.values() if tree else ():
            earned[leaf.account] = leaf.cumulative
    return earned


async def _consensus(
    chain: RunChain, epoch: Epoch
) -> tuple[dict[Address, int], dict[Address, float]]:
    snapshot, reveals = await chain.snapshot(epoch), await chain.reveals(epoch)
    consensus = consensus_weights(reveals)
    kept = {}
    for reveal in reveals:
        given = sum(reveal.weight(slot) for slot in snapshot.miners)
        if given:
            cells = agreement(reveal, consensus, snapshot.miners)
            kept[reveal.validator] = sum(cells.values()) / given
    return weights_by_address(consensus, snapshot.miner_accounts), kept


def _sums(pairs: Iterable[tuple[Address, Units]]) -> dict[Address, Units]:
    totals: defaultdict[Address, int] = defaultdict(int)
    for account, amount in pairs:
        totals[account] += amount
    return {account: Units(total) for account, total in totals.items()}
