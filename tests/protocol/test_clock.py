"""The clock's arithmetic at every border."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from protocol.beacon import Purpose
from protocol.clock import RoundClock
from protocol.ids import Epoch, Round
from tests.specs import CHAIN

CLOCK = RoundClock(CHAIN)
rounds = st.integers(1, 10**6).map(Round)


@given(rounds)
def test_clock__windows_of_a_round__follow_each_other(round_: Round) -> None:
    times = [
        CLOCK.start(round_),
        CLOCK.put_opens(round_),
        CLOCK.put_deadline(round_),
        CLOCK.publish_deadline(round_),
        CLOCK.attest_deadline(round_),
        CLOCK.start(Round(round_ + 1)),
    ]
    widths = [later - earlier for earlier, later in pairwise(times)]
    assert widths == [
        CHAIN.train_s,
        CHAIN.put_s,
        CHAIN.publish_s,
        CHAIN.attest_s,
        CHAIN.apply_s,
    ]


@given(rounds)
def test_round_at__borders__belong_to_the_round_that_starts(round_: Round) -> None:
    assert CLOCK.round_at(CLOCK.start(round_)) == round_
    assert CLOCK.round_at(CLOCK.start(round_) - 1) == round_ - 1


@given(rounds)
def test_epoch_of__every_round__lies_between_its_epochs_borders(round_: Round) -> None:
    epoch = CLOCK.epoch_of(round_)
    assert CLOCK.first_round(epoch) <= round_ <= CLOCK.last_round(epoch)
    assert CLOCK.first_round(Epoch(epoch + 1)) == CLOCK.last_round(epoch) + 1
    assert CLOCK.epoch_at(CLOCK.start(round_)) == epoch


def test_clock__before_genesis__is_round_and_epoch_zero() -> None:
    assert CLOCK.round_at(CHAIN.genesis_time - 1) == 0
    assert CLOCK.epoch_at(CHAIN.genesis_time - 1) == 0


@given(rounds)
def test_beacons__of_a_round__can_be_drawn_before_their_cut_off(round_: Round) -> None:
    opens = CLOCK.beacon_opens_after(round_, Purpose.ASSIGNMENT)
    assert opens == CLOCK.start(round_) - CHAIN.apply_s
    assert opens < CLOCK.beacon_cut_off(round_, Purpose.ASSIGNMENT) == CLOCK.put_opens(round_)
    opens = CLOCK.beacon_opens_after(round_, Purpose.EVALUATION)
    assert opens == CLOCK.publish_deadline(round_)
    assert opens < CLOCK.beacon_cut_off(round_, Purpose.EVALUATION) < CLOCK.start(Round(round_ + 1))


def test_weights__of_an_epoch__are_final_before_the_epoch_that_uses_them() -> None:
    for epoch in range(1, 20):
        reveal = CLOCK.weight_reveal_deadline(Epoch(epoch))
        first_use = CLOCK.attest_deadline(CLOCK.first_round(Epoch(epoch + 2)))
        assert CLOCK.epoch_end(Epoch(epoch)) < CLOCK.weight_commit_deadline(Epoch(epoch)) < reveal
        assert reveal < first_use
