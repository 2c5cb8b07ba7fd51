"""Which chores are due, and whose turn it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.chores import (
    BLOCKHASH_REACH,
    BeaconState,
    Chore,
    ChoreFacts,
    ChoreKind,
    OpenChallenge,
    StandingPost,
    due_chores,
    my_turn,
    overdue_pause,
)
from protocol.beacon import Purpose
from protocol.clock import RoundClock
from protocol.ids import Address, Epoch, Hash32, Round, Slot
from tests.specs import CHAIN, some_hash
from tests.subnet.stepped import key_named

CLOCK = RoundClock(CHAIN)
RUN = some_hash("run")
VALIDATORS = [key_named(f"validator {number}").address for number in range(7)]
TURN_S = 3


def facts(time: int, **changes: object) -> ChoreFacts:
    """A chain on which nothing is due."""
    quiet = ChoreFacts(
        time=time,
        block=1_000,
        beacons={},
        majority_roots={},
        silent={},
        next_epoch=Epoch(1),
    )
    return replace(quiet, **changes)  # type: ignore[arg-type]


def kinds(chores: list[Chore]) -> list[tuple[ChoreKind, int, int]]:
    return [(chore.kind, chore.number, chore.detail) for chore in chores]


@pytest.mark.parametrize("purpose", Purpose)
def test_beacon__each_second_of_its_window__is_due_inside_only(purpose: Purpose) -> None:
    round_ = Round(5)
    opened = CLOCK.beacon_opens_after(round_, purpose)
    cut_off = CLOCK.beacon_cut_off(round_, purpose)
    due = (ChoreKind.FIX_BEACON, round_, purpose)
    for time in range(opened - 1, cut_off + 2):
        is_due = due in kinds(due_chores(facts(time), CLOCK))
        assert is_due == (opened < time <= cut_off), time - opened


def test_beacon__before_genesis__only_the_first_assignment_is_due() -> None:
    opened = CLOCK.beacon_opens_after(Round(1), Purpose.ASSIGNMENT)
    assert opened < CHAIN.genesis_time
    assert due_chores(facts(opened), CLOCK) == []
    found = due_chores(facts(opened + 1), CLOCK)
    assert kinds(found) == [(ChoreKind.FIX_BEACON, 1, Purpose.ASSIGNMENT)]


@pytest.mark.parametrize(
    ("state", "block", "expected"),
    [
        (BeaconState(), 10, ChoreKind.FIX_BEACON),
        (BeaconState(target=11), 10, None),
        (BeaconState(target=11), 11, ChoreKind.RECORD_BEACON),
        (BeaconState(target=11), 11 + BLOCKHASH_REACH - 2, ChoreKind.RECORD_BEACON),
        (BeaconState(target=11), 11 + BLOCKHASH_REACH - 1, ChoreKind.FIX_BEACON),
        (BeaconState(target=11, value=some_hash("value")), 500, None),
    ],
)
def test_beacon__as_far_as_it_is__gets_its_next_step(
    state: BeaconState, block: int, expected: ChoreKind | None
) -> None:
    round_ = Round(4)
    time = CLOCK.beacon_opens_after(round_, Purpose.EVALUATION) + 2
    beacons: Mapping[tuple[Round, Purpose], BeaconState] = {(round_, Purpose.EVALUATION): state}
    found = due_chores(facts(time, block=block, beacons=beacons), CLOCK)
    mine = [chore.kind for chore in found if chore.detail == Purpose.EVALUATION]
    assert mine == ([expected] if expected else [])


def test_beacon__expired_target__is_drawn_again_under_another_key() -> None:
    round_ = Round(4)
    time = CLOCK.beacon_opens_after(round_, Purpose.EVALUATION) + 2
    keys = set()
    for state, block in ((BeaconState(), 10), (BeaconState(target=11), 400)):
        beacons = {(round_, Purpose.EVALUATION): state}
        (chore,) = due_chores(facts(time, block=block, beacons=beacons), CLOCK)
        keys.add(chore.key)
        assert chore.kind is ChoreKind.FIX_BEACON
    assert len(keys) == 2, "the outbox would swallow the second draw"


def test_roots__with_a_majority__are_due_with_that_root() -> None:
    root = some_hash("root")
    time = CLOCK.attest_deadline(Round(7)) + 1
    found = due_chores(facts(time, majority_roots={Round(7): root}, next_epoch=Epoch(3)), CLOCK)
    (chore,) = (each for each in found if each.kind is ChoreKind.FINALISE_ROOT)
    assert (chore.kind, chore.number, chore.root) == (ChoreKind.FINALISE_ROOT, 7, root)
    assert chore.opened == CLOCK.attest_deadline(Round(7))


def test_reveals__silent_validators__are_penalised_each() -> None:
    silent = {Epoch(1): [Slot(0), Slot(3)]}
    found = due_chores(facts(CLOCK.start(Round(8)), silent=silent), CLOCK)
    due = [(c.number, c.detail) for c in found if c.kind is ChoreKind.PENALISE_REVEAL]
    assert due == [(1, 0), (1, 3)]


def test_settlement__without_a_post__is_void_only_after_its_time() -> None:
    void_at = CLOCK.settlement_void_at(Epoch(1))
    for time, expected in ((void_at, False), (void_at + 1, True)):
        found = kinds(due_chores(facts(time), CLOCK))
        assert ((ChoreKind.VOID_EPOCH, 1, 0) in found) == expected


def test_settlement__with_posts__the_right_one_is_final_after_its_window_and_none_void() -> None:
    late = CLOCK.settlement_void_at(Epoch(1)) + 100
    post = StandingPost(attempt=2, window_ends=late, open_challenges=0, is_right=True)
    false = replace(post, attempt=1, window_ends=late - 50, is_right=False)
    for time, challenges, expected in (
        (late, 0, []),
        (late + 1, 0, [2]),
        (late + 1, 1, []),
    ):
        again = replace(post, attempt=3, window_ends=late + 1)
        posts = [false, replace(post, open_challenges=challenges), again]
        found = due_chores(facts(time, posts=posts), CLOCK)
        final = [c.attempt for c in found if c.kind is ChoreKind.FINALISE_SETTLEMENT]
        assert final == expected
        assert ChoreKind.VOID_EPOCH not in [chore.kind for chore in found]


def test_challenge__unanswered__is_resolved_after_its_deadline() -> None:
    time = CLOCK.start(Round(7))
    challenge = OpenChallenge(attempt=2, index=4099, cell=5, deadline=time)
    post = StandingPost(attempt=2, window_ends=time, open_challenges=1, is_right=False)
    for now, expected in ((time, []), (time + 1, [(4099, 5, 2)])):
        found = due_chores(facts(now, posts=[post], unanswered=[challenge]), CLOCK)
        due = [(c.detail, c.cell, c.attempt) for c in found if c.kind is ChoreKind.RESOLVE_TIMEOUT]
        assert due == expected


def test_pause__as_long_as_it_may_last__is_ended_after_that_and_not_before() -> None:
    since = CHAIN.genesis_time + 17
    opened = since + CHAIN.pause_most_s
    assert overdue_pause(since, opened, CLOCK) == []
    [chore] = overdue_pause(since, opened + 1, CLOCK)
    assert (chore.kind, chore.number, chore.opened) == (ChoreKind.RESUME, since, opened)
    [next_one] = overdue_pause(since + 1, opened + 9, CLOCK)
    assert next_one.key != chore.key, "the outbox would swallow the end of the next pause"


@given(
    time=st.integers(CHAIN.genesis_time - 30, CHAIN.genesis_time + 500),
    block=st.integers(0, 2_000),
    targets=st.dictionaries(
        st.tuples(st.integers(1, 12).map(Round), st.sampled_from(Purpose)),
        st.builds(
            BeaconState,
            target=st.integers(0, 2_000),
            value=st.none() | st.just(some_hash("value")),
        ),
    ),
)
def test_due_chores__any_facts__are_ordered_distinct_and_never_of_a_known_beacon(
    time: int, block: int, targets: dict[tuple[Round, Purpose], BeaconState]
) -> None:
    found = due_chores(facts(time, block=block, beacons=targets), CLOCK)
    assert [chore.opened for chore in found] == sorted(chore.opened for chore in found)
    assert len({chore.key for chore in found}) == len(found)
    for chore in found:
        assert chore.opened < time
        if chore.kind in (ChoreKind.FIX_BEACON, ChoreKind.RECORD_BEACON):
            state = targets.get((Round(chore.number), Purpose(chore.detail)), BeaconState())
            assert state.value is None


def on_turn(chore: Chore, time: int, validators: list[Address]) -> set[Address]:
    return {
        me
        for me in validators
        if my_turn(chore, time=time, me=me, validators=validators, seed=RUN, turn_s=TURN_S)
    }


@given(
    kind=st.sampled_from(ChoreKind),
    number=st.integers(1, 10_000),
    detail=st.integers(0, 5_000),
    count=st.integers(1, len(VALIDATORS)),
)
def test_my_turn__any_chore__starts_with_exactly_one_and_reaches_all_one_by_one(
    kind: ChoreKind, number: int, detail: int, count: int
) -> None:
    validators = VALIDATORS[:count]
    chore = Chore(kind=kind, number=number, detail=detail, opened=100)
    assert on_turn(chore, 100, validators) == set()
    before: set[Address] = set()
    for place in range(count):
        for second in range(1, TURN_S + 1):
            now = on_turn(chore, 100 + place * TURN_S + second, validators)
            assert before <= now
            assert len(now) == place + 1
            before = now
    assert before == set(validators)


def test_my_turn__order_of_the_list__plays_no_part() -> None:
    chore = Chore(kind=ChoreKind.FIX_BEACON, number=3, detail=1, opened=0)
    for time in range(1, 4 * TURN_S):
        assert on_turn(chore, time, VALIDATORS) == on_turn(chore, time, VALIDATORS[::-1])


def test_my_turn__over_many_chores__everybody_is_first_about_as_often() -> None:
    firsts = [
        on_turn(Chore(kind=ChoreKind.RECORD_BEACON, number=number, opened=0), 1, VALIDATORS).pop()
        for number in range(700)
    ]
    counts = [firsts.count(validator) for validator in VALIDATORS]
    assert min(counts) > 50, counts


def test_my_turn__no_validator__never_has_to() -> None:
    stranger = key_named("stranger").address
    chore = Chore(kind=ChoreKind.FIX_BEACON, number=3, opened=0)
    assert not my_turn(
        chore, time=10**9, me=stranger, validators=VALIDATORS, seed=RUN, turn_s=TURN_S
    )


def test_my_turn__another_run__has_another_order() -> None:
    other = Hash32(some_hash("another run"))
    chores = [Chore(kind=ChoreKind.FIX_BEACON, number=n, opened=0) for n in range(20)]

    def first(chore: Chore, seed: Hash32) -> list[Address]:
        return [
            me
            for me in VALIDATORS
            if my_turn(chore, time=1, me=me, validators=VALIDATORS, seed=seed, turn_s=1)
        ]

    assert [first(c, RUN) for c in chores] != [first(c, other) for c in chores]
