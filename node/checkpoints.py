"""The model by round: kept on disk for a restart, offered to joiners, fetched after an absence.

A checkpoint is believed only if its state root is the one that the chain finalised; who served it
does not matter.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from node.contents import size_limits
from node.errors import NoCheckpoint
from protocol import canonical
from protocol.beacon import Draw
from protocol.errors import Rejected, Retryable
from protocol.ids import Hash32, Round, to_hash32
from protocol.spec import RunSpec
from protocol.submission import BlobRef
from training.parameters import Parameters, from_blob, to_blob
from training.roots import state_root
from transport.board import RecordBoard
from transport.client import PeerClient
from transport.store import FolderStore

logger = logging.getLogger(__name__)

FAMILY = "checkpoints"
_KEY = "state"
_TRIED = 4
"""A node lists one checkpoint of a round; who lists thousands wants to keep joiners busy."""


class Checkpoints:
    """Keeps the newest ``keep`` rounds' models."""

    def __init__(
        self,
        *,
        spec: RunSpec,
        board: RecordBoard,
        store: FolderStore,
        client: PeerClient,
        keep: int,
    ) -> None:
        self._spec = spec
        self._board = board
        self._store = store
        self._client = client
        self._keep = keep

    def save(self, round_: Round, root: Hash32, params: Parameters) -> None:
        """Stores the model at the start of a round, durably, and offers it to others."""
        ref = self._store.put(to_blob(params))
        self._store.pin(ref.digest)
        self._board.put(_topic(round_), _KEY, _record(round_, root, ref))
        for old in self._rounds()[: -self._keep]:
            self._drop(old)

    def newest(self) -> tuple[Round, Hash32, Parameters] | None:
        """The newest undamaged checkpoint on disk, with its round and state root."""
        for round_ in reversed(self._rounds()):
            for record in self._board.get(_topic(round_), _KEY):
                root, _ = parse_record(record, round_)
                params = self.at(round_, root)
                if params is not None:
                    return round_, root, params
        return None

    def at(self, round_: Round, root: Hash32) -> Parameters | None:
        """The model at the start of a round, if it was kept undamaged and has this root."""
        for record in self._board.get(_topic(round_), _KEY):
            claimed, ref = parse_record(record, round_)
            data = self._store.get(ref.digest) if claimed == root else None
            if data is not None:
                params = from_blob(data, self._spec.model)
                if state_root(params) == root:
                    return params
        return None

    def has(self, round_: Round) -> bool:
        """Whether a round's model was kept."""
        return round_ in self._rounds()

    def drop_after(self, round_: Round) -> None:
        """Drops the checkpoints of all later rounds."""
        for later in [kept for kept in self._rounds() if kept > round_]:
            self._drop(later)

    async def fetch(self, round_: Round, root: Hash32, endpoints: Sequence[str]) -> Parameters:
        """The model at the start of a round from whoever has it.

        Args:
            round_: the round.
            root: its finalised state root.
            endpoints: whom to ask; asked in an order drawn from the root.

        Raises:
            NoCheckpoint: nobody delivers one with that root just now.
        """
        for endpoint in self._client.trust.order(endpoints, Draw(root)):
            try:
                records = await self._client.fetch_records(endpoint, _topic(round_))
                for record in records[:_TRIED]:
                    params = await self._fetch_one(record, round_, root, endpoint, endpoints)
                    if params is not None:
                        return params
            except (Retryable, Rejected) as error:
                logger.info("no checkpoint of round %s from %s: %s", round_, endpoint, error)
        raise NoCheckpoint(f"nobody offers the model of round {round_} with root {root.hex()}")

    async def _fetch_one(
        self,
        record: bytes,
        round_: Round,
        root: Hash32,
        endpoint: str,
        endpoints: Sequence[str],
    ) -> Parameters | None:
        claimed, ref = parse_record(record, round_)
        if claimed != root or ref.size > size_limits(self._spec)["checkpoint"]:
            return None
        mirrors = [endpoint, *(other for other in endpoints if other != endpoint)]
        await self._client.fetch_blob(ref, mirrors, self._store)
        data = await asyncio.to_thread(self._store.get, ref.digest)
        params = from_blob(data, self._spec.model) if data is not None else None
        return params if params is not None and state_root(params) == root else None

    def _rounds(self) -> list[Round]:
        prefix = f"{FAMILY}/"
        return sorted(
            Round(int(topic.removeprefix(prefix)))
            for topic in self._board.topics()
            if topic.startswith(prefix)
        )

    def _drop(self, round_: Round) -> None:
        gone = self._digests(round_)
        self._board.drop(_topic(round_))
        # A void round left the model as it was: two rounds may share one blob.
        still = {digest for kept in self._rounds() for digest in self._digests(kept)}
        for digest in gone - still:
            self._store.unpin(digest)

    def _digests(self, round_: Round) -> set[Hash32]:
        records = self._board.get(_topic(round_), _KEY)
        return {parse_record(record, round_)[1].digest for record in records}


def _topic(round_: Round) -> str:
    return f"{FAMILY}/{round_}"


def _record(round_: Round, root: Hash32, ref: BlobRef) -> bytes:
    return canonical.dumps(
        {"digest": ref.digest.hex(), "root": root.hex(), "round": round_, "size": ref.size}
    )


def parse_record(record: bytes, round_: Round) -> tuple[Hash32, BlobRef]:
    """Root and locator that a record names; raises `Rejected`."""
    value = canonical.loads(record)
    match value:
        case {"digest": str(digest), "root": str(root), "round": int(named), "size": int(size)}:
            if named == round_:
                return to_hash32(root), BlobRef(digest=to_hash32(digest), size=size)
    raise Rejected("not a checkpoint record of this round")
