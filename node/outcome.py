"""What became of a round: a pure function of what the chain shows and of the accepted submissions.

Every node concludes the same from the same facts: the accepted set, and which of it enters the
aggregate, in slot order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from protocol.ids import Address, Hash32, Round, Slot, Units
from protocol.spec import OuterSpec
from protocol.submission import Submission
from scoring.acceptance import Attestation, Tally, accepted_slots, tally
from scoring.selection import select


class Void(StrEnum):
    """Why a round left the model as it was."""

    NO_ASSIGNMENT = "no assignment beacon"
    NO_EVALUATION = "no evaluation beacon"
    NO_MAJORITY = "no root with a majority"
    NOBODY = "no accepted miner"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundFacts:
    """A round as the chain shows it after its attest deadline.

    Attributes:
        assignment, evaluation: the recorded beacons, None for one that missed its cut-off.
        miners: who holds which miner slot in the round's epoch.
        slot_count: miner slots that were ever used, the length of a bitmap.
        total_stake: of all validators in the epoch's snapshot.
        commits: the digest that each miner committed.
        weights: consensus weights that the selection goes by, of the epoch before the last.
    """

    round: Round
    assignment: Hash32 | None
    evaluation: Hash32 | None
    miners: Mapping[Slot, Address]
    slot_count: int
    attestations: Sequence[Attestation]
    total_stake: Units
    commits: Mapping[Address, Hash32]
    weights: Mapping[Address, int]

    def tally(self) -> Tally:
        """The majority root and the bits with a majority."""
        return tally(self.attestations, self.total_stake, self.slot_count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a round ended.

    Attributes:
        root: the majority's state root at the start of the round, if there is one.
        accepted: the accepted submissions by miner slot.
        selected: the slots that enter the aggregate, ascending.
        void: why the model stays as it is; None if it moves.
    """

    round: Round
    root: Hash32 | None
    accepted: Mapping[Slot, Submission]
    selected: tuple[Slot, ...]
    void: Void | None


def needed(facts: RoundFacts) -> dict[Slot, Hash32]:
    """Digests of the submissions that a node must have to conclude the round.

    These are the committed ones whose bit has a majority; so several validators hold each.
    """
    counted = facts.tally()
    if counted.root is None or facts.assignment is None:
        return {}
    return {
        slot: facts.commits[miner]
        for slot, miner in sorted(facts.miners.items())
        if counted.bits[slot] and miner in facts.commits
    }


def conclude(
    facts: RoundFacts, submissions: Mapping[Slot, Submission], outer: OuterSpec
) -> Outcome:
    """The outcome of a round.

    Args:
        facts: what the chain shows.
        submissions: all that `needed` names.
        outer: how many are selected, and how.
    """
    counted = facts.tally()
    accepted: dict[Slot, Submission] = {}
    if counted.root is not None and facts.assignment is not None:
        held = Tally(
            root=counted.root,
            bits=tuple(bit and Slot(i) in submissions for i, bit in enumerate(counted.bits)),
        )
        slots = accepted_slots(held, submissions, beacon=facts.assignment)
        accepted = {slot: submissions[slot] for slot in slots}
    void = _void(facts, counted, accepted)
    selected: tuple[Slot, ...] = ()
    if void is None and facts.evaluation is not None:
        chosen = set(
            select(
                [facts.miners[slot] for slot in accepted],
                facts.weights,
                facts.evaluation,
                top_g=outer.top_g,
                newcomer_slots=outer.newcomer_slots,
            )
        )
        selected = tuple(slot for slot in sorted(accepted) if facts.miners[slot] in chosen)
    return Outcome(
        round=facts.round,
        root=counted.root,
        accepted=accepted,
        selected=selected,
        void=void,
    )


def was_accepted(facts: RoundFacts, slot: Slot, submission: Submission) -> bool:
    """Whether one committed submission of a round was accepted; needs no others."""
    counted = facts.tally()
    return (
        counted.root is not None
        and counted.bits[slot]
        and submission.initial_root == counted.root
        and submission.beacon == facts.assignment
    )


def _void(facts: RoundFacts, counted: Tally, accepted: Mapping[Slot, Submission]) -> Void | None:
    if facts.assignment is None:
        return Void.NO_ASSIGNMENT
    if counted.root is None:
        return Void.NO_MAJORITY
    if not accepted:
        return Void.NOBODY
    if facts.evaluation is None:
        return Void.NO_EVALUATION
    return None
