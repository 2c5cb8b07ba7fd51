"""Replaying validators' reports: from files, a node's home or its server; ratings and weights, and with models and data the losses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from node.dataset import open_dataset
from node.node import BOARD
from protocol.errors import OperatorError, Rejected
from protocol.ids import Address, Epoch, Hash32, Round
from protocol.runfile import RunFile
from protocol.spec import RunSpec
from scoring.book import ScoreBook
from scoring.book_json import load_book
from scoring.replay import Difference, Replay, replay
from scoring.report import EpochReport, RoundReport
from syntience.published import (
    EndpointSource,
    HomeSource,
    Source,
    book_before,
    read_epoch,
    read_round,
)
from syntience.score_losses import LossCheck, LossReplayer
from training.dataset import TokenDataset
from training.threads import pin_threads
from transport.client import PeerClient
from transport.limits import GIB, ClientLimits
from transport.store import FolderStore

_DATASET = "dataset"
"""Where a node keeps the data set that it fetched, in its home."""
_MOST_BYTES = 1 << 26


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Reports from one place, ascending; `source` is None for files."""

    name: str
    source: Source | None
    rounds: tuple[RoundReport, ...]
    epochs: tuple[EpochReport, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """What replaying a row of reports came to.

    Attributes:
        source: where they came from.
        covers: the rounds of the row.
        losses: by round, if they were asked for.
        without_model: rounds whose model nobody keeps any more, so that their losses were not recomputed.
    """

    validator: Address
    source: str
    covers: tuple[Round, ...]
    replay: Replay
    losses: dict[Round, LossCheck] = field(default_factory=dict)
    without_model: tuple[Round, ...] = ()

    @property
    def differences(self) -> tuple[Difference, ...]:
        """All of them."""
        return (
            *self.replay.differences,
            *(each for check in self.losses.values() for each in check.differences),
        )


@asynccontextmanager
async def open_source(place: str, *, allow_private: bool) -> AsyncIterator[Source]:
    """A node's server or home.

    Raises:
        OperatorError: it is neither.
    """
    if place.startswith(("http://", "https://")):
        async with AsyncExitStack() as stack:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="syntience-")))
            limits = ClientLimits(allow_private=allow_private)
            client = await stack.enter_async_context(PeerClient(limits))
            yield EndpointSource(client, place, FolderStore(folder / "blobs", 64 * GIB))
    elif (Path(place) / BOARD).is_dir():
        yield HomeSource(Path(place))
    else:
        raise OperatorError(
            f"{place} is no node's state and no endpoint",
            "give the --state of a node that has run, or a URL such as https://validator.example",
        )


async def gather(source: Source, rounds: Iterable[Round] | None) -> Told:
    """The reports that a node offers: of these rounds, or all that its home has.

    Raises:
        OperatorError: a server can't be asked for all.
    """
    if rounds is None:
        if not isinstance(source, HomeSource):
            raise OperatorError(
                "a server lists reports by round", "say which with --rounds FIRST-LAST"
            )
        rounds = source.rounds()
    found = [report for round_ in rounds for report in await read_round(source, round_)]
    epochs = [
        report
        for epoch in sorted({report.epoch for report in found})
        if (report := await read_epoch(source, Epoch(epoch))) is not None
    ]
    return Told(name=source.name, source=source, rounds=tuple(found), epochs=tuple(epochs))


def read_files(paths: Sequence[Path]) -> Told:
    """Reports that were kept as files, of rounds and of epochs.

    Raises:
        OperatorError: one can't be read, or is no report.
    """
    rounds, epochs = list[RoundReport](), list[EpochReport]()
    for path in paths:
        try:
            with path.open("rb") as file:
                data = file.read(_MOST_BYTES)
        except OSError as error:
            raise OperatorError(
                f"can't read {path} ({error.strerror or error})", "check the path"
            ) from error
        try:
            rounds.append(RoundReport.from_bytes(data))
        except Rejected as error:
            try:
                epochs.append(EpochReport.from_bytes(data))
            except Rejected:
                raise OperatorError(
                    f"{path} is no report ({error})",
                    "get it from a validator, by the digest that `/v1/records/reports/ROUND` names",
                ) from error
    rounds.sort(key=lambda report: report.round)
    return Told(name="files", source=None, rounds=tuple(rounds), epochs=tuple(epochs))


