"""What a miner does next, at every border of its windows."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from miner.decide import MinerFacts, Step, next_step
from protocol.clock import RoundClock
from protocol.ids import Round
from tests.specs import CHAIN

CLOCK = RoundClock(CHAIN)
ROUND = Round(3)
START, OPENS = CLOCK.start(ROUND), CLOCK.put_opens(ROUND)
DEADLINE = CLOCK.put_deadline(ROUND)
FRESH = MinerFacts(
    time=START,
    round=ROUND,
    has_slot=True,
    has_beacon=True,
    holds_model=True,
    prepared=False,
    committed=False,
    refused=False,
    published=False,
)
PREPARED = replace(FRESH, prepared=True)
COMMITTED = replace(PREPARED, committed=True)


def at(facts: MinerFacts, time: int) -> Step:
    return next_step(replace(facts, time=time), CLOCK)


def test_train__from_the_beacon_until_a_commit_could_still_be_in_time() -> None:
    assert at(FRESH, START - 5) is Step.TRAIN, "the beacon may be there before the round begins"
    assert at(FRESH, DEADLINE - 1) is Step.TRAIN
    assert at(FRESH, DEADLINE) is Step.WAIT, "its commit would land after the deadline"
    assert at(FRESH, DEADLINE + 100) is Step.WAIT


def test_train__without_slot_beacon_or_model__waits() -> None:
    for missing in ("has_slot", "has_beacon", "holds_model"):
        assert at(replace(FRESH, **{missing: False}), START) is Step.WAIT  # type: ignore[arg-type]


def test_commit__in_the_put_window_only() -> None:
    expected = {
        OPENS - 1: Step.WAIT,
        OPENS: Step.COMMIT,
        DEADLINE - 1: Step.COMMIT,
        DEADLINE: Step.WAIT,
        DEADLINE + 1: Step.WAIT,
    }
    assert {time: at(PREPARED, time) for time in expected} == expected


def test_commit__prepared_before_a_restart__needs_neither_beacon_nor_model() -> None:
    bare = replace(PREPARED, has_beacon=False, holds_model=False, has_slot=False)
    assert at(bare, OPENS) is Step.COMMIT


def test_commit__late_behaviour__only_after_the_deadline() -> None:
    late = replace(PREPARED, commits_late=True)
    assert [at(late, time) for time in (OPENS, DEADLINE, DEADLINE + 1)] == [
        Step.WAIT,
        Step.WAIT,
        Step.COMMIT,
    ]


def test_commit__refused__is_never_sent_again() -> None:
    for late in (False, True):
        refused = replace(PREPARED, refused=True, commits_late=late)
        for time in (OPENS, DEADLINE, DEADLINE + 1):
            assert at(refused, time) is Step.WAIT


def test_publish__only_after_the_put_deadline_and_only_what_was_committed() -> None:
    assert at(COMMITTED, DEADLINE) is Step.WAIT, "nobody may see it while others can commit"
    assert at(COMMITTED, DEADLINE + 1) is Step.PUBLISH
    assert at(COMMITTED, DEADLINE + 10_000) is Step.PUBLISH, "a restarted miner makes up for it"
    assert at(replace(COMMITTED, published=True), DEADLINE + 1) is Step.WAIT
    assert at(PREPARED, DEADLINE + 1) is Step.WAIT


@given(
    facts=st.builds(
        MinerFacts,
        time=st.integers(START - 60, DEADLINE + 60),
        round=st.just(ROUND),
        has_slot=st.booleans(),
        has_beacon=st.booleans(),
        holds_model=st.booleans(),
        prepared=st.booleans(),
        committed=st.booleans(),
        refused=st.booleans(),
        published=st.booleans(),
        commits_late=st.booleans(),
    )
)
def test_next_step__any_facts__signs_once_and_keeps_the_secret_until_the_deadline(
    facts: MinerFacts,
) -> None:
    step = next_step(facts, CLOCK)
    if facts.prepared:
        assert step is not Step.TRAIN
    if step is Step.COMMIT:
        assert facts.prepared
        assert not facts.committed
        assert facts.commits_late or OPENS <= facts.time < DEADLINE
    if step is Step.PUBLISH:
        assert facts.committed
        assert facts.time > DEADLINE
