"""Who carries a local state out of line is found in every history, with ballots that suffice; who follows the rule never is."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hunter.local_state import PastRound, local_state
from ledger.contracts.evidence import LocalStateEvidence
from protocol.ids import Hash32, Round, Slot, Units
from protocol.submission import SignedSubmission, Submission
from scoring.acceptance import Attestation
from tests.specs import some_hash
from tests.subnet.stepped import key_named

MINER = key_named("miner").address
VOTERS = [key_named(f"validator {number}").address for number in range(4)]
STAKES = [Units(10), Units(10), Units(20), Units(25)]
SLOT = Slot(9)
ROOT, OTHER = some_hash("root"), some_hash("another root")


def beacon(round_: int) -> Hash32:
    return some_hash(f"beacon {round_}")


def out_of(round_: int) -> Hash32:
    return some_hash(f"out of {round_}")


def handed_in(round_: int, carry: int, local_in: Hash32 | None = None) -> SignedSubmission:
    zero = some_hash("zero")
    submission = Submission(
        run=zero,
        spec_hash=zero,
        round=Round(round_),
        beacon=beacon(round_),
        miner=MINER,
        initial_root=ROOT,
        local_from_round=Round(carry),
        local_in=local_in or (out_of(carry) if carry else zero),
        local_out=out_of(round_),
        data_root=zero,
        payload_root=zero,
        payload_bytes=0,
        trace_root=zero,
        steps=1,
    )
    return SignedSubmission(submission=submission, signature=bytes(65))


votes = st.lists(
    st.sampled_from(["yes", "yes", "yes", "no bit", "no root", "neither", "away"]),
    min_size=len(STAKES),
    max_size=len(STAKES),
)


def attestations(voted: list[str]) -> list[Attestation]:
    return [
        Attestation(
            validator=VOTERS[place],
            slot=Slot(place),
            stake=STAKES[place],
            root=OTHER if vote in ("no root", "neither") else ROOT,
            bitmap=b"\xff" if vote in ("no bit", "neither") else b"\0\2",
        )
        for place, vote in enumerate(voted)
        if vote != "away"
    ]


def accepted(voted: list[str]) -> bool:
    """What the rule says, counted anew."""
    bits = sum(s for s, v in zip(STAKES, voted, strict=True) if v in ("yes", "no root"))
    roots = sum(s for s, v in zip(STAKES, voted, strict=True) if v in ("yes", "no bit"))
    return 2 * bits > sum(STAKES) and 2 * roots > sum(STAKES)


def past_of(
    history: Mapping[int, list[str]], shown: Mapping[int, SignedSubmission]
) -> dict[Round, PastRound]:
    return {
        Round(number): PastRound(
            beacon=beacon(number),
            slot=SLOT,
            committed=shown.get(number),
            votes=attestations(voted),
            total_stake=Units(sum(STAKES)),
        )
        for number, voted in history.items()
    }


def assert_suffices(evidence: LocalStateEvidence, past: Mapping[Round, PastRound]) -> None:
    """The ballots settle it, whatever the ones left out say."""
    other, submission = evidence.other, evidence.signed.submission
    round_ = past[evidence.other_round]
    opened = {ballot.slot for ballot in evidence.ballots}
    assert [ballot.slot for ballot in evidence.ballots] == sorted(opened)
    unopened = sum(vote.stake for vote in round_.votes if vote.slot not in opened)
    seen = [vote for vote in round_.votes if vote.slot in opened]
    bits = sum(vote.stake for vote in seen if vote.bitmap == b"\0\2")
    roots = sum(vote.stake for vote in seen if vote.root == ROOT)
    total = round_.total_stake
    if other is None:
        assert 2 * (bits + unopened) <= total
    elif other.submission.round > submission.local_from_round:
        assert 2 * min(bits, roots) > total
    elif other.submission.local_out == submission.local_in:
        assert 2 * (min(bits, roots) + unopened) <= total
    else:
        assert not opened


@settings(deadline=None, max_examples=300)
@given(data=st.data())
def test_local_state__any_history__finds_all_that_are_out_of_line_and_no_other(
    data: st.DataObject,
) -> None:
    rounds = range(1, data.draw(st.integers(2, 6)))
    history = {number: data.draw(votes) for number in rounds}
    last = len(history) + 1
    shown = {
        number: handed_in(number, 0)
        for number in rounds
        if data.draw(st.integers(0, 4), label="in")
    }
    good = [n for n in rounds if n in shown and accepted(history[n])]
    carry = data.draw(st.integers(0, last))
    invented = data.draw(st.booleans())
    signed = handed_in(last, carry, some_hash("made up") if invented else None)
    past = past_of(history, shown)
    found = local_state(signed, past)
    if not 0 < carry < last:
        assert found is None
        return
    in_line = not invented and bool(good) and carry == good[-1]
    if in_line:
        assert found is None
        return
    hidden = carry not in shown and 2 * sum(
        s for s, v in zip(STAKES, history[carry], strict=True) if v in ("yes", "no root")
    ) > sum(STAKES)
    if hidden and not any(number > carry for number in good):
        assert found is None, "nobody shows what a majority says it holds"
        return
    assert found is not None
    assert found.signed is signed
    assert_suffices(found, past)


def test_local_state__no_slot_then__needs_no_ballots() -> None:
    none = PastRound(
        beacon=beacon(1),
        slot=None,
        committed=None,
        votes=attestations(["yes"] * 4),
        total_stake=Units(sum(STAKES)),
    )
    signed = handed_in(2, 1)
    assert local_state(signed, {Round(1): none}) == LocalStateEvidence(
        signed=signed, other=None, ballots=()
    )


def test_local_state__another_beacon_then__was_not_accepted() -> None:
    history, shown = {1: ["yes"] * 4}, {1: handed_in(1, 0)}
    past = past_of(history, shown)
    orphaned = PastRound(
        beacon=some_hash("the canonical one"),
        slot=SLOT,
        committed=shown[1],
        votes=past[Round(1)].votes,
        total_stake=past[Round(1)].total_stake,
    )
    signed = handed_in(2, 1)
    assert local_state(signed, past) is None
    assert local_state(signed, {Round(1): orphaned}) == LocalStateEvidence(
        signed=signed, other=shown[1], ballots=()
    )


@pytest.mark.parametrize("carry", [0, 3, 4])
def test_local_state__nothing_carried__is_never_a_fault(carry: int) -> None:
    history = {1: ["away"] * 4, 2: ["away"] * 4}
    assert local_state(handed_in(3, carry), past_of(history, {})) is None


def test_local_state__rounds_unknown__says_nothing() -> None:
    assert local_state(handed_in(3, 1), {}) is None
