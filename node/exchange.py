"""Who handed in what: signed submissions gathered from peers, and the blobs behind them.

Every validly signed submission of a round is kept, also one that was never committed or that
contradicts another: two of them are evidence. What a peer says is taken only if the miner's
operator signed it for the round's canonical beacon; who passed it on does not matter.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from ledger.recover import recover
from node.contents import size_limits
from node.errors import MissingPayload
from protocol.beacon import Draw
from protocol.errors import Rejected, Retryable
from protocol.hashing import sha256
from protocol.ids import Address, Hash32, Round
from protocol.runfile import RunFile
from protocol.submission import BlobRef, Publication, SignedSubmission
from transport.board import RecordBoard
from transport.client import PeerClient
from transport.errors import TransportError
from transport.limits import BoardLimits
from transport.store import FolderStore

logger = logging.getLogger(__name__)

_FAMILY = "submissions"
VERSIONS_KEPT = 2
"""Different submissions of one miner and round that are kept besides the committed one."""
LOCATORS_KEPT = 16
"""Different sets of locators kept for one submission. They are not signed, so some may be false: no
more than one is taken from each source, or one peer could crowd out the true one."""
_LISTED_PER_MINER = BoardLimits().records_per_key
"""A board lists no more; who does wants to keep us busy."""
_TAKEN_AT_ONCE = 16
_FOLLOWED = "followed"
_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True, kw_only=True)
class Roster:
    """Whose signatures count in a round: each miner's operator, and the canonical beacon."""

    round: Round
    beacon: Hash32
    operators: Mapping[Address, Address]
    commits: Mapping[Address, Hash32]


def topic_of(round_: Round) -> str:
    """The board's topic for a round's submissions."""
    return f"{_FAMILY}/{round_}"


