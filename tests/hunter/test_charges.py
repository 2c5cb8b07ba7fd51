"""Charges survive a restart with the leaves that the hunter computed, and are taken up once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hunter.charges import Charge, ChargeBook
from node.journal import Journal
from protocol.ids import Round
from tests.bench import Desk, desk_over
from tests.node.games import claim
from tests.subnet.stepped import key_named
from training.dataset import TokenDataset

MINER = key_named("miner").address
KEY = key_named("operator")


@pytest.fixture(scope="module")
def desk(text: TokenDataset) -> Desk:
    return desk_over(text)


@pytest.fixture(scope="module")
def charges(desk: Desk) -> list[Charge]:
    work = desk.work("zero", MINER)[0]
    return [
        Charge(signed=desk.publish(work, KEY, round=Round(number)).signed, mine=claim(number))
        for number in (1, 2)
    ]


@contextmanager
def opened(folder: Path) -> Iterator[ChargeBook]:
    journal = Journal.open(folder / "journal.db")
    yield ChargeBook(journal)
    journal.close()


def test_charges__after_a_restart__have_the_same_leaves(
    tmp_path: Path, charges: list[Charge]
) -> None:
    with opened(tmp_path) as book:
        assert all(book.add(charge) for charge in charges)
    with opened(tmp_path) as book:
        assert book.open_charges() == charges
        assert book.count() == 2


def test_add__same_miner_and_round__is_one_charge_also_once_closed(
    tmp_path: Path, charges: list[Charge]
) -> None:
    first, second = charges
    with opened(tmp_path) as book:
        assert book.add(first)
        assert not book.add(first)
        assert book.add(second)
        book.close(first)
    with opened(tmp_path) as book:
        assert not book.add(first)
        assert book.open_charges() == [second]
        assert book.count() == 2
