"""What the nodes tell the world on their public boards: state roots, validators' reports, payloads.

Nobody is believed for somebody else: a root counts for the node that serves it, a report for the
validator that serves it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence

from node.exchange import topic_of
from protocol.errors import Rejected, Retryable
from protocol.ids import Address, Hash32, Round, to_hash32
from protocol.submission import Publication
from scoring.report import RoundReport
from syntience.devnet.players import Part, Player
from syntience.published import EndpointSource, read_round
from transport.client import PeerClient
from transport.errors import TransportError
from transport.store import FolderStore

_LOG = logging.getLogger(__name__)
_ROUNDS_BACK = 3
"""Older rounds are asked for only at the end: who skipped them never answers."""


class Boards:
    """Collects the boards' contents, round by round.

    Args:
        client: may talk to this machine.
        players: whose boards to read.
        store: for the reports, on their way.
    """

    def __init__(self, client: PeerClient, players: Sequence[Player], store: FolderStore) -> None:
        self._client = client
        self._store = store
        self._players = players
        self._roots: dict[Round, dict[str, frozenset[Hash32]]] = {}
        self._reports: dict[Round, dict[Address, RoundReport]] = {}
        self._payloads: dict[Round, dict[bytes, int]] = {}

    def roots(self, round_: Round) -> Mapping[str, frozenset[Hash32]]:
        """The roots that each node, by name, has told for the start of a round; usually one."""
        return self._roots.get(round_, {})

    def reports(self, round_: Round) -> Mapping[Address, RoundReport]:
        """The validators' reports of a round."""
        return self._reports.get(round_, {})

    def newest_reports(self, *, last: Round) -> Mapping[Address, RoundReport]:
        """Each validator's newest report of a round up to `last`."""
        return {
            validator: report
            for round_ in sorted(self._reports)
            if round_ <= last
            for validator, report in self._reports[round_].items()
        }

    def payload_sizes(self) -> list[int]:
        """Bytes of every payload that was published."""
        return [size for found in self._payloads.values() for size in found.values()]

    async def look(self, newest: Round, *, everything: bool = False) -> None:
        """Asks for what is missing.

        Args:
            newest: the round under way.
            everything: also for old rounds, and again for what may have changed.
        """
        first = 1 if everything else max(1, newest - _ROUNDS_BACK)
        rounds = [Round(number) for number in range(first, newest + 1)]
        await asyncio.gather(
            *(self._look_at(player, rounds, again=everything) for player in self._players)
        )

    async def _look_at(self, player: Player, rounds: Iterable[Round], *, again: bool) -> None:
        try:
            for round_ in rounds:
                if again or player.name not in self.roots(round_):
                    await self._take_roots(player, round_)
                if player.part is not Part.VALIDATOR:
                    continue
                if player.account not in self.reports(round_):
                    await self._take_report(player, round_)
                if again or round_ + 1 in self._roots:
                    await self._take_payloads(player, round_)
        except (Retryable, Rejected, TransportError) as error:
            _LOG.debug("%s: %s", player.name, error)

    async def _take_roots(self, player: Player, round_: Round) -> None:
        records = await self._client.fetch_records(player.endpoint, f"roots/{round_}")
        if records:
            told = frozenset(to_hash32(record) for record in records)
            self._roots.setdefault(round_, {})[player.name] = told

    async def _take_report(self, player: Player, round_: Round) -> None:
        source = EndpointSource(self._client, player.endpoint, self._store)
        for report in await read_round(source, round_):
            if report.validator == player.account:
                self._reports.setdefault(round_, {})[player.account] = report

    async def _take_payloads(self, player: Player, round_: Round) -> None:
        """From one validator that has some."""
        if self._payloads.get(round_):
            return
        found = self._payloads.setdefault(round_, {})
        for record in await self._client.fetch_records(player.endpoint, topic_of(round_)):
            payload = Publication.from_bytes(record).blobs["payload"]
            found[payload.digest] = payload.size
