"""From the validators' attestations to the accepted set of a round (integers only).

accepted(r, m) = bit majority ∧ root majority ∧ initialRoot = that root ∧ canonical beacon, each
majority being more than half of the *total* snapshot stake. So silence counts against, and two
disjoint majorities can't exist.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from protocol.ids import Address, Hash32, Slot, Units
from protocol.submission import Submission
from scoring.errors import Contradiction, SubmissionMissing, VectorRejected


@dataclass(frozen=True, slots=True, kw_only=True)
class Attestation:
    """What one validator attested for a round, with its stake in the epoch's snapshot.

    Attributes:
        root: state root of the model at the start of the round.
        bitmap: slot i is bit i % 8, least significant first, of byte i / 8; may be short.
    """

    validator: Address
    slot: Slot
    stake: Units
    root: Hash32
    bitmap: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The outcome of a round's attestations.

    Attributes:
        root: the root that a majority attested; None makes the round void.
        bits: per miner slot, whether a majority set its bit.
    """

    root: Hash32 | None
    bits: tuple[bool, ...]


def bitmap_of(slots: Collection[Slot], slot_count: int) -> bytes:
    """The bitmap with the bits of these miner slots set, ceil(slot_count / 8) bytes."""
    bitmap = bytearray((slot_count + 7) // 8)
    for slot in slots:
        if not 0 <= slot < slot_count:
            raise Contradiction(f"slot {slot} outside of {slot_count} slots")
        bitmap[slot // 8] |= 1 << slot % 8
    return bytes(bitmap)


def bits_of(bitmap: bytes, slot_count: int) -> tuple[bool, ...]:
    """The bits of a bitmap, one per miner slot; raises `VectorRejected` for bits beyond them."""
    value = int.from_bytes(bitmap, "little")
    if len(bitmap) > (slot_count + 7) // 8 or value >> slot_count:
        raise VectorRejected(f"bitmap has bits beyond the {slot_count} miner slots")
    return tuple(bool(value >> slot & 1) for slot in range(slot_count))


def tally(attestations: Sequence[Attestation], total_stake: Units, slot_count: int) -> Tally:
    """Sums the stake behind each root and each bit.

    Args:
        attestations: at most one per validator; the order does not matter.
        total_stake: of all validators in the snapshot, attesting or not.
        slot_count: miner slots of the epoch.
    """
    if len({attestation.validator for attestation in attestations}) != len(attestations):
        raise Contradiction("a validator attested twice")
    if sum(attestation.stake for attestation in attestations) > total_stake:
        raise Contradiction("attesters hold more stake than the snapshot")
    roots: dict[Hash32, int] = {}
    stakes = [0] * slot_count
    for attestation in attestations:
        roots[attestation.root] = roots.get(attestation.root, 0) + attestation.stake
        for slot, bit in enumerate(bits_of(attestation.bitmap, slot_count)):
            stakes[slot] += attestation.stake if bit else 0
    majority = [root for root, stake in roots.items() if 2 * stake > total_stake]
    return Tally(
        root=majority[0] if majority else None,
        bits=tuple(2 * stake > total_stake for stake in stakes),
    )


def accepted_slots(
    outcome: Tally, submissions: Mapping[Slot, Submission], *, beacon: Hash32
) -> tuple[Slot, ...]:
    """The accepted miner slots, ascending; none where the round is void.

    Args:
        outcome: of the round's attestations.
        submissions: the committed submission of each miner slot whose bit has a majority.
        beacon: the canonical assignment beacon of the round.

    Raises:
        SubmissionMissing: a bit has a majority and its submission is not there. It must be fetched
            from one of the validators that set the bit first.
    """
    if outcome.root is None:
        return ()
    accepted = []
    for index, bit in enumerate(outcome.bits):
        if not bit:
            continue
        submission = submissions.get(Slot(index))
        if submission is None:
            raise SubmissionMissing(f"a majority holds the submission of miner slot {index}")
        if submission.initial_root == outcome.root and submission.beacon == beacon:
            accepted.append(Slot(index))
    return tuple(accepted)
