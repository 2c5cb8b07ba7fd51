"""Processes that train together: whoever dies takes the others along, with a clear word, in bounded time."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.training.crew_member import meeting_place, member, until

pytestmark = pytest.mark.timeout(300)
LONG = "20000"
BOUND_S = 30
"""From the kill to the end of the other process."""


@pytest.mark.parametrize(
    ("victim", "work", "doing"),
    [(1, [LONG], "stepped"), (0, [LONG], "stepped"), (0, [], "joined")],
    ids=["another-in-a-round", "rank-0-in-a-round", "rank-0-between-rounds"],
)
def test_crew__one_process_is_killed__the_other_ends_and_says_why(
    tmp_path: Path, victim: int, work: list[str], doing: str
) -> None:
    logs = [tmp_path / "0", tmp_path / "1"]
    with (
        meeting_place() as meeting,
        member(0, 2, meeting, *work, log=logs[0]) as leader,
        member(1, 2, meeting, log=logs[1]) as other,
    ):
        until(logs[0], doing)
        until(logs[1], "joined")
        processes = [leader, other]
        processes[victim].send_signal(signal.SIGKILL)
        survivor = 1 - victim
        assert processes[survivor].wait(BOUND_S) == 1
        last = logs[survivor].read_text().splitlines()[-1]
    assert last.startswith(f"CrewError: rank {survivor} of 2 can't go on with the others (")
    assert "Traceback" not in logs[survivor].read_text()


def test_crew__of_one__trains_what_one_process_trains(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with meeting_place() as meeting, member(0, 1, meeting, "3", log=log) as alone:
        assert alone.wait(120) == 0, log.read_text()
    assert "the bits of one process: True" in log.read_text()
