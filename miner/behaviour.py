"""What a miner does in a round. The honest way is here; other ways are its subclasses."""

from __future__ import annotations

from collections.abc import Sequence

from miner.work import Start, Work, Workbench


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
