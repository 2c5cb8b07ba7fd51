"""Ending a role at a chosen instruction, so that a test can reopen it from its folder.

The exception is no `Exception`: nothing on the way handles it, as nothing handles a SIGKILL.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from typing import Any
from unittest.mock import patch


class Killed(BaseException):
    """The process ended here."""


class When(Enum):
    """On which side of the effect."""

    BEFORE = auto()
    AFTER = auto()


@contextmanager
def killed_at(
    target: object,
    method: str,
    when: When,
    *,
    if_: Callable[..., bool] = lambda *_, **__: True,
) -> Iterator[None]:
    """Whoever calls the method is killed before or after it takes effect.

    Args:
        target, method: whose method.
        when: before or after the effect.
        if_: of the call's arguments: whether this is the call that is meant.
    """
    real = getattr(target, method)

    def ends(*arguments: Any, **named: Any) -> bool:
        return if_(*arguments, **named)

    async def coroutine(*arguments: Any, **named: Any) -> Any:
        meant = ends(*arguments, **named)
        if meant and when is When.BEFORE:
            raise Killed
        result = await real(*arguments, **named)
        if meant:
            raise Killed
        return result

    def function(*arguments: Any, **named: Any) -> Any:
        meant = ends(*arguments, **named)
        if meant and when is When.BEFORE:
            raise Killed
        result = real(*arguments, **named)
        if meant:
            raise Killed
        return result

    replacement = coroutine if inspect.iscoroutinefunction(real) else function
    with patch.object(target, method, replacement):
        yield
