"""What a validator posts and how it votes. The honest way is here; other ways are its subclasses."""

from __future__ import annotations

from protocol.ids import Address
from protocol.settlement import SettlementTree


class Behaviour:
    """The honest validator: posts what the reveals give, votes what it computed."""

    name = "honest"
    is_hasty = False
    """Whether it posts the first settlement of an epoch without waiting for its turn."""

    def settlement(self, right: SettlementTree, me: Address) -> SettlementTree:
        """What to post where `right` is due."""
        return right

    def vote(self, *, guilty: bool) -> bool:
        """How to vote on a miner that was found guilty or not."""
        return guilty