def only(told: Told, digests: Sequence[Hash32]) -> Told:
    """The reports with these digests; all of them without any."""
    if not digests:
        return told
    return Told(
        name=told.name,
        source=told.source,
        rounds=tuple(report for report in told.rounds if report.digest in digests),
        epochs=tuple(report for report in told.epochs if report.digest in digests),
    )


def foreign_terms(report: RoundReport, run_file: RunFile) -> Iterator[Difference]:
    """What a report says of the run that the run file does not."""
    spec = run_file.spec
    pairs = {
        "run": (report.run.hex(), run_file.run.hex()),
        "spec": (report.spec_hash.hex(), spec.hash().hex()),
        "scoring": (str(report.scoring), str(spec.scoring)),
        "samples_per_round": (str(report.samples_per_round), str(spec.chain.samples_per_round)),
        "train_samples": (str(report.train_samples), str(spec.data.train_samples)),
    }
    for factor, (told, ours) in pairs.items():
        if told != ours:
            yield Difference(
                where=f"round {report.round}",
                miner=None,
                factor=factor,
                reported=told,
                recomputed=ours,
            )


async def replay_all(
    told: Told, *, book: Path | None = None, run_file: RunFile | None = None
) -> list[Chain]:
    """Replays every unbroken row of reports.

    Args:
        told: the reports.
        book: the book before the first of them; else the source's, or the empty one.
        run_file: compared with what the reports say of the run, if given.

    Raises:
        OperatorError: a row's first book is nowhere to be had.
    """
    chains = []
    for row in _rows(told.rounds):
        terms = tuple(foreign_terms(row[0], run_file)) if run_file is not None else ()
        before = await _first_book(row[0], told.source, book if row[0] is told.rounds[0] else None)
        found = await asyncio.to_thread(replay, row, before, told.epochs)
        joined = Replay(
            book=found.book,
            rounds=found.rounds,
            epochs=found.epochs,
            differences=(*terms, *found.differences),
        )
        chains.append(
            Chain(
                validator=row[0].validator,
                source=told.name,
                covers=tuple(report.round for report in row),
                replay=joined,
            )
        )
    return chains


@asynccontextmanager
async def loss_replayer(
    source: Source, spec: RunSpec, data: Path | None, *, threads: int
) -> AsyncIterator[LossReplayer]:
    """Opens the data set, where it lies or fetched from the source, and pins the threads.

    Raises:
        OperatorError: it is not there, or another one.
        Retryable: the source does not deliver it just now.
    """
    pin_threads(threads)
    if isinstance(source, EndpointSource) and data is None:
        dataset = await open_dataset(
            spec.data,
            folder=source.store.root.parent / _DATASET,
            store=source.store,
            client=source.client,
            endpoints=[source.endpoint],
        )
    else:
        folder = data or Path(source.name) / _DATASET
        dataset = await asyncio.to_thread(TokenDataset.open, folder)
        if dataset.spec != spec.data:
            raise OperatorError(
                f"{folder} holds another data set than the run's", "give the run's with --data"
            )
    yield LossReplayer(spec, dataset, source)


def _rows(reports: Sequence[RoundReport]) -> Iterator[list[RoundReport]]:
    """By validator, cut where a report does not go on from the one before."""
    for validator in sorted({report.validator for report in reports}):
        row: list[RoundReport] = []
        for report in reports:
            if report.validator != validator:
                continue
            if row and report.previous != row[-1].round:
                yield row
                row = []
            row.append(report)
        yield row


async def _first_book(first: RoundReport, source: Source | None, given: Path | None) -> ScoreBook:
    if given is not None:
        return load_book(await asyncio.to_thread(given.read_bytes), first.rules)
    if first.previous == 0:
        return ScoreBook.empty(first.rules)
    if source is None:
        raise OperatorError(
            f"the report of round {first.round} goes on from a book that is not here",
            "give it with --book, or all reports from the validator's first one on",
        )
    return await book_before(source, first)
