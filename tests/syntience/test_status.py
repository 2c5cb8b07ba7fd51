"""The phase of a round at each boundary, deadlines included."""

from __future__ import annotations

import pytest

from protocol.clock import RoundClock
from protocol.ids import Round
from syntience.status import phase_at
from tests.specs import CHAIN

CLOCK = RoundClock(CHAIN)
START = CLOCK.start(Round(2))


@pytest.mark.parametrize(
    ("time", "phase", "left"),
    [
        (CHAIN.genesis_time - 5, "before genesis", 5),
        (CHAIN.genesis_time, "train", CHAIN.train_s),
        (START, "train", CHAIN.train_s),
        (CLOCK.put_opens(Round(2)) - 1, "train", 1),
        (CLOCK.put_opens(Round(2)), "commit", CHAIN.put_s + 1),
        (CLOCK.put_deadline(Round(2)), "commit", 1),
        (CLOCK.put_deadline(Round(2)) + 1, "publish", CHAIN.publish_s),
        (CLOCK.publish_deadline(Round(2)), "publish", 1),
        (CLOCK.publish_deadline(Round(2)) + 1, "attest", CHAIN.attest_s),
        (CLOCK.attest_deadline(Round(2)), "attest", 1),
        (CLOCK.attest_deadline(Round(2)) + 1, "apply", CHAIN.apply_s - 1),
        (CLOCK.start(Round(3)) - 1, "apply", 1),
        (CLOCK.start(Round(3)), "train", CHAIN.train_s),
    ],
)
def test_phase_at__boundary__belongs_to_the_window_that_still_allows_it(
    time: int, phase: str, left: int
) -> None:
    assert phase_at(CLOCK, time) == (phase, left)
