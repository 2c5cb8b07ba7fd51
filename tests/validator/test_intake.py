"""Before a bit is set: everything was fetched, is what was signed, and says what it should."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from miner.work import Work
from node.exchange import Exchange, Roster
from protocol.ids import Address, Hash32
from protocol.merkle import merkle_root
from protocol.submission import BlobRef, Publication
from scoring.checks import Expectation, Fault
from tests.bench import BEACON, ROUND, RUN, Desk, desk_over
from tests.node.peers import Peers
from tests.specs import some_hash
from tests.subnet.stepped import key_named
from training.dataset import TokenDataset
from training.roots import zero_local_root
from transport.board import RecordBoard
from transport.limits import MIB
from transport.store import FolderStore
from validator.intake import Holding, Intake

MINER, KEY = key_named("miner").address, key_named("operator")
MIRRORS = {MINER: ["http://127.0.0.1:1"]}


@pytest.fixture(scope="module")
def desk(text: TokenDataset) -> Desk:
    return desk_over(text)


@pytest.fixture(scope="module")
def work(desk: Desk) -> Work:
    return desk.work("honest", MINER)[0]


class Counter:
    """A validator's intake and what surrounds it."""

    def __init__(self, desk: Desk, folder: Path) -> None:
        self.desk = desk
        self.peers = Peers()
        self.exchange = Exchange(
            run_file=desk.run_file,
            board=RecordBoard(folder / "board"),
            store=FolderStore(folder / "blobs", 64 * MIB),
            client=self.peers,  # type: ignore[arg-type]
        )
        self.intake = Intake(run_file=desk.run_file, exchange=self.exchange)
        self.roster = Roster(round=ROUND, beacon=BEACON, operators={MINER: KEY.address}, commits={})

    def take(self, publication: Publication, source: str = "", *, commit: bool = True) -> Hash32:
        digest = self.desk.digest(publication)
        if commit:
            self.roster = replace(self.roster, commits={MINER: digest})
        self.exchange.take(publication.to_bytes(), self.roster, source)
        return digest

    def expectation(self, miner: Address = MINER) -> Expectation:
        spec = self.desk.spec
        leaves = [self.desk.dataset.leaf_hash(i) for i in self.desk.assigned(miner)]
        return Expectation(
            run=RUN,
            spec_hash=spec.hash(),
            round=ROUND,
            beacon=BEACON,
            miner=miner,
            initial_root=self.desk.start(miner).initial_root,
            recent_roots={},
            steps=spec.inner.steps,
            data_root=merkle_root(leaves),
            zero_local_root=zero_local_root(spec.model),
            origin=None,
            max_payload_bytes=1 << 20,
            max_steps_behind=3,
        )

    async def examine(self) -> Holding | None:
        await self.intake.examine(self.roster, {MINER: self.expectation()}, MIRRORS)
        return self.intake.held(self.roster).get(MINER)


@pytest.fixture
def counter(desk: Desk, tmp_path: Path) -> Counter:
    return Counter(desk, tmp_path)


def serve(counter: Counter, work: Work, *, without: str = "") -> None:
    for kind, data in work.blobs.items():
        if kind != without:
            counter.peers.has(data)


async def test_examine__honest_and_whole__is_held_without_faults_and_once(
    counter: Counter, desk: Desk, work: Work
) -> None:
    serve(counter, work)
    publication = desk.publish(work, KEY)
    counter.take(publication)
    holding = await counter.examine()
    assert holding == Holding(publication=publication, digest=desk.digest(publication), faults=())
    asked = len(counter.peers.asked)
    assert asked == len(work.blobs)
    await counter.examine()
    assert len(counter.peers.asked) == asked


async def test_examine__never_committed__is_not_examined(
    counter: Counter, desk: Desk, work: Work
) -> None:
    serve(counter, work)
    counter.take(desk.publish(work, KEY), commit=False)
    assert await counter.examine() is None
    assert counter.peers.asked == []


