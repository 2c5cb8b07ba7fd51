"""Stopping in order: a signal cancels the work, every `finally` runs, then `Interrupted` says which signal it was."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import TypeVar

from syntience.errors import Interrupted

_Result = TypeVar("_Result")
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_interruptible(work: Coroutine[object, object, _Result]) -> _Result:
    """`asyncio.run` that stops in order on Ctrl-C, SIGTERM and a lost terminal.

    A second signal cancels again, so that clean-up which waits for something gives up waiting.

    Raises:
        Interrupted: a signal ended the work.
    """
    return asyncio.run(_interruptible(work))


async def _interruptible(work: Coroutine[object, object, _Result]) -> _Result:
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    received: list[int] = []

    def on_signal(number: int) -> None:
        received.append(number)
        task.cancel()

    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, on_signal, number)
    try:
        return await task
    except asyncio.CancelledError:
        if received:
            raise Interrupted(received[0]) from None
        raise
    finally:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)
