"""The shelf: what is offered can be read back, twice is once, and what is too old goes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from node.node import BLOBS, BOARD
from protocol.errors import Rejected
from protocol.ids import Epoch, Round
from scoring.report import book_digest
from syntience.published import HomeSource, book_before, read_epoch, read_round
from tests.bench import desk_over
from tests.scoring.reports import REPORT, told
from tests.subnet.stepped import key_named
from training.dataset import TokenDataset
from transport.board import RecordBoard
from transport.limits import MIB
from transport.store import FolderStore
from validator.shelf import Shelf, parse_locator


@pytest.fixture
def node(text: TokenDataset, tmp_path: Path) -> SimpleNamespace:
    """Two rounds an epoch, a fraud window of four epochs."""
    return SimpleNamespace(
        run_file=desk_over(text).run_file,
        me=key_named("v1").address,
        board=RecordBoard(tmp_path / BOARD),
        store=FolderStore(tmp_path / BLOBS, MIB),
    )


async def test_offer__twice__is_read_back_once(node: SimpleNamespace, tmp_path: Path) -> None:
    shelf, teller = Shelf(node), told(2)  # type: ignore[arg-type]
    for report in teller.reports:
        shelf.offer_round(report, b"a book")
        shelf.offer_round(report, b"a book")
    shelf.offer_epoch(teller.weigh())
    source = HomeSource(tmp_path)
    assert source.rounds() == [1, 2]
    assert await read_round(source, Round(2)) == [teller.reports[1]]
    assert await read_epoch(source, Epoch(1)) == teller.weigh()
    assert await read_epoch(source, Epoch(2)) is None


async def test_offer__books__lead_from_report_to_report(
    node: SimpleNamespace, tmp_path: Path
) -> None:
    from scoring.book_json import dump_book

    shelf, teller = Shelf(node), told(0)  # type: ignore[arg-type]
    for round_ in (1, 2, 3):
        shelf.offer_round(teller.tell(round_), dump_book(teller.book))
    for report in teller.reports:
        before = await book_before(HomeSource(tmp_path), report)
        assert book_digest(before) == report.book_before


async def test_offer__rounds_pass__reports_stay_for_the_fraud_window_and_books_for_two_epochs(
    node: SimpleNamespace, tmp_path: Path
) -> None:
    shelf = Shelf(node)  # type: ignore[arg-type]
    pins = []
    for number in range(1, 31):
        report = replace(REPORT, round=Round(number))
        shelf.offer_round(report, f"book {number}".encode())
        if number % 2 == 0:
            shelf.offer_epoch(replace(told(1).weigh(), epoch=Epoch(number // 2)))
        pins.append(len(node.store.pinned()))
    source = HomeSource(tmp_path)
    assert source.rounds() == list(range(19, 31)), "six epochs of two rounds"
    assert await read_epoch(source, Epoch(9)) is None
    assert await read_epoch(source, Epoch(10)) is not None
    assert pins[-1] == pins[-3] == 12 + 6 + 6, "reports, books, weights"


@pytest.mark.parametrize("record", [b"[]", b'{"book":{"digest":"00","size":1}}', b'{"report":1}'])
def test_parse_locator__anything_else__is_rejected(record: bytes) -> None:
    with pytest.raises(Rejected):
        parse_locator(record)