class Exchange:
    """The publications that a node knows, by round, miner and digest."""

    def __init__(
        self, *, run_file: RunFile, board: RecordBoard, store: FolderStore, client: PeerClient
    ) -> None:
        self._domain = run_file.domain
        self._run = run_file.run
        self._board = board
        self._store = store
        self._client = client
        self._limits = size_limits(run_file.spec)
        # Of each digest, the publications by source, the one to be preferred first.
        self._known: dict[Round, dict[Address, dict[Hash32, dict[str, Publication]]]] = {}
        self._seen: dict[Round, set[bytes]] = {}

    def versions(self, round_: Round) -> Mapping[Address, Mapping[Hash32, Publication]]:
        """Every known publication of a round, by miner and digest."""
        known = self._known.get(round_, {})
        return {
            miner: {digest: next(iter(found.values())) for digest, found in versions.items()}
            for miner, versions in known.items()
        }

    def committed(self, roster: Roster) -> dict[Address, Publication]:
        """The known publications that are what their miners committed on chain."""
        known = self.versions(roster.round)
        return {
            miner: known[miner][digest]
            for miner, digest in roster.commits.items()
            if digest in known.get(miner, {})
        }

    def take(self, record: bytes, roster: Roster, source: str = "") -> Publication:
        """Checks a record and keeps it, on the board too, unless it is known already.

        Args:
            record: a publication's bytes.
            roster: of its round.
            source: who passed it on.

        Raises:
            Rejected: not a publication of this round that its miner's operator signed.
        """
        publication = Publication.from_bytes(record)
        signed = publication.signed
        digest = self._check(signed, roster)
        miner = signed.submission.miner
        versions = self._known.setdefault(roster.round, {}).setdefault(miner, {})
        if digest in versions:
            return _with_other_locators(versions[digest], publication, source)
        extra = sum(known != roster.commits.get(miner) for known in versions)
        if digest != roster.commits.get(miner) and extra >= VERSIONS_KEPT:
            raise Rejected(
                f"more than {VERSIONS_KEPT} submissions of {miner} that it did not commit"
            )
        self._board.put(topic_of(roster.round), miner, record)
        versions[digest] = {source: publication}
        return publication

    def reload(self, roster: Roster) -> None:
        """Takes back what the board kept of a round over a restart."""
        for number, record in enumerate(self._board.records(topic_of(roster.round))):
            self._try_take(record, roster, f"our own board, {number}")

    async def pull(self, roster: Roster, endpoints: Sequence[str]) -> None:
        """Asks peers for the round's submissions and keeps what holds. Silent peers are skipped.

        So are slow ones: a listing has the time of one request, however long it is.
        """
        await asyncio.gather(*(self._pull_one(roster, endpoint) for endpoint in endpoints))

    async def content(
        self,
        publication: Publication,
        kind: str,
        mirrors: Sequence[str],
        read: Callable[[bytes], _Read],
    ) -> tuple[BlobRef, _Read]:
        """One of a publication's blobs as ``read`` makes of it, and the locator that led to it.

        All known locators are tried until one leads to bytes that ``read`` does not refuse.

        Raises:
            Retryable: none does, and some could not be followed just now.
            Rejected: none does.
        """
        failure: Retryable | Rejected | None = None
        for ref in dict.fromkeys(p.blobs[kind] for p in self._same(publication)):
            try:
                return ref, await self._read(ref, kind, mirrors, read)
            except (Retryable, Rejected) as error:
                failure = failure if isinstance(failure, Retryable) else error
        raise failure or MissingPayload(f"nobody says where the {kind} blob is")

    def confirm(self, publication: Publication) -> None:
        """Prefers these locators from now on, also on the board: we followed them all."""
        submission = publication.signed.submission
        versions = self._known.get(submission.round, {}).get(submission.miner, {})
        digest = submission.digest(self._domain)
        versions[digest] = {_FOLLOWED: publication, **versions.get(digest, {})}
        with suppress(Rejected):
            self._board.put(topic_of(submission.round), submission.miner, publication.to_bytes())

    def forget_before(self, round_: Round) -> None:
        """Drops what is older than a round, and lets its blobs go: its fraud window is over."""
        for topic in self._board.topics():
            family, _, number = topic.partition("/")
            if family == _FAMILY and int(number) < round_:
                for record in self._board.records(topic):
                    for ref in Publication.from_bytes(record).blobs.values():
                        self._store.unpin(ref.digest)
                self._board.drop(topic)
        for old in [known for known in self._known if known < round_]:
            del self._known[old]
        for old in [seen for seen in self._seen if seen < round_]:
            del self._seen[old]

    def _same(self, publication: Publication) -> list[Publication]:
        """Every known publication of the same submission."""
        submission = publication.signed.submission
        versions = self._known.get(submission.round, {}).get(submission.miner, {})
        known = versions.get(submission.digest(self._domain), {})
        return list(known.values()) or [publication]

    async def _read(
        self, ref: BlobRef, kind: str, mirrors: Sequence[str], read: Callable[[bytes], _Read]
    ) -> _Read:
        if ref.size > self._limits[kind]:
            raise Rejected(f"a {kind} blob of {ref.size} bytes, more than one can have")
        ordered = self._client.trust.order(mirrors, Draw(ref.digest))
        await self._client.fetch_blob(ref, ordered, self._store)
        data = await asyncio.to_thread(self._store.get, ref.digest)
        if data is None:
            raise MissingPayload(f"a {kind} blob was damaged on disk")
        return await asyncio.to_thread(read, data)

    def _check(self, signed: SignedSubmission, roster: Roster) -> Hash32:
        submission = signed.submission
        if submission.run != self._run or submission.round != roster.round:
            raise Rejected("a submission of another run or round")
        if submission.beacon != roster.beacon:
            raise Rejected("a submission for another beacon")
        operator = roster.operators.get(submission.miner)
        if operator is None:
            raise Rejected(f"{submission.miner} holds no miner slot in round {roster.round}")
        digest = submission.digest(self._domain)
        if recover(digest, signed.signature) != operator:
            raise Rejected(f"not signed by the operator of {submission.miner}")
        return digest

    async def _pull_one(self, roster: Roster, endpoint: str) -> None:
        try:
            async with asyncio.timeout(self._client.limits.request_timeout_s):
                records = await self._client.fetch_records(endpoint, topic_of(roster.round))
        except (Retryable, Rejected, TransportError, TimeoutError) as error:
            logger.debug("no submissions from %s: %r", endpoint, error)
            return
        most = _LISTED_PER_MINER * len(roster.operators)
        for number, record in enumerate(records[:most]):
            if number % _TAKEN_AT_ONCE == 0:
                await asyncio.sleep(0)
            self._try_take(record, roster, endpoint)

    def _try_take(self, record: bytes, roster: Roster, source: str) -> None:
        seen = self._seen.setdefault(roster.round, set())
        digest = sha256(record)
        if digest in seen:
            return
        try:
            self.take(record, roster, source)
            seen.add(digest)
        except Rejected as error:
            logger.debug("from %s: %s", source, error)


def _with_other_locators(
    found: dict[str, Publication], publication: Publication, source: str
) -> Publication:
    known = publication in found.values() or source in found
    if not known and len(found) < LOCATORS_KEPT:
        found[source] = publication
    return next(iter(found.values()))
