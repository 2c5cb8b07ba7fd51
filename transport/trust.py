"""Trust earned by transfers: whom to ask first, and whom to stay connected to.

T = (s + 1) / (s + f + 2) over a peer's transfers, s of them on time with matching digest, f failed
or wrong: the mean of a Beta prior with no opinion (arXiv:1110.0150). Choosing by T alone would let
early luck rule and an eclipsed node stay eclipsed, so a share of every choice is random, seeded by
the caller: the same seed and history give the same choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from protocol import canonical
from protocol.beacon import Draw
from protocol.errors import Rejected

JOIN = 0.6
"""An edge is added at this trust."""
LEAVE = 0.4
"""An edge is dropped below this trust."""
_MEMORY = 64
_LEVELS = 10
_RANDOM_FIRST_ONE_IN = 8
_RANDOM_EDGES_ONE_IN = 4


class TrustBook:
    """What transfers have shown about peers, by endpoint.

    Counts are halved when a peer has more than `_MEMORY` of them, so that a peer can both fall from
    grace and recover.
    """

    def __init__(self) -> None:
        self._counts: dict[str, tuple[int, int]] = {}

    def observe(self, peer: str, *, ok: bool) -> None:
        """Counts a transfer: on time with the right digest, or not."""
        good, bad = self._counts.get(peer, (0, 0))
        good, bad = (good + 1, bad) if ok else (good, bad + 1)
        if good + bad > _MEMORY:
            good, bad = good // 2, bad // 2
        self._counts[peer] = (good, bad)

    def trust(self, peer: str) -> float:
        """T in (0, 1); 1/2 for a stranger."""
        good, bad = self._counts.get(peer, (0, 0))
        return (good + 1) / (good + bad + 2)

    def order(self, peers: Iterable[str], draw: Draw) -> list[str]:
        """In which order to ask mirrors for a blob.

        By trust in tenths, best first, equals in random order (so that not everybody asks the same
        one); one time in `_RANDOM_FIRST_ONE_IN` a random one comes first.
        """
        mixed = draw.shuffled(sorted(set(peers)))
        ranked = sorted(mixed, key=lambda peer: -round(self.trust(peer) * _LEVELS))
        if ranked and draw.below(_RANDOM_FIRST_ONE_IN) == 0:
            ranked.insert(0, ranked.pop(draw.below(len(ranked))))
        return ranked

    def neighbours(
        self, peers: Iterable[str], current: Sequence[str], degree: int, draw: Draw
    ) -> list[str]:
        """Whom to gossip with from now on, at most ``degree`` peers.

        A quarter of the edges, at least one, are random. The others: current ones whose trust is
        at least `LEAVE`, then peers whose trust is at least `JOIN`, best first, then strangers.
        """
        known = sorted(set(peers))
        random_edges = min(degree, max(1, degree // _RANDOM_EDGES_ONE_IN))
        mixed = draw.shuffled(known)
        best_first = sorted(mixed, key=lambda peer: -self.trust(peer))
        stay = [peer for peer in best_first if peer in current and self.trust(peer) >= LEAVE]
        join = [peer for peer in best_first if self.trust(peer) >= JOIN]
        strangers = [peer for peer in best_first if self.trust(peer) >= LEAVE]
        chosen = list(dict.fromkeys(stay + join + strangers))[: degree - random_edges]
        others = [peer for peer in draw.shuffled(known) if peer not in chosen]
        return chosen + others[: degree - len(chosen)]

    def forget(self, keep: Iterable[str]) -> None:
        """Drops all peers but those to keep."""
        kept = set(keep)
        self._counts = {peer: count for peer, count in self._counts.items() if peer in kept}

    def to_bytes(self) -> bytes:
        """Canonical JSON, to keep across restarts."""
        return canonical.dumps({peer: list(count) for peer, count in self._counts.items()})

    @classmethod
    def from_bytes(cls, data: bytes) -> TrustBook:
        """Strict inverse of `to_bytes`; raises `Rejected`."""
        value = canonical.loads(data)
        if not isinstance(value, Mapping):
            raise Rejected("a trust book is an object")
        book = cls()
        for peer, count in value.items():
            match count:
                case [int(good), int(bad)] if 0 <= good <= _MEMORY and 0 <= bad <= _MEMORY:
                    book._counts[peer] = (good, bad)
                case _:
                    raise Rejected(f"a trust book's entry is two counts: {peer}")
        return book
