"""A small thread pool of one's own.

asyncio's default pool is shared by everybody and has few threads: a dozen strangers' names that
take half a minute to resolve would stop every read from disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Threads:
    """Runs blocking calls off the event loop.

    Args:
        name: prefix of the threads' names.
        count: most threads; they are started as needed.
    """

    def __init__(self, name: str, count: int) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix=name)

    async def run(self, call: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """The call's result; when cancelled, the call itself still ends in its thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, partial(call, *args, **kwargs))

    def close(self) -> None:
        """Takes no more calls; those that run are left to end."""
        self._pool.shutdown(wait=False, cancel_futures=True)
