from __future__ import annotations

from dataclasses import replace

import pytest

from protocol.ids import Round
from protocol.submission import Submission
from scoring.checks import (
    Delivery,
    Expectation,
    Fault,
    LocalOrigin,
    Severity,
    rounds_behind,
    severity,
    visible_faults,
)
from tests.protocol.vectors import DOMAIN, SUBMISSION
from tests.scoring.peers import peer
from tests.specs import some_hash

EXPECTED = Expectation(
    run=SUBMISSION.run,
    spec_hash=SUBMISSION.spec_hash,
    round=SUBMISSION.round,
    beacon=SUBMISSION.beacon,
    miner=SUBMISSION.miner,
    initial_root=SUBMISSION.initial_root,
    recent_roots={some_hash(f"root {r}"): Round(r) for r in range(1, 5)},
    steps=SUBMISSION.steps,
    data_root=SUBMISSION.data_root,
    zero_local_root=some_hash("zero"),
    origin=LocalOrigin(round=Round(4), local_out=SUBMISSION.local_in),
    max_payload_bytes=SUBMISSION.payload_bytes,
    max_steps_behind=3,
)
DIGEST = SUBMISSION.digest(DOMAIN)
DELIVERED = Delivery(
    digest=DIGEST,
    committed=DIGEST,
    signature_valid=True,
    payload_root=SUBMISSION.payload_root,
    local_root=SUBMISSION.local_out,
)
OTHER = some_hash("other")


def test_faults__right_submission__has_none() -> None:
    assert visible_faults(SUBMISSION, EXPECTED, DELIVERED) == ()


def test_faults__reset_of_the_local_state__is_always_allowed() -> None:
    reset = replace(SUBMISSION, local_from_round=Round(0), local_in=some_hash("zero"))
    assert visible_faults(reset, EXPECTED, DELIVERED) == ()
    assert visible_faults(reset, replace(EXPECTED, origin=None), DELIVERED) == ()


@pytest.mark.parametrize(
    ("submission", "fault"),
    [
        (replace(SUBMISSION, run=OTHER), Fault.WRONG_RUN),
        (replace(SUBMISSION, spec_hash=OTHER), Fault.WRONG_SPEC),
        (replace(SUBMISSION, round=Round(6)), Fault.WRONG_ROUND),
        (replace(SUBMISSION, beacon=OTHER), Fault.WRONG_BEACON),
        (replace(SUBMISSION, beacon=OTHER, data_root=OTHER), Fault.WRONG_BEACON),
        (replace(SUBMISSION, initial_root=OTHER), Fault.WRONG_ROOT),
        (replace(SUBMISSION, initial_root=some_hash("root 1")), Fault.WRONG_ROOT),
        (replace(SUBMISSION, initial_root=some_hash("root 2")), Fault.BEHIND),
        (replace(SUBMISSION, steps=11), Fault.WRONG_STEPS),
        (replace(SUBMISSION, data_root=OTHER), Fault.WRONG_DATA),
        (replace(SUBMISSION, payload_root=OTHER), Fault.FORMAT),
        (replace(SUBMISSION, local_out=OTHER), Fault.FORMAT),
        (replace(SUBMISSION, payload_bytes=12346), Fault.OVERSIZE),
        (replace(SUBMISSION, local_in=OTHER), Fault.LOCAL_STATE),
        (replace(SUBMISSION, local_from_round=Round(3)), Fault.LOCAL_STATE),
        (replace(SUBMISSION, local_from_round=Round(0)), Fault.LOCAL_STATE),
        (replace(SUBMISSION, miner=peer(9)), Fault.COMMIT_MISMATCH),
    ],
)
def test_faults__one_field_wrong__is_named(submission: Submission, fault: Fault) -> None:
    assert visible_faults(submission, EXPECTED, DELIVERED) == (fault,)


@pytest.mark.parametrize(
    ("delivery", "fault"),
    [
        (replace(DELIVERED, committed=None), Fault.NOT_COMMITTED),
        (replace(DELIVERED, committed=OTHER), Fault.COMMIT_MISMATCH),
        (replace(DELIVERED, payload_root=None), Fault.FORMAT),
        (replace(DELIVERED, local_root=None), Fault.FORMAT),
    ],
)
def test_faults__delivery_wrong__is_named(delivery: Delivery, fault: Fault) -> None:
    assert visible_faults(SUBMISSION, EXPECTED, delivery) == (fault,)


def test_faults__bad_signature__proves_nothing_else() -> None:
    wrong = replace(SUBMISSION, run=OTHER, data_root=OTHER)
    unsigned = replace(DELIVERED, signature_valid=False, committed=OTHER)
    assert visible_faults(wrong, EXPECTED, unsigned) == (Fault.BAD_SIGNATURE,)
    assert severity(Fault.BAD_SIGNATURE) is Severity.NONE


@pytest.mark.parametrize(
    "replayed",
    [
        replace(SUBMISSION, round=Round(4)),
        replace(SUBMISSION, run=OTHER),
        replace(SUBMISSION, beacon=OTHER),
        replace(SUBMISSION, miner=peer(9)),
    ],
    ids=["round", "run", "beacon", "miner"],
)
def test_faults__another_submission_replayed__costs_its_signer_nothing(
    replayed: Submission,
) -> None:
    shown = replace(DELIVERED, digest=replayed.digest(DOMAIN))
    assert visible_faults(replayed, EXPECTED, shown) == (Fault.NOT_COMMITTED,)
    assert severity(Fault.NOT_COMMITTED) is Severity.NONE


def test_faults__several__are_all_named() -> None:
    wrong = replace(SUBMISSION, run=OTHER, data_root=OTHER, local_in=OTHER)
    assert visible_faults(wrong, EXPECTED, DELIVERED) == (
        Fault.WRONG_RUN,
        Fault.WRONG_DATA,
        Fault.LOCAL_STATE,
    )


def test_faults__no_accepted_round_to_continue_from__needs_a_reset() -> None:
    assert visible_faults(SUBMISSION, replace(EXPECTED, origin=None), DELIVERED) == (
        Fault.LOCAL_STATE,
    )


def test_behind__root_of_the_future__is_no_recent_one() -> None:
    expected = replace(EXPECTED, recent_roots={OTHER: Round(9)})
    assert rounds_behind(OTHER, expected) is None
    assert rounds_behind(EXPECTED.initial_root, expected) == 0


def test_severity__what_bad_luck_can_cause__never_bars() -> None:
    barred = {fault for fault in Fault if severity(fault) is Severity.BAR}
    assert barred == {
        Fault.COMMIT_MISMATCH,
        Fault.EQUIVOCATION,
        Fault.OVERSIZE,
        Fault.WRONG_RUN,
        Fault.WRONG_SPEC,
        Fault.WRONG_ROUND,
        Fault.WRONG_STEPS,
        Fault.WRONG_DATA,
        Fault.LOCAL_STATE,
        Fault.REUSED_PAYLOAD,
    }
