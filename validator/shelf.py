"""The shelf on which a validator offers its reports, and the books that they lead to.

    reports/{round}   the round's report, and the book after it
    weights/{epoch}   the epoch's report

A record on the board names blobs by digest; a reader takes them from the store (`docs/protocol.md`). Reports stay until the fraud
window is over, books as long as the models that losses are recomputed from.
"""

from __future__ import annotations

from collections.abc import Mapping

from node.node import Node
from protocol import canonical
from protocol.errors import Rejected
from protocol.ids import Epoch, Round, to_hash32
from protocol.submission import BlobRef
from scoring.report import EpochReport, RoundReport

ROUNDS, EPOCHS = "reports", "weights"
REPORT, BOOK = "report", "book"


class Shelf:
    """One validator's published reports. Offering the same again changes nothing."""

    def __init__(self, node: Node) -> None:
        self._node = node
        chain = node.run_file.spec.chain
        self._reports_kept = (chain.fraud_window_epochs + 2) * chain.rounds_per_epoch
        self._books_kept = 2 * chain.rounds_per_epoch + 2
        self._rounds_per_epoch = chain.rounds_per_epoch

    def offer_round(self, report: RoundReport, book: bytes) -> None:
        """Offers the report of a round and the book after it, and drops what is too old."""
        self._offer(round_topic(report.round), {REPORT: report.to_bytes(), BOOK: book})
        self._drop_before(report.round)

    def offer_epoch(self, report: EpochReport) -> None:
        """Offers the weights of an epoch."""
        self._offer(epoch_topic(report.epoch), {REPORT: report.to_bytes()})

    def _offer(self, topic: str, parts: Mapping[str, bytes]) -> None:
        store = self._node.store
        refs = {name: store.put(data) for name, data in parts.items()}
        for ref in refs.values():
            store.pin(ref.digest)
        self._node.board.put(topic, self._node.me, locator(refs))

    def _drop_before(self, newest: Round) -> None:
        for topic in self._node.board.topics():
            family, _, number = topic.partition("/")
            if family == ROUNDS and int(number) <= newest - self._reports_kept:
                self._drop(topic, REPORT)
            if family == ROUNDS and int(number) <= newest - self._books_kept:
                self._unpin(topic, BOOK)
            last_round = int(number) * self._rounds_per_epoch if family == EPOCHS else newest
            if last_round <= newest - self._reports_kept:
                self._drop(topic, REPORT)

    def _drop(self, topic: str, part: str) -> None:
        self._unpin(topic, part)
        self._node.board.drop(topic)

    def _unpin(self, topic: str, part: str) -> None:
        for record in self._node.board.get(topic, self._node.me):
            self._node.store.unpin(parse_locator(record)[part].digest)


def round_topic(round_: Round) -> str:
    """The board's topic of a round's reports."""
    return f"{ROUNDS}/{round_}"


def epoch_topic(epoch: Epoch) -> str:
    """The board's topic of an epoch's reports."""
    return f"{EPOCHS}/{epoch}"


def locator(refs: Mapping[str, BlobRef]) -> bytes:
    """A record that names blobs."""
    return canonical.dumps(
        {name: {"digest": ref.digest.hex(), "size": ref.size} for name, ref in refs.items()}
    )


def parse_locator(record: bytes) -> dict[str, BlobRef]:
    """Inverse of `locator`; raises `Rejected` without a report."""
    value = canonical.loads(record)
    found = {}
    if isinstance(value, Mapping):
        for name, ref in value.items():
            match ref:
                case {"digest": str(digest), "size": int(size)}:
                    found[name] = BlobRef(digest=to_hash32(digest), size=size)
                case _:
                    raise Rejected(f"not a locator: {name!r}")
    if REPORT not in found:
        raise Rejected("a record without a report")
    return found
