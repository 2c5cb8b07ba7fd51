"""Who handed in what: signed submissions gathered from peers, and the blobs behind them.

Every validly signed submission of a round is kept, also one that was never committed or that
contradicts another: two of them are evidence. What a peer says is taken only if the miner's
operator signed it for the round's canonical beacon; who passed it on does not matter.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ledger.recover import recover
from node.errors import MissingPayload
from protocol.beacon import Draw
from protocol.errors import Rejected, Retryable
from protocol.ids import Address, Hash32, Round
from protocol.runfile import RunFile
from protocol.submission import Publication, SignedSubmission
from transport.board import RecordBoard
from transport.client import PeerClient
from transport.errors import TransportError
from transport.store import FolderStore

logger = logging.getLogger(__name__)

_FAMILY = "submissions"
VERSIONS_KEPT = 2
"""Different submissions of one miner and round that are kept besides the committed one."""
LOCATORS_KEPT = 4
"""Different sets of locators kept for one submission: they are not signed, so one may be false."""


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
        self._known: dict[Round, dict[Address, dict[Hash32, list[Publication]]]] = {}
        self._seen: dict[Round, set[bytes]] = {}

    def versions(self, round_: Round) -> Mapping[Address, Mapping[Hash32, Publication]]:
        """Every known publication of a round, by miner and digest."""
        known = self._known.get(round_, {})
        return {
            miner: {digest: found[0] for digest, found in versions.items()}
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

    def take(self, record: bytes, roster: Roster) -> Publication:
        """Checks a record and keeps it, on the board too, unless it is known already.

        Raises:
            Rejected: not a publication of this round that its miner's operator signed.
        """
        publication = Publication.from_bytes(record)
        signed = publication.signed
        digest = self._check(signed, roster)
        miner = signed.submission.miner
        versions = self._known.setdefault(roster.round, {}).setdefault(miner, {})
        if digest in versions:
            return self._other_locators(versions[digest], publication)
        extra = sum(known != roster.commits.get(miner) for known in versions)
        if digest != roster.commits.get(miner) and extra >= VERSIONS_KEPT:
            raise Rejected(
                f"more than {VERSIONS_KEPT} submissions of {miner} that it did not commit"
            )
        self._board.put(topic_of(roster.round), miner, record)
        versions[digest] = [publication]
        return publication

    def reload(self, roster: Roster) -> None:
        """Takes back what the board kept of a round over a restart."""
        for record in self._board.records(topic_of(roster.round)):
            self._try_take(record, roster, "our own board")

    async def pull(self, roster: Roster, endpoints: Sequence[str]) -> None:
        """Asks peers for the round's submissions and keeps what holds. Silent peers are skipped."""
        await asyncio.gather(*(self._pull_one(roster, endpoint) for endpoint in endpoints))

    async def blob(self, publication: Publication, kind: str, mirrors: Sequence[str]) -> bytes:
        """The bytes of one of a publication's blobs, from the store or the best mirror.

        Raises:
            Retryable: nobody delivers it just now.
            Rejected: its locator is false.
        """
        failure: Exception | None = None
        for ref in dict.fromkeys(p.blobs[kind] for p in self._same(publication)):
            ordered = self._client.trust.order(mirrors, Draw(ref.digest))
            try:
                await self._client.fetch_blob(ref, ordered, self._store)
            except (Retryable, Rejected) as error:
                failure = error
                continue
            data = await asyncio.to_thread(self._store.get, ref.digest)
            if data is not None:
                return data
        raise failure or MissingPayload(f"a {kind} blob was damaged on disk")

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
        return versions.get(submission.digest(self._domain), [publication])

    def _other_locators(self, found: list[Publication], publication: Publication) -> Publication:
        if publication not in found and len(found) < LOCATORS_KEPT:
            found.append(publication)
        return found[0]

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
            records = await self._client.fetch_records(endpoint, topic_of(roster.round))
        except (Retryable, Rejected, TransportError) as error:
            logger.debug("no submissions from %s: %s", endpoint, error)
            return
        for record in records:
            self._try_take(record, roster, endpoint)

    def _try_take(self, record: bytes, roster: Roster, source: str) -> None:
        seen = self._seen.setdefault(roster.round, set())
        if record in seen:
            return
        try:
            self.take(record, roster)
            seen.add(record)
        except Rejected as error:
            logger.debug("from %s: %s", source, error)
