"""Fast checks: what is visibly wrong with a submission, and what that costs.

A visible fault is not accepted and never slashed here. Its cost in score depends on whom it can be
held against. What a miner signed *and* committed for this round is its own act: a fault in it that
honest software can't produce bars the miner from pay for the epoch. What bad luck can produce (or
another's hand: the locators of blobs are not signed) multiplies the score by phi. What anybody could
have shown in its name, a bad signature or an old submission replayed, costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum

from protocol.ids import Address, Hash32, Round
from protocol.submission import Submission


class Fault(StrEnum):
    """What can be wrong with a miner's work of a round."""

    BAD_SIGNATURE = "bad-signature"
    NOT_COMMITTED = "not-committed"
    COMMIT_MISMATCH = "commit-mismatch"
    EQUIVOCATION = "equivocation"
    MISSING = "missing"
    FORMAT = "format"
    OVERSIZE = "oversize"
    WRONG_RUN = "wrong-run"
    WRONG_SPEC = "wrong-spec"
    WRONG_ROUND = "wrong-round"
    WRONG_BEACON = "wrong-beacon"
    BEHIND = "behind"
    WRONG_ROOT = "wrong-root"
    WRONG_STEPS = "wrong-steps"
    WRONG_DATA = "wrong-data"
    LOCAL_STATE = "local-state"
    REUSED_PAYLOAD = "reused-payload"
    OVERLAP = "overlap"


class Severity(Enum):
    """What a fault costs, beyond that the submission is not accepted."""

    NONE = 0
    """Nothing: it proves nothing about the miner."""
    STRIKE = 1
    """The score is multiplied by phi."""
    BAR = 2
    """No pay in this epoch, and a strike."""


_SEVERITY: Mapping[Fault, Severity] = {
    Fault.BAD_SIGNATURE: Severity.NONE,
    Fault.NOT_COMMITTED: Severity.NONE,
    Fault.BEHIND: Severity.NONE,
    Fault.MISSING: Severity.STRIKE,
    Fault.FORMAT: Severity.STRIKE,
    Fault.WRONG_ROOT: Severity.STRIKE,
    Fault.WRONG_BEACON: Severity.STRIKE,
    Fault.OVERLAP: Severity.STRIKE,
}


def severity(fault: Fault) -> Severity:
    """What a fault costs. A committed wrong beacon can be a reorganised chain's: no bar."""
    return _SEVERITY.get(fault, Severity.BAR)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalOrigin:
    """The local state that a miner may continue from: of its last accepted submission."""

    round: Round
    local_out: Hash32


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What a right submission of one miner in one round says.

    Attributes:
        initial_root: state root at the start of the round.
        recent_roots: finalised state roots and the rounds at whose start they held, to tell how
            far behind a wrong initial root is.
        data_root: over the assigned samples' leaf hashes.
        zero_local_root: root of the all-zero local state.
        origin: the last accepted submission inside the fraud window; None if there is none, and
            then only a reset is right.
        max_payload_bytes: size of the largest transport blob that the codec can give.
        max_steps_behind: rounds out of sync up to which being behind costs only the round.
    """

    run: Hash32
    spec_hash: Hash32
    round: Round
    beacon: Hash32
    miner: Address
    initial_root: Hash32
    recent_roots: Mapping[Hash32, Round]
    steps: int
    data_root: Hash32
    zero_local_root: Hash32
    origin: LocalOrigin | None
    max_payload_bytes: int
    max_steps_behind: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What the receiver found out about a submission.

    Attributes:
        digest: EIP-712 digest of the submission.
        committed: the digest that the miner committed on chain in the put window; None if none.
        signature_valid: signed by the miner's operator of the round.
        payload_root: of the payload that was fetched and decoded; None if no blob that was offered
            for it did. That none was offered is `Fault.MISSING`, the caller's to note.
        local_root: the same of the local state.
    """

    digest: Hash32
    committed: Hash32 | None
    signature_valid: bool
    payload_root: Hash32 | None
    local_root: Hash32 | None


def visible_faults(
    submission: Submission, expectation: Expectation, delivery: Delivery
) -> tuple[Fault, ...]:
    """Everything that is visibly wrong, in the order of `Fault`; empty if nothing is.

    What was not signed or not committed was not handed in: then that comes alone, because nothing
    else in it can be held against the miner. It is a mismatch if the miner committed one submission
    and signed another under the canonical beacon of the round.
    """
    if not delivery.signature_valid:
        return (Fault.BAD_SIGNATURE,)
    if delivery.committed != delivery.digest:
        contradicts = delivery.committed is not None and _is_of_this_round(submission, expectation)
        return (Fault.COMMIT_MISMATCH if contradicts else Fault.NOT_COMMITTED,)
    found = {
        Fault.COMMIT_MISMATCH: submission.miner != expectation.miner,
        Fault.FORMAT: delivery.payload_root != submission.payload_root
        or delivery.local_root != submission.local_out,
        Fault.OVERSIZE: submission.payload_bytes > expectation.max_payload_bytes,
        Fault.WRONG_RUN: submission.run != expectation.run,
        Fault.WRONG_SPEC: submission.spec_hash != expectation.spec_hash,
        Fault.WRONG_ROUND: submission.round != expectation.round,
        Fault.WRONG_BEACON: submission.beacon != expectation.beacon,
        Fault.WRONG_STEPS: submission.steps != expectation.steps,
        # Another beacon assigns other samples, which is no fault of its own.
        Fault.WRONG_DATA: submission.data_root != expectation.data_root
        and submission.beacon == expectation.beacon,
        Fault.LOCAL_STATE: _bad_local_state(submission, expectation),
    }
    if submission.initial_root != expectation.initial_root:
        behind = rounds_behind(submission.initial_root, expectation)
        tolerable = behind is not None and behind <= expectation.max_steps_behind
        found[Fault.BEHIND if tolerable else Fault.WRONG_ROOT] = True
    return tuple(fault for fault in Fault if found.get(fault, False))


def rounds_behind(initial_root: Hash32, expectation: Expectation) -> int | None:
    """How many rounds ago a root held; None if it is no recent one."""
    if initial_root == expectation.initial_root:
        return 0
    held = expectation.recent_roots.get(initial_root)
    if held is None or held >= expectation.round:
        return None
    return expectation.round - held


def _is_of_this_round(submission: Submission, expectation: Expectation) -> bool:
    return (
        submission.miner == expectation.miner
        and submission.run == expectation.run
        and submission.round == expectation.round
        and submission.beacon == expectation.beacon
    )


def _bad_local_state(submission: Submission, expectation: Expectation) -> bool:
    if submission.local_from_round == 0:
        return submission.local_in != expectation.zero_local_root
    origin = expectation.origin
    return (
        origin is None
        or submission.local_from_round != origin.round
        or submission.local_in != origin.local_out
    )
