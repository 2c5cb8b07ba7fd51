"""What a miner does in a round. The honest way is here; other ways are its subclasses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from miner.work import Start, Work, Workbench
from transport.server import Provider


class Behaviour:
    """The honest miner: trains on exactly what it is assigned and says exactly that."""

    name = "honest"
    commits_late = False
    """Whether it commits after the deadline instead of before."""

    def work(self, bench: Workbench, start: Start) -> Sequence[Work]:
        """Does the round's work.

        Returns:
            What to sign and publish. The first is committed on chain; an honest miner has no other.
        """
        trained = bench.train(start, start.assigned)
        return [bench.submit(start, trained, start.assigned)]

    def providers(self) -> Mapping[str, Provider]:
        """Who answers listings instead of the node's board, by family of topics."""
        return {}

    def published(self, topic: str, records: Sequence[bytes]) -> None:
        """Told what the miner put on its board."""
