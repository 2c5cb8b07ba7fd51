"""Follows the chain: reads the run's events block by block, stores them, undoes what a reorganisation takes back.

A poll costs one request while the head stands still, and one more for each new block. Reading is exact: one new block is
asked for by its hash, a range only counts if its last block was the same before and after. Whoever restarts goes on at
the stored block.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ledger import json_rpc
from ledger.connection import Connection, Head, Request, block_request, head_of
from ledger.errors import RpcRefused, RpcUnavailable
from ledger.event_decoding import decode_event
from ledger.event_store import BlockMark, EventStore, StoredEvent
from ledger.event_types import Event, EventT
from ledger.json_rpc import Json
from ledger.transactions import LogRecord, log_from_rpc
from protocol.ids import ZERO32, Address, Epoch, Round
from protocol.runfile import ContractAddresses

_LOG = logging.getLogger(__name__)
_RANGE = 2_000
"""Blocks per request; halved when the node finds it too much."""
_MARKS_PER_LOOK = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """What a poll found.

    Attributes:
        head: the chain's newest block.
        events: new ones, in the order of the chain.
        removed: events of earlier polls that a reorganisation took back; whoever derived something from them starts over
            from what is stored.
    """

    head: Head
    events: tuple[Event, ...]
    removed: tuple[Event, ...]


class EventReader:
    """Reads the events of one run. Made by `open`, closed by `close`."""

    def __init__(
        self,
        store: EventStore,
        connection: Connection,
        contracts: ContractAddresses,
        *,
        from_block: int,
        confirmations: int = 0,
    ) -> None:
        self._store = store
        self._connection = connection
        self._names = _event_sources(contracts)
        self._from_block = from_block
        self._confirmations = confirmations
        self._lock = asyncio.Lock()
        self._mark = store.newest() or BlockMark(number=from_block - 1, hash=ZERO32)
        self._seen: Head | None = None

    @classmethod
    async def open(
        cls,
        path: Path,
        connection: Connection,
        contracts: ContractAddresses,
        *,
        from_block: int,
        confirmations: int = 0,
    ) -> EventReader:
        """Opens the event file of a run.

        Args:
            from_block: the run's deploy block; nothing is older.
            confirmations: events count once so many blocks came after theirs.

        Raises:
            StoreForeign, StoreDamaged: with what to do about it.
        """
        genesis = await connection.genesis_hash()
        store = EventStore(path)
        try:
            store.claim(chain_id=connection.chain_id, genesis=genesis, registry=contracts.registry)
            return cls(
                store, connection, contracts, from_block=from_block, confirmations=confirmations
            )
        except BaseException:
            store.close()
            raise

    def close(self) -> None:
        """Lets go of the file."""
        self._store.close()

    @property
    def complete_upto(self) -> int:
        """The block up to which all events are stored."""
        return self._mark.number

    @property
    def store(self) -> EventStore:
        """The stored events, for whole-log readers."""
        return self._store

    async def poll(self) -> Update:
        """Catches up with the chain.

        Raises:
            RpcUnavailable: call again; what was read so far is kept.
        """
        async with self._lock:
            head = await self._connection.head()
            if self._seen is not None and self._seen.hash == head.hash:
                return Update(head=head, events=(), removed=())
            removed: list[Event] = []
            events: list[Event] = []
            target = await self._target(head)
            if target is not None:
                removed = await self._undo_reorganisation(target)
                if target.number > self._mark.number:
                    events = await self._read_upto(target)
            self._seen = head
            return Update(head=head, events=tuple(events), removed=tuple(removed))

    def events(
        self,
        kind: type[EventT],
        *,
        round_: Round | None = None,
        epoch: Epoch | None = None,
        account: Address | None = None,
    ) -> list[EventT]:
        """Stored events of a kind, in the order of the chain."""
        return self._store.find(kind, round_=round_, epoch=epoch, account=account)

    async def _target(self, head: Head) -> Head | None:
        """The newest block with enough confirmations; None if that is before the run."""
        if not self._confirmations:
            return head
        number = head.number - self._confirmations
        return await self._connection.block(number) if number >= 0 else None

    async def _undo_reorganisation(self, target: Head) -> list[Event]:
        """Compares the stored blocks with the chain's; rolls back to the last common one."""
        if self._mark.hash == ZERO32 or await self._is_on_chain(self._mark, target):
            return []
        marks = self._store.marks()
        for start in range(0, len(marks), _MARKS_PER_LOOK):
            part = marks[start : start + _MARKS_PER_LOOK]
            answers = await self._connection.batch([block_request(mark.number) for mark in part])
            for mark, answer in zip(part, answers, strict=True):
                block = head_of(answer)
                if block is not None and block.hash == mark.hash:
                    return self._roll_back(mark)
        return self._roll_back(BlockMark(number=self._from_block - 1, hash=ZERO32))

    async def _is_on_chain(self, mark: BlockMark, target: Head) -> bool:
        if target.number == mark.number:
            return target.hash == mark.hash
        if target.number == mark.number + 1:
            return target.parent_hash == mark.hash
        block = await self._connection.block(mark.number)
        if block is None:
            # The node is behind us, or its chain became shorter. Both show when it has the block again.
            return True
        return block.hash == mark.hash

    def _roll_back(self, mark: BlockMark) -> list[Event]:
        removed = self._store.roll_back(mark.number)
        _LOG.warning(
            "the chain was reorganised after block %d; %d events taken back",
            mark.number,
            len(removed),
        )
        self._mark = mark
        return removed

    async def _read_upto(self, target: Head) -> list[Event]:
        events: list[Event] = []
        size = _RANGE
        while self._mark.number < target.number:
            first = max(self._mark.number + 1, self._from_block)
            last = min(first + size - 1, target.number)
            try:
                logs, upto = await self._logs(first, last, target)
            except RpcRefused:
                if size == 1:
                    raise
                size //= 2
                continue
            stored = self._decode(logs)
            self._store.append(stored, upto)
            self._mark = upto
            events += [item.event for item in stored]
        return events

    async def _logs(self, first: int, last: int, target: Head) -> tuple[list[LogRecord], BlockMark]:
        """The logs of a range, and its last block."""
        addresses: list[Json] = list(self._names)
        if first == last == target.number:
            query: dict[str, Json] = {
                "address": addresses,
                "blockHash": json_rpc.data(target.hash),
            }
            try:
                answer = await self._connection.request("eth_getLogs", [query])
            except RpcRefused as error:
                raise RpcUnavailable(f"the node lost block {last} ({error.message})") from error
            return _read_logs(answer), BlockMark(number=last, hash=target.hash)
        query = {
            "address": addresses,
            "fromBlock": json_rpc.quantity(first),
            "toBlock": json_rpc.quantity(last),
        }
        before, answer, after = await self._connection.batch(
            [block_request(last), Request("eth_getLogs", [query]), block_request(last)]
        )
        block, again = head_of(before), head_of(after)
        if block is None or again is None or block.hash != again.hash:
            raise RpcUnavailable(f"the chain moved while blocks {first} to {last} were read")
        return _read_logs(answer), BlockMark(number=last, hash=block.hash)

    def _decode(self, logs: Sequence[LogRecord]) -> list[StoredEvent]:
        stored = []
        for log in logs:
            contract = self._names[log.address]
            event = decode_event(contract, log)
            if event is not None:
                stored.append(StoredEvent(contract=contract, log=log, event=event))
        return stored


def _event_sources(contracts: ContractAddresses) -> dict[Address, str]:
    """The contracts whose events matter; the token's transfers and approvals are left out on purpose."""
    return {
        contracts.registry: "Registry",
        contracts.vault: "StakeVault",
        contracts.epochs: "EpochManager",
        contracts.scores: "ScoreRegistry",
        contracts.rewards: "RewardsDistributor",
        contracts.faults: "ObjectiveFaults",
        contracts.verdicts: "Verdicts",
        contracts.disputes: "Disputes",
        contracts.committee: "Committee",
        contracts.requests: "DataRequests",
    }


def _read_logs(answer: Json) -> list[LogRecord]:
    logs = [log_from_rpc(item) for item in json_rpc.as_list(answer)]
    return sorted(logs, key=lambda log: (log.block, log.index))