@pytest.mark.parametrize("kind", ["data", "local", "payload", "trace"])
async def test_examine__one_blob_missing__is_not_held_until_it_comes(
    counter: Counter, desk: Desk, work: Work, kind: str
) -> None:
    serve(counter, work, without=kind)
    counter.take(desk.publish(work, KEY))
    assert await counter.examine() is None
    counter.peers.has(work.blobs[kind])
    holding = await counter.examine()
    assert holding is not None
    assert holding.faults == ()


async def test_examine__more_slow_miners_than_are_asked_at_once__keep_no_honest_one_from_its_bit(
    counter: Counter, desk: Desk, work: Work
) -> None:
    serve(counter, work)
    counter.peers.slow = {"http://slow"}
    slow = [key_named(f"slow {number}") for number in range(5)]
    nowhere = dict.fromkeys(work.blobs, BlobRef(digest=some_hash("nowhere"), size=1))
    publications = {
        key.address: replace(desk.publish(work, key, miner=key.address), blobs=nowhere)
        for key in slow
    }
    publications[MINER] = desk.publish(work, KEY)
    roster = Roster(
        round=ROUND,
        beacon=BEACON,
        operators={MINER: KEY.address, **{key.address: key.address for key in slow}},
        commits={miner: desk.digest(each) for miner, each in publications.items()},
    )
    for publication in publications.values():
        counter.exchange.take(publication.to_bytes(), roster)
    mirrors = {**{miner: ["http://slow"] for miner in publications}, **MIRRORS}
    for _ in range(2):
        await counter.intake.examine(
            roster,
            {miner: counter.expectation(miner) for miner in publications},
            mirrors,
            patience_s=0.3,
        )
    assert set(counter.intake.held(roster)) == {MINER}


@pytest.mark.parametrize("kind", ["data", "local", "payload", "trace"])
async def test_examine__one_blob_is_not_what_was_signed__is_malformed(
    counter: Counter, desk: Desk, work: Work, kind: str
) -> None:
    serve(counter, work)
    wrong = counter.peers.has(work.blobs["trace" if kind != "trace" else "data"] + b"?")
    true = desk.publish(work, KEY)
    counter.take(replace(true, blobs={**true.blobs, kind: wrong}))
    holding = await counter.examine()
    assert holding is not None
    assert holding.faults == (Fault.FORMAT,)


async def test_examine__false_locators_from_another__are_forgotten_for_the_true_ones(
    counter: Counter, desk: Desk, work: Work
) -> None:
    serve(counter, work)
    elsewhere = counter.peers.has(b"something else")
    true = desk.publish(work, KEY)
    counter.take(replace(true, blobs=dict.fromkeys(true.blobs, elsewhere)), "liar")
    holding = await counter.examine()
    assert holding is not None
    assert holding.faults == (Fault.FORMAT,)
    counter.take(true, "miner")
    holding = await counter.examine()
    assert holding is not None
    assert (holding.faults, holding.publication) == ((), true)
    assert counter.exchange.committed(counter.roster) == {MINER: true}, "it is what we serve"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"spec_hash": some_hash("another spec")}, Fault.WRONG_SPEC),
        ({"steps": 3}, Fault.WRONG_STEPS),
        ({"data_root": some_hash("other data")}, Fault.FORMAT),
        ({"local_from_round": 1}, Fault.LOCAL_STATE),
    ],
    ids=lambda value: str(value) if isinstance(value, Fault) else "",
)
async def test_examine__says_something_wrong__is_held_with_that_fault(
    counter: Counter, desk: Desk, work: Work, change: dict[str, object], fault: Fault
) -> None:
    serve(counter, work)
    counter.take(desk.publish(work, KEY, **change))
    holding = await counter.examine()
    assert holding is not None
    assert fault in holding.faults


async def test_examine__started_elsewhere__cannot_be_told_from_format_by_its_trace(
    counter: Counter, desk: Desk, work: Work
) -> None:
    serve(counter, work)
    counter.take(desk.publish(work, KEY, initial_root=some_hash("another model")))
    holding = await counter.examine()
    assert holding is not None
    assert set(holding.faults) == {Fault.FORMAT, Fault.WRONG_ROOT}
