"""Whose submissions are kept, and that no peer's lie displaces the truth."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from miner.work import Work
from node.contents import read_payload
from node.exchange import LOCATORS_KEPT, VERSIONS_KEPT, Exchange, Roster, topic_of
from protocol.errors import Rejected, Retryable
from protocol.ids import Hash32, Round
from protocol.submission import BlobRef, Publication
from tests.bench import BEACON, ROUND, Desk, desk_over
from tests.node.peers import Peers
from tests.specs import some_hash
from tests.subnet.stepped import key_named
from training.dataset import TokenDataset
from transport.board import RecordBoard
from transport.limits import MIB, ClientLimits
from transport.store import FolderStore

MINER, OPERATOR = key_named("miner").address, key_named("operator")
OTHER = key_named("other miner").address
SOMEWHERE = ["http://127.0.0.1:1"]


@pytest.fixture(scope="module")
def desk(text: TokenDataset) -> Desk:
    return desk_over(text)


@pytest.fixture(scope="module")
def work(desk: Desk) -> Work:
    return desk.work("zero", MINER)[0]


@pytest.fixture
def peers() -> Peers:
    return Peers()


@pytest.fixture
def exchange(desk: Desk, tmp_path: Path, peers: Peers) -> Exchange:
    return make(desk, tmp_path, peers)


def make(desk: Desk, folder: Path, peers: Peers) -> Exchange:
    """An exchange over what a folder keeps."""
    return Exchange(
        run_file=desk.run_file,
        board=RecordBoard(folder / "board"),
        store=FolderStore(folder / "blobs", 64 * MIB),
        client=peers,  # type: ignore[arg-type]  # the two methods that an exchange uses
    )


def roster(*committed: Hash32) -> Roster:
    return Roster(
        round=ROUND,
        beacon=BEACON,
        operators={MINER: OPERATOR.address},
        commits={MINER: committed[0]} if committed else {},
    )


def lying(publication: Publication, label: str, *, size: int = 100) -> Publication:
    """The same submission with locators that lead nowhere."""
    false = BlobRef(digest=some_hash(label), size=size)
    return replace(publication, blobs=dict.fromkeys(publication.blobs, false))


def test_take__signed_by_the_operator__is_kept_and_served(
    desk: Desk, work: Work, exchange: Exchange, tmp_path: Path, peers: Peers
) -> None:
    publication = desk.publish(work, OPERATOR)
    digest = desk.digest(publication)
    assert exchange.take(publication.to_bytes(), roster()) == publication
    assert exchange.versions(ROUND) == {MINER: {digest: publication}}
    assert exchange.committed(roster()) == {}
    assert exchange.committed(roster(digest)) == {MINER: publication}
    again = make(desk, tmp_path, peers)
    assert again.versions(ROUND) == {}
    again.reload(roster(digest))
    assert again.committed(roster(digest)) == {MINER: publication}


@pytest.mark.parametrize(
    "change",
    [
        {"run": some_hash("another run")},
        {"round": Round(2)},
        {"beacon": some_hash("another beacon")},
        {"miner": OTHER},
    ],
    ids=lambda change: next(iter(change)),
)
def test_take__of_another_run_round_beacon_or_miner__is_rejected(
    desk: Desk, work: Work, exchange: Exchange, change: dict[str, object]
) -> None:
    with pytest.raises(Rejected):
        exchange.take(desk.publish(work, OPERATOR, **change).to_bytes(), roster())
    assert exchange.versions(ROUND) == {}


def test_take__signed_by_another_key__is_rejected(
    desk: Desk, work: Work, exchange: Exchange
) -> None:
    for key in (key_named("stranger"), key_named("miner")):
        with pytest.raises(Rejected, match="not signed"):
            exchange.take(desk.publish(work, key).to_bytes(), roster())


def test_take__many_uncommitted_versions__keeps_two_and_always_the_committed_one(
    desk: Desk, work: Work, exchange: Exchange
) -> None:
    versions = [desk.publish(work, OPERATOR, steps=steps) for steps in range(1, 7)]
    committed = versions[-1]
    for publication in versions[:VERSIONS_KEPT]:
        exchange.take(publication.to_bytes(), roster(desk.digest(committed)))
    for publication in versions[VERSIONS_KEPT:-1]:
        with pytest.raises(Rejected, match="did not commit"):
            exchange.take(publication.to_bytes(), roster(desk.digest(committed)))
    exchange.take(committed.to_bytes(), roster(desk.digest(committed)))
    assert set(exchange.versions(ROUND)[MINER]) == {
        desk.digest(each) for each in (*versions[:VERSIONS_KEPT], committed)
    }


@pytest.mark.parametrize("field", ["payload_bytes", "steps", "local_from_round"])
@pytest.mark.parametrize("value", [-1, 1 << 64, 1 << 300])
def test_take__numbers_that_no_contract_can_hold__is_rejected(
    desk: Desk, work: Work, exchange: Exchange, field: str, value: int
) -> None:
    record = json.loads(desk.publish(work, OPERATOR).to_bytes())
    record["submission"][field] = value
    data = json.dumps(record, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises(Rejected):
        exchange.take(data, roster())


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_take__mutated_record__is_rejected_or_the_same_submission(
    desk: Desk, work: Work, exchange: Exchange, data: st.DataObject
) -> None:
    publication = desk.publish(work, OPERATOR)
    record = bytearray(publication.to_bytes())
    place = data.draw(st.integers(0, len(record) - 1))
    match data.draw(st.sampled_from(("flip", "cut", "insert", "swap"))):
        case "flip":
            record[place] ^= data.draw(st.integers(1, 255))
        case "cut":
            del record[place : place + data.draw(st.integers(1, 40))]
        case "insert":
            record[place:place] = data.draw(st.binary(min_size=1, max_size=8))
        case "swap":
            other = data.draw(st.integers(0, len(record) - 1))
            record[place], record[other] = record[other], record[place]
    try:
        taken = exchange.take(bytes(record), roster())
    except Rejected:
        return
    assert taken.signed.submission == publication.signed.submission


async def test_content__false_locators_first__do_not_displace_the_true_ones(
    desk: Desk, work: Work, exchange: Exchange, peers: Peers
) -> None:
    true = desk.publish(work, OPERATOR)
    peers.has(work.blobs["payload"])
    other_blob = peers.has(b"a blob of somebody else")
    liars = [lying(true, f"lie {number}") for number in range(LOCATORS_KEPT - 2)]
    liars.append(replace(true, blobs=dict.fromkeys(true.blobs, other_blob)))
    for number, lie in enumerate(liars):
        exchange.take(lie.to_bytes(), roster(), f"liar {number}")
    exchange.take(true.to_bytes(), roster(), "honest")
    read = partial(read_payload, submission=true.signed.submission, spec=desk.spec)
    ref, payload = await exchange.content(liars[0], "payload", SOMEWHERE, read)
    assert ref == true.blobs["payload"]
    assert payload.root() == true.signed.submission.payload_root


async def test_content__one_peer_tells_many_lies__is_listened_to_once(
    desk: Desk, work: Work, exchange: Exchange, peers: Peers
) -> None:
    true = desk.publish(work, OPERATOR)
    peers.has(work.blobs["payload"])
    for number in range(3 * LOCATORS_KEPT):
        exchange.take(lying(true, f"lie {number}").to_bytes(), roster(), "liar")
    exchange.take(true.to_bytes(), roster(), "honest")
    read = partial(read_payload, submission=true.signed.submission, spec=desk.spec)
    ref, _ = await exchange.content(true, "payload", SOMEWHERE, read)
    assert ref == true.blobs["payload"]
    assert len(peers.asked) == 2


async def test_content__only_lies__is_retryable_while_one_may_still_be_true(
    desk: Desk, work: Work, exchange: Exchange, peers: Peers
) -> None:
    true = desk.publish(work, OPERATOR)
    other_blob = peers.has(b"a blob of somebody else")
    read = partial(read_payload, submission=true.signed.submission, spec=desk.spec)
    wrong = replace(true, blobs=dict.fromkeys(true.blobs, other_blob))
    exchange.take(wrong.to_bytes(), roster(), "one")
    with pytest.raises(Rejected):
        await exchange.content(true, "payload", SOMEWHERE, read)
    exchange.take(lying(true, "nowhere").to_bytes(), roster(), "another")
    with pytest.raises(Retryable):
        await exchange.content(true, "payload", SOMEWHERE, read)


async def test_content__larger_than_the_spec_allows__is_never_asked_for(
    desk: Desk, work: Work, exchange: Exchange, peers: Peers
) -> None:
    true = desk.publish(work, OPERATOR)
    exchange.take(lying(true, "huge", size=1 << 36).to_bytes(), roster())
    for kind in true.blobs:
        with pytest.raises(Rejected, match="more than one can have"):
            await exchange.content(true, kind, SOMEWHERE, bytes)
    assert peers.asked == []


def test_confirm__locators_that_were_followed__are_preferred_and_served_first(
    desk: Desk, work: Work, exchange: Exchange, tmp_path: Path, peers: Peers
) -> None:
    true = desk.publish(work, OPERATOR)
    digest = desk.digest(true)
    exchange.take(lying(true, "lie").to_bytes(), roster(digest), "liar")
    exchange.confirm(true)
    assert exchange.committed(roster(digest)) == {MINER: true}
    listed = RecordBoard(tmp_path / "board").records(topic_of(ROUND))
    assert listed[0] == true.to_bytes()
    again = make(desk, tmp_path, peers)
    again.reload(roster(digest))
    assert again.committed(roster(digest)) == {MINER: true}


async def test_pull__peers_that_lie_or_are_silent__do_not_keep_the_truth_away(
    desk: Desk, work: Work, exchange: Exchange, peers: Peers
) -> None:
    true = desk.publish(work, OPERATOR)
    topic = topic_of(ROUND)
    forged = desk.publish(work, key_named("stranger")).to_bytes()
    peers.listings = {
        ("a", topic): [b"", b"{}", b"\xff" * 40, forged],
        ("b", topic): [true.to_bytes()],
    }
    await exchange.pull(roster(), ["silent", "a", "b"])
    assert exchange.versions(ROUND) == {MINER: {desk.digest(true): true}}


async def test_pull__one_listing_that_does_not_end__does_not_keep_the_others_away(
    desk: Desk, work: Work, exchange: Exchange, peers: Peers
) -> None:
    true = desk.publish(work, OPERATOR)
    peers.listings = {("b", topic_of(ROUND)): [true.to_bytes()]}
    peers.slow, peers.limits = {"slow"}, ClientLimits(request_timeout_s=0.05)
    async with asyncio.timeout(5):
        await exchange.pull(roster(), ["slow", "b"])
    assert exchange.versions(ROUND) == {MINER: {desk.digest(true): true}}


async def test_pull__more_records_than_a_board_lists__are_not_looked_at(
    desk: Desk, work: Work, exchange: Exchange, peers: Peers
) -> None:
    true = desk.publish(work, OPERATOR)
    peers.listings = {("a", topic_of(ROUND)): [*[b"{}"] * 8, true.to_bytes()]}
    await exchange.pull(roster(), ["a"])
    assert exchange.versions(ROUND) == {}


def test_forget__old_rounds__are_gone_also_from_the_board(
    desk: Desk, work: Work, exchange: Exchange, tmp_path: Path, peers: Peers
) -> None:
    publication = desk.publish(work, OPERATOR)
    exchange.take(publication.to_bytes(), roster())
    exchange.forget_before(ROUND)
    assert exchange.versions(ROUND) != {}
    exchange.forget_before(Round(ROUND + 1))
    assert exchange.versions(ROUND) == {}
    again = make(desk, tmp_path, peers)
    again.reload(roster())
    assert again.versions(ROUND) == {}
