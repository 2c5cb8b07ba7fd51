"""Reading the nodes' boards: everybody counts for itself, nothing is asked twice."""

from __future__ import annotations

import pytest

from protocol.ids import Hash32, Round
from protocol.submission import BlobRef, Publication, SignedSubmission
from syntience.devnet.boards import Boards
from tests.protocol.vectors import SUBMISSION
from tests.specs import some_hash
from tests.syntience.devnet.stage import FIRST, HONEST, SECOND, FakeBoards, boards_of, report

ROOT, OTHER = some_hash("root"), some_hash("other")


@pytest.fixture
def nodes() -> FakeBoards:
    return FakeBoards()


@pytest.fixture
def boards(nodes: FakeBoards) -> Boards:
    return boards_of(nodes)


def publication(payload: bytes, size: int) -> bytes:
    ref = BlobRef(digest=Hash32(payload * 32), size=size)
    other = BlobRef(digest=some_hash("blob"), size=1)
    return Publication(
        signed=SignedSubmission(submission=SUBMISSION, signature=bytes(65)),
        blobs={"payload": ref, "local": other, "data": other, "trace": other},
    ).to_bytes()


async def test_look__roots__count_for_the_node_that_serves_them(
    nodes: FakeBoards, boards: Boards
) -> None:
    nodes.put(HONEST, "roots/1", ROOT)
    nodes.put(FIRST, "roots/1", ROOT)
    nodes.put(FIRST, "roots/1", OTHER)
    await boards.look(Round(1))
    assert boards.roots(Round(1)) == {
        "miner-1": frozenset({ROOT}),
        "validator-1": frozenset({ROOT, OTHER}),
    }


async def test_look__a_root_that_is_known__is_not_asked_for_again(
    nodes: FakeBoards, boards: Boards
) -> None:
    nodes.put(HONEST, "roots/1", ROOT)
    await boards.look(Round(1))
    await boards.look(Round(1))
    assert nodes.asked.count((HONEST.endpoint, "roots/1")) == 1
    await boards.look(Round(1), everything=True)
    assert nodes.asked.count((HONEST.endpoint, "roots/1")) == 2


async def test_look__old_rounds__are_asked_for_only_at_the_end(
    nodes: FakeBoards, boards: Boards
) -> None:
    await boards.look(Round(9))
    assert (HONEST.endpoint, "roots/5") not in nodes.asked
    assert (HONEST.endpoint, "roots/6") in nodes.asked
    await boards.look(Round(9), everything=True)
    assert (HONEST.endpoint, "roots/1") in nodes.asked


async def test_look__a_report_of_somebody_else__is_not_taken(
    nodes: FakeBoards, boards: Boards
) -> None:
    nodes.put_report(FIRST, report(SECOND, 1))
    nodes.put_report(SECOND, report(SECOND, 1))
    await boards.look(Round(1))
    assert set(boards.reports(Round(1))) == {SECOND.account}


async def test_look__garbage_or_silence__costs_only_that_node(
    nodes: FakeBoards, boards: Boards
) -> None:
    nodes.put(HONEST, "roots/1", b"short")
    nodes.silent.add(FIRST.endpoint)
    nodes.put(SECOND, "roots/1", ROOT)
    await boards.look(Round(1))
    assert set(boards.roots(Round(1))) == {"validator-2"}


async def test_newest_reports__two_rounds__gives_the_later_one_that_counts(
    nodes: FakeBoards, boards: Boards
) -> None:
    for round_ in (1, 2, 3):
        nodes.put_report(FIRST, report(FIRST, round_))
    await boards.look(Round(3))
    assert boards.newest_reports(last=Round(2))[FIRST.account].round == 2


async def test_payload_sizes__the_same_payload_at_two_validators__counts_once(
    nodes: FakeBoards, boards: Boards
) -> None:
    for validator in (FIRST, SECOND):
        nodes.put(validator, "submissions/1", publication(b"\1", 100))
        nodes.put(validator, "submissions/1", publication(b"\2", 120))
    await boards.look(Round(1), everything=True)
    assert sorted(boards.payload_sizes()) == [100, 120]
