"""Which window is open, and what the title says."""

from __future__ import annotations

import pytest

from protocol.clock import RoundClock
from protocol.ids import Epoch, Round
from syntience.devnet.screen import phase_of, title_of
from tests.specs import CHAIN
from tests.syntience.devnet.stage import picture, settings

CLOCK = RoundClock(CHAIN)  # windows of 8, 4, 4, 4, 4 s; weights 12 and 6 s
START = CHAIN.genesis_time
LAST = Round(3)


@pytest.mark.parametrize(
    ("time", "phase"),
    [
        (START - 7, ("starting", 7)),
        (START, ("train", 8)),
        (START + 8, ("train", 0)),
        (START + 9, ("put", 3)),
        (START + 13, ("publish", 3)),
        (START + 17, ("attest", 3)),
        (START + 21, ("apply", 3)),
        (START + 24, ("train", 8)),
        (START + 3 * 24, ("weights", 12)),
        (START + 3 * 24 + 13, ("reveals", 5)),
        (START + 3 * 24 + 19, ("settlement", None)),
    ],
)
def test_phase_of__a_second__names_the_open_window(
    time: int, phase: tuple[str, int | None]
) -> None:
    now = picture(time=time, round=CLOCK.round_at(time))
    assert phase_of(CLOCK, now, last=LAST) == phase


def test_phase_of__everything_settled__waits_for_claims() -> None:
    time = START + 4 * 24
    now = picture(time=time, round=CLOCK.round_at(time), settled=frozenset({Epoch(1)}))
    assert phase_of(CLOCK, now, last=LAST) == ("claims", None)


def test_title_of__a_devnet__counts_who_takes_part() -> None:
    assert title_of(settings()) == (
        "Syntience devnet: 1 miner, 1 cheat, 2 validators, 1 hunter; model tiny, seed 7"
    )
    assert "cheat" not in title_of(settings(cheats=()))
