"""A miner in several processes, as `torchrun` starts them: rank 0 mines, the others train with it and read no setting and no secret."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from syntience.errors import ConfigError

if TYPE_CHECKING:
    from training.crew import Crew

VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
"""What torchrun tells each process that it starts."""


def started_by_torchrun(environment: Mapping[str, str]) -> bool:
    """Whether this process is one of a crew, be it of one alone."""
    return all(name in environment for name in VARIABLES)


def work_in_crew(environment: Mapping[str, str], lead: Callable[[Crew], None]) -> None:
    """Joins the crew. On rank 0 `lead` is called; the other processes serve until it returns.

    Raises:
        OperatorError: there are fewer GPUs than processes, or a process failed or is gone.
    """
    rank, size, local_rank, local_size = (_number(environment, name) for name in VARIABLES)
    if rank:
        # It waits inside of torch, where Python's own handler is never called.
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    # Only now: they take seconds to import.
    from training.crew import Crew, Place
    from training.sharded import serve

    place = Place(rank=rank, size=size, local_rank=local_rank, local_size=local_size)
    with Crew.join(place) as crew:
        if crew.leads:
            lead(crew)
        else:
            serve(crew)


def _number(environment: Mapping[str, str], name: str) -> int:
    try:
        return int(environment[name])
    except ValueError as error:
        raise ConfigError(
            f"{name} is no number", "start with torchrun, or unset what it sets"
        ) from error
