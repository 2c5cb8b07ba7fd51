"""What became of a round, against a slow and obvious reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from node.outcome import RoundFacts, Void, conclude, needed, was_accepted
from protocol.ids import Address, Hash32, Round, Slot, Units
from protocol.schedule import CONSTANT
from protocol.spec import OuterSpec
from protocol.submission import Submission
from scoring.acceptance import Attestation, bitmap_of
from scoring.selection import select
from tests.specs import SPEC, some_hash
from tests.subnet.stepped import key_named

MINERS = [key_named(f"miner {number}").address for number in range(5)]
VALIDATORS = [key_named(f"validator {number}").address for number in range(4)]
ROOTS = [some_hash("one root"), some_hash("another root")]
BEACONS = [some_hash("beacon"), some_hash("another beacon")]
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
OUTER = OuterSpec(rule="sparseloco", alpha="1", top_g=3, newcomer_slots=1, schedule=CONSTANT)


def submission(miner: Address, root: Hash32, beacon: Hash32) -> Submission:
    nothing = some_hash("nothing")
    return Submission(
        run=some_hash("run"),
        spec_hash=SPEC.hash(),
        round=Round(3),
        beacon=beacon,
        miner=miner,
        initial_root=root,
        local_from_round=Round(0),
        local_in=nothing,
        local_out=nothing,
        data_root=nothing,
        payload_root=nothing,
        payload_bytes=1,
        trace_root=nothing,
        steps=2,
    )


@st.composite
def rounds(draw: st.DrawFn) -> tuple[RoundFacts, dict[Slot, Submission]]:
    """A round in which miners and validators do what they like."""
    miners = {Slot(slot): miner for slot, miner in enumerate(MINERS) if draw(st.booleans())}
    submissions = {
        slot: submission(miner, draw(st.sampled_from(ROOTS)), draw(st.sampled_from(BEACONS)))
        for slot, miner in miners.items()
        if draw(st.integers(0, 4))
    }
    stakes = [Units(draw(st.integers(1, 3))) for _ in VALIDATORS]
    attestations = [
        Attestation(
            validator=validator,
            slot=Slot(slot),
            stake=stakes[slot],
            root=draw(st.sampled_from([ROOTS[0], *ROOTS])),
            bitmap=bitmap_of(
                [held for held in submissions if draw(st.integers(0, 3))], len(MINERS)
            ),
        )
        for slot, validator in enumerate(VALIDATORS)
        if draw(st.integers(0, 3))
    ]
    facts = RoundFacts(
        round=Round(3),
        assignment=draw(st.sampled_from([BEACONS[0], BEACONS[0], BEACONS[0], None])),
        evaluation=draw(st.sampled_from([some_hash("exam"), some_hash("exam"), None])),
        miners=miners,
        slot_count=len(MINERS),
        attestations=attestations,
        total_stake=Units(sum(stakes)),
        commits={miners[slot]: some_hash(f"digest {slot}") for slot in submissions},
        weights={miner: draw(st.integers(0, 3)) for miner in MINERS if draw(st.booleans())},
    )
    return facts, submissions


def accepted_slowly(facts: RoundFacts, submissions: dict[Slot, Submission]) -> set[Slot]:
    """The definition of DESIGN, read out: stake by stake, bit by bit."""
    if facts.assignment is None:
        return set()
    majority = None
    for root in ROOTS:
        behind = sum(a.stake for a in facts.attestations if a.root == root)
        if behind * 2 > facts.total_stake:
            majority = root
    accepted = set()
    for slot, each in submissions.items():
        behind = sum(a.stake for a in facts.attestations if a.bitmap[slot // 8] >> (slot % 8) & 1)
        has_bit = behind * 2 > facts.total_stake
        if has_bit and each.initial_root == majority and each.beacon == facts.assignment:
            accepted.add(slot)
    return accepted


@settings(max_examples=300)
@given(rounds())
def test_conclude__any_round__agrees_with_the_definition(
    case: tuple[RoundFacts, dict[Slot, Submission]],
) -> None:
    facts, submissions = case
    outcome = conclude(facts, submissions, OUTER)
    expected = accepted_slowly(facts, submissions)
    assert set(outcome.accepted) == expected
    for slot, each in submissions.items():
        assert was_accepted(facts, slot, each) == (slot in expected)
    wanted = needed(facts)
    assert expected <= wanted.keys() <= submissions.keys()
    assert list(wanted) == sorted(wanted)
    if outcome.void is None:
        assert facts.evaluation is not None
        chosen = select(
            [MINERS[slot] for slot in sorted(expected)],
            facts.weights,
            facts.evaluation,
            top_g=OUTER.top_g,
            newcomer_slots=OUTER.newcomer_slots,
        )
        assert [MINERS[slot] for slot in outcome.selected] == sorted(chosen, key=MINERS.index), (
            "in slot order, for the sums have one order"
        )
        assert outcome.selected
    else:
        assert outcome.selected == ()


@settings(max_examples=200)
@given(rounds())
def test_conclude__any_round__says_why_the_model_stays(
    case: tuple[RoundFacts, dict[Slot, Submission]],
) -> None:
    facts, submissions = case
    void = conclude(facts, submissions, OUTER).void
    if facts.assignment is None:
        assert void is Void.NO_ASSIGNMENT
    elif facts.tally().root is None:
        assert void is Void.NO_MAJORITY
    elif not accepted_slowly(facts, submissions):
        assert void is Void.NOBODY
    elif facts.evaluation is None:
        assert void is Void.NO_EVALUATION
    else:
        assert void is None


def backwards(mapping: Mapping[_Key, _Value]) -> dict[_Key, _Value]:
    """The same mapping, its entries in the opposite order."""
    return dict(reversed(list(mapping.items())))


@given(rounds())
def test_conclude__facts_in_another_order__is_the_same(
    case: tuple[RoundFacts, dict[Slot, Submission]],
) -> None:
    facts, submissions = case
    turned = replace(
        facts,
        attestations=list(facts.attestations)[::-1],
        miners=backwards(facts.miners),
        commits=backwards(facts.commits),
        weights=backwards(facts.weights),
    )
    same = conclude(turned, backwards(submissions), OUTER)
    assert same == conclude(facts, submissions, OUTER)
    assert needed(turned) == needed(facts)
