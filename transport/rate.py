"""Token buckets, one per peer: each may use so much per second, and a stated burst at once."""

from __future__ import annotations

import ipaddress
import math
from collections import OrderedDict
from collections.abc import Callable

_MOST_PEERS = 4096


class RateLimiter:
    """How much each peer may still draw.

    The least recently seen peers are forgotten beyond `_MOST_PEERS`, so the table stays small; a
    forgotten peer counts as rested.

    Args:
        per_s: steady rate, in units per second.
        burst: units that a rested peer may draw at once.
        clock: monotonic seconds.
    """

    def __init__(self, *, per_s: float, burst: float, clock: Callable[[], float]) -> None:
        self._per_s = per_s
        self._burst = burst
        self._clock = clock
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()  # (level, as of)

    def draw(self, peer: str, units: float = 1.0) -> float:
        """Takes units if they are there.

        Returns:
            0 when they were taken, else the seconds until they will be there.
        """
        level = self._level(peer)
        if level < units:
            return (units - level) / self._per_s
        self.charge(peer, units)
        return 0.0

    def debt_s(self, peer: str) -> float:
        """Seconds until the peer's debt is paid; 0 when it has none."""
        return max(0.0, -self._level(peer) / self._per_s)

    def charge(self, peer: str, units: float) -> None:
        """Takes units whether they are there or not, so that what was begun can be finished."""
        self._levels[peer] = (self._level(peer) - units, self._clock())
        self._levels.move_to_end(peer)
        if len(self._levels) > _MOST_PEERS:
            self._levels.popitem(last=False)

    def _level(self, peer: str) -> float:
        level, since = self._levels.get(peer, (self._burst, 0.0))
        return min(self._burst, level + (self._clock() - since) * self._per_s)


def peer_of(address: str) -> str:
    """Whom a remote address counts as: an IPv4 address itself, an IPv6 address its /64."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Network((parsed, 64), strict=False))


def retry_after(wait_s: float) -> str:
    """A Retry-After header: whole seconds, at least one."""
    return str(max(1, math.ceil(wait_s)))
