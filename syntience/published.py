"""What a node offers to everybody, read from its home's folder or over HTTP: validators' reports, and what they were made of.

Nothing is believed: blobs have their digests, models and payloads the roots that a report names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from node.checkpoints import FAMILY as CHECKPOINTS
from node.checkpoints import parse_record
from node.contents import read_payload, size_limits
from node.exchange import topic_of
from node.node import BLOBS, BOARD
from protocol.errors import OperatorError, Rejected
from protocol.ids import Address, Epoch, Hash32, Round
from protocol.spec import RunSpec
from protocol.submission import BlobRef, Publication
from scoring.book import ScoreBook
from scoring.book_json import load_book
from scoring.report import EpochReport, RoundReport
from training.codec import Payload
from training.parameters import Parameters, from_blob
from training.roots import state_root
from transport.client import PeerClient
from transport.limits import MIB
from transport.peek import peek_blob, peek_records, peek_topics
from transport.store import FolderStore
from validator.shelf import BOOK, REPORT, ROUNDS, epoch_topic, parse_locator, round_topic

_MOST_BYTES = {REPORT: 64 * MIB, BOOK: 256 * MIB}


class Source(Protocol):
    """Where a node's records and blobs are read."""

    @property
    def name(self) -> str:
        """What the operator called it."""
        ...

    async def records(self, topic: str) -> list[bytes]:
        """The records of a topic, newest first."""
        ...

    async def blob(self, ref: BlobRef) -> bytes | None:
        """A blob with this digest; None if it is not there."""
        ...


class HomeSource:
    """A node's own folder, running or not; nothing in it is changed."""

    def __init__(self, home: Path) -> None:
        self.home = home

    @property
    def name(self) -> str:
        """The folder."""
        return str(self.home)

    async def records(self, topic: str) -> list[bytes]:
        """As `Source`."""
        return await asyncio.to_thread(peek_records, self.home / BOARD, topic)

    async def blob(self, ref: BlobRef) -> bytes | None:
        """As `Source`."""
        return await asyncio.to_thread(peek_blob, self.home / BLOBS, ref.digest)

    def rounds(self) -> list[Round]:
        """The rounds that it has reports of."""
        names = peek_topics(self.home / BOARD, ROUNDS)
        return sorted(Round(int(name)) for name in names if name.isdecimal())


class EndpointSource:
    """A node's server. What is fetched passes through a store."""

    def __init__(self, client: PeerClient, endpoint: str, store: FolderStore) -> None:
        self.client, self.endpoint, self.store = client, endpoint, store

    @property
    def name(self) -> str:
        """The URL."""
        return self.endpoint

    async def records(self, topic: str) -> list[bytes]:
        """As `Source`; raises `Retryable` or `Rejected` for a silent or strange server."""
        return await self.client.fetch_records(self.endpoint, topic)

    async def blob(self, ref: BlobRef) -> bytes | None:
        """As `Source`; raises `Retryable` for one that is not delivered."""
        await self.client.fetch_blob(ref, [self.endpoint], self.store)
        return await asyncio.to_thread(self.store.get, ref.digest)


async def read_round(source: Source, round_: Round) -> list[RoundReport]:
    """The reports of a round; usually one, of the node itself. Raises `Rejected` for what is none."""
    found = [RoundReport.from_bytes(data) for data in await _parts(source, round_topic(round_))]
    return [report for report in found if report.round == round_]


async def read_epoch(source: Source, epoch: Epoch) -> EpochReport | None:
    """The newest report of an epoch's weights; None if there is none."""
    for data in await _parts(source, epoch_topic(epoch)):
        report = EpochReport.from_bytes(data)
        if report.epoch == epoch:
            return report
    return None


async def book_before(source: Source, report: RoundReport) -> ScoreBook:
    """The book that a report begins with.

    Raises:
        OperatorError: the source has it no more.
    """
    empty = ScoreBook.empty(report.rules)
    if report.previous == 0:
        return empty
    for data in await _parts(source, round_topic(report.previous), BOOK, report.book_before):
        return load_book(data, report.rules)
    raise OperatorError(
        f"{source.name} has the book before round {report.round} no more",
        "give that book with --book, or all reports from the first one on",
    )


async def has_model(source: Source, round_: Round) -> bool:
    """Whether it still offers a model of the start of a round."""
    return bool(await source.records(f"{CHECKPOINTS}/{round_}"))


async def model_at(source: Source, round_: Round, root: Hash32, spec: RunSpec) -> Parameters:
    """The model at the start of a round, with this state root.

    Raises:
        OperatorError: the source has it no more.
    """
    for record in await source.records(f"{CHECKPOINTS}/{round_}"):
        claimed, ref = parse_record(record, round_)
        if claimed != root or ref.size > size_limits(spec)["checkpoint"]:
            continue
        data = await source.blob(ref)
        params = None if data is None else from_blob(data, spec.model)
        if params is not None and state_root(params) == root:
            return params
    raise OperatorError(
        f"{source.name} has the model of round {round_} no more",
        "ask another node, or recompute the losses of newer rounds",
    )


async def payloads_at(
    source: Source, report: RoundReport, miners: Iterable[Address], spec: RunSpec
) -> dict[Address, Payload]:
    """These miners' updates of a round, each with the payload root that the report names.

    Raises:
        OperatorError: the source does not have one of them.
    """
    roots = {each.miner: each.root for each in report.payloads}
    found: dict[Address, Payload] = {}
    wanted = set(miners)
    for record in await source.records(topic_of(report.round)):
        submission = (publication := Publication.from_bytes(record)).signed.submission
        miner = submission.miner
        if miner not in wanted - found.keys() or submission.payload_root != roots.get(miner):
            continue
        data = await source.blob(publication.blobs["payload"])
        if data is not None:
            found[miner] = await asyncio.to_thread(read_payload, data, submission, spec)
    for miner in sorted(wanted - found.keys()):
        raise OperatorError(
            f"{source.name} does not have the payload of {miner} in round {report.round}",
            "ask a validator that attested it, inside the fraud window",
        )
    return found


async def _parts(
    source: Source, topic: str, part: str = REPORT, digest: Hash32 | None = None
) -> list[bytes]:
    """The blobs of one kind behind a topic's records, newest first; of one digest, if given."""
    found = []
    for record in await source.records(topic):
        refs: Mapping[str, BlobRef] = parse_locator(record)
        ref = refs.get(part)
        if ref is None or digest not in (None, ref.digest):
            continue
        if ref.size > _MOST_BYTES[part]:
            raise Rejected(f"{topic}: a {part} of {ref.size} bytes")
        data = await source.blob(ref)
        if data is not None:
            found.append(data)
    return found
