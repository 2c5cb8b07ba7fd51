"""What the players of a devnet are called."""

from __future__ import annotations

from collections.abc import Iterable

from protocol.ids import Address
from syntience.devnet.players import Player
from syntience.table import short_address


class Names:
    """Players by any of their addresses."""

    def __init__(self, players: Iterable[Player]) -> None:
        self._names: dict[Address, str] = {}
        for player in players:
            name = player.name if player.is_honest else f"{player.name} ({player.behaviour})"
            self._names |= {player.account: name, player.operator: name}

    def of(self, address: Address) -> str:
        """The player's name; a stranger's short address."""
        return self._names.get(address, short_address(address))
