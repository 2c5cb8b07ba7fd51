"""One blob from several mirrors, none of which is trusted.

A download goes on where the last mirror stopped, so a cut costs nothing. The price is that a wrong
digest at the end may be anybody's fault; then the mixture is set aside and the blob is fetched
again, this time whole from one mirror at a time, until the digest is right. A mirror that served
all of a wrong blob alone is to blame for certain, and the right bytes show who lied in the mixture.

A mirror whose blob has another length than the reference says is passed over, and blamed only when
another mirror proves the reference right: references are unsigned.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from protocol.submission import BlobRef
from transport.errors import (
    BadAnswer,
    BadEndpoint,
    BlobMissing,
    BlobUnavailable,
    PeerBusy,
    PeerUnavailable,
    TransportError,
    WrongLength,
)
from transport.limits import ClientLimits
from transport.parts import Part
from transport.store import FolderStore
from transport.trust import TrustBook

_FIRST_BACKOFF_S = 0.1
_PROGRESS_ONE_IN = 32

Pull = Callable[[str, Part], Awaitable[None]]
"""Appends a mirror's bytes to a part, from the part's size on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """How a blob came.

    Attributes:
        ref: the blob, which the store now holds.
        mirrors: who sent its bytes; empty when it was held already.
        blamed: who is proven to have served wrong bytes.
        failures: one (mirror, reason) per failed attempt, in order.
    """

    ref: BlobRef
    mirrors: frozenset[str]
    blamed: frozenset[str]
    failures: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Mirror:
    """A mirror that may still deliver."""

    name: str
    attempts: int
    not_before: float = 0.0
    backoff_s: float = _FIRST_BACKOFF_S


class Download:
    """A download under way.

    Args:
        ref: what to fetch.
        mirrors: where, best first.
        store: where to keep it.
        pull: how to get bytes from a mirror.
        limits: patience.
        trust: told how each mirror did.
    """

    def __init__(
        self,
        ref: BlobRef,
        mirrors: Sequence[str],
        *,
        store: FolderStore,
        pull: Pull,
        limits: ClientLimits,
        trust: TrustBook,
    ) -> None:
        self._ref = ref
        self._store = store
        self._pull = pull
        self._limits = limits
        self._trust = trust
        self._names = list(dict.fromkeys(mirrors))
        self._queue = self._fresh(self._names)
        self._failures: list[tuple[str, str]] = []
        self._blamed: set[str] = set()
        self._other_length: set[str] = set()
        self._alone = False

    async def run(self) -> Fetched:
        """Fetches; raises `BlobUnavailable`, or an `OperatorError` of the store."""
        budget_s = self._limits.transfer_timeout_s(self._ref.size) * max(2, len(self._names))
        part = await self._open_part()
        try:
            async with asyncio.timeout(budget_s):
                if part.is_complete() and part.digest() != self._ref.digest:
                    part.reset()
                while not part.is_complete():
                    await self._attempt(part, await self._next())
                    if part.is_complete() and part.digest() != self._ref.digest:
                        self._judge(part)
            return await self._finish(part)
        except TimeoutError as error:
            raise self._unavailable(f"not within {budget_s:g} s") from error
        finally:
            part.close()

    async def _open_part(self) -> Part:
        opening = asyncio.ensure_future(asyncio.to_thread(self._store.part, self._ref))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            # The thread goes on; nobody else could have the part if it stayed open.
            opening.add_done_callback(_close_part)
            raise

    async def _attempt(self, part: Part, mirror: _Mirror) -> None:
        if self._alone and part.sources() - {mirror.name}:
            part.reset()
        before = part.size
        try:
            await self._pull(mirror.name, part)
            if not part.is_complete():
                raise PeerUnavailable("the answer ended early")
        except PeerUnavailable as error:
            gained = part.size - before
            self._failed(mirror, error, progress=gained * _PROGRESS_ONE_IN >= self._ref.size)
        except (BlobMissing, BadAnswer, BadEndpoint, WrongLength) as error:
            self._gone(mirror.name, error)

    async def _next(self) -> _Mirror:
        """The first mirror that is ready, waiting for one that asked us to wait."""
        if not self._queue:
            raise self._unavailable("no mirror delivered it")
        now = asyncio.get_running_loop().time()
        ready = next((mirror for mirror in self._queue if mirror.not_before <= now), None)
        if ready is None:
            ready = min(self._queue, key=lambda mirror: mirror.not_before)
            await asyncio.sleep(ready.not_before - now)
        return ready

    def _failed(self, mirror: _Mirror, error: PeerUnavailable, *, progress: bool) -> None:
        """A mirror that may be better later goes to the end of the queue."""
        self._failures.append((mirror.name, str(error)))
        wait_s = mirror.backoff_s
        if isinstance(error, PeerBusy):
            wait_s = max(wait_s, error.retry_after_s)
        else:
            self._trust.observe(mirror.name, ok=False)
        if not progress:
            mirror.attempts -= 1
            mirror.backoff_s *= 2
        now = asyncio.get_running_loop().time()
        mirror.not_before = now + min(wait_s, self._limits.max_backoff_s)
        self._queue.remove(mirror)
        if mirror.attempts > 0:
            self._queue.append(mirror)

    def _gone(self, name: str, error: TransportError) -> None:
        """A mirror that will not deliver is asked no more."""
        self._failures.append((name, str(error)))
        if isinstance(error, WrongLength):
            self._other_length.add(name)
        elif isinstance(error, BadAnswer):
            self._trust.observe(name, ok=False)
        self._queue = [mirror for mirror in self._queue if mirror.name != name]

    def _judge(self, part: Part) -> None:
        """The part is complete and wrong: blames its only source, or goes on one by one."""
        sources = part.sources()
        if len(sources) == 1 and None not in sources:
            (name,) = (source for source in sources if source is not None)
            self._blame(name)
            self._queue = [mirror for mirror in self._queue if mirror.name != name]
            part.reset()
            return
        part.set_aside()
        self._alone = True
        names = [name for name in self._names if name not in self._blamed | self._other_length]
        self._queue = self._fresh(sorted(names, key=lambda name: name in sources))

    def _blame(self, name: str) -> None:
        self._failures.append((name, "served wrong bytes"))
        self._blamed.add(name)
        self._trust.observe(name, ok=False)

    async def _finish(self, part: Part) -> Fetched:
        sources = frozenset(source for source in part.sources() if source is not None)
        liars = await asyncio.to_thread(part.liars)
        adopting = asyncio.ensure_future(asyncio.to_thread(self._store.adopt, part))
        try:
            await asyncio.shield(adopting)
        except asyncio.CancelledError:
            await asyncio.wait({adopting})  # a part is closed only when it is adopted, or not
            raise
        for name in sorted((liars | self._other_length) - self._blamed):
            self._blame(name)
        for name in sorted(sources):
            self._trust.observe(name, ok=True)
        return Fetched(
            ref=self._ref,
            mirrors=sources,
            blamed=frozenset(self._blamed),
            failures=tuple(self._failures),
        )

    def _fresh(self, names: Sequence[str]) -> list[_Mirror]:
        return [_Mirror(name, self._limits.attempts_per_mirror) for name in names]

    def _unavailable(self, why: str) -> BlobUnavailable:
        return BlobUnavailable(
            f"blob {self._ref.digest.hex()}: {why}", self._failures, frozenset(self._blamed)
        )


def _close_part(opening: asyncio.Future[Part]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
