"""Weights are committed and revealed once each, in their windows, under a salt that is secret and repeatable."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from ledger.contracts import Contracts
from ledger.contracts.registry import Role, SlotHolder
from ledger.keys import LocalSigner
from ledger.transactions import Call
from node.chain import Snapshot
from node.journal import Journal
from node.node import BLOBS, BOARD
from protocol.clock import RoundClock
from protocol.ids import Address, Epoch, Hash32, Round, Slot, Units
from protocol.settlement import weights_commitment
from scoring.book import RoundObservation, ScoreBook
from scoring.evaluation import Evaluation
from scoring.replay import replay_weights
from scoring.report import book_digest
from scoring.rules import Rules
from syntience.published import HomeSource, read_epoch
from tests.bench import Desk, desk_over
from tests.subnet.kills import Killed
from tests.subnet.stepped import key_named
from training.dataset import TokenDataset
from transport.board import RecordBoard
from transport.limits import MIB
from transport.store import FolderStore
from validator.shelf import Shelf
from validator.weights import WeightKeeper

EPOCH = Epoch(1)
MINERS = [key_named(f"miner {number}").address for number in range(3)]
ME, KEY = key_named("v1").address, key_named("v1's operator")


@dataclass
class FakeOutbox:
    """Remembers what was sent, as an outbox does over restarts."""

    sent: dict[str, Call] = field(default_factory=dict)

    def known(self, key: str) -> bool:
        return key in self.sent

    async def send(self, call: Call, key: str) -> None:
        self.sent.setdefault(key, call)


@dataclass
class FakeChain:
    """A chain at a time of the test's choice."""

    desk: Desk
    time: int = 0
    holders: tuple[Address, ...] = (ME,)
    slashed: set[Address] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.clock = RoundClock(self.desk.spec.chain)
        self.contracts = Contracts(None, self.desk.run_file.contracts)  # type: ignore[arg-type]

    @property
    def epoch(self) -> Epoch:
        return self.clock.epoch_at(self.time)

    async def snapshot(self, epoch: Epoch) -> Snapshot:
        def held(accounts: tuple[Address, ...]) -> dict[Slot, SlotHolder]:
            return {
                Slot(slot): SlotHolder(
                    slot=Slot(slot),
                    account=account,
                    operator=None,
                    next_operator=None,
                    payout=account,
                    stake=Units(1),
                    endpoint="",
                )
                for slot, account in enumerate(accounts)
            }

        return Snapshot(epoch=epoch, miners=held(tuple(MINERS)), validators=held(self.holders))

    def slot_count(self, role: Role) -> int:
        return len(MINERS)

    def faults_of_epoch(self, epoch: Epoch) -> set[Address]:
        return self.slashed


@dataclass
class World:
    """A validator's surroundings; `keeper` makes the one of a (re)started process."""

    desk: Desk
    folder: Path
    chain: FakeChain
    outbox: FakeOutbox = field(default_factory=FakeOutbox)

    @contextmanager
    def keeper(self, key: LocalSigner = KEY) -> Iterator[WeightKeeper]:
        journal = Journal.open(self.folder / "journal.db")
        node = SimpleNamespace(
            run_file=self.desk.run_file,
            signer=key,
            me=ME,
            chain=self.chain,
            journal=journal,
            outbox=self.outbox,
            board=RecordBoard(self.folder / BOARD),
            store=FolderStore(self.folder / BLOBS, MIB),
        )
        yield WeightKeeper(node)  # type: ignore[arg-type]
        journal.close()

    def call(self, what: str) -> Call | None:
        return self.outbox.sent.get(f"weights-{what}/{EPOCH}")


@pytest.fixture
def world(text: TokenDataset, tmp_path: Path) -> World:
    desk = desk_over(text)
    return World(desk=desk, folder=tmp_path, chain=FakeChain(desk))


def book(desk: Desk, rounds: int) -> ScoreBook:
    """A book of a subnet whose miners all improve the model, the first most."""
    found = ScoreBook.empty(Rules.of(desk.spec.scoring))
    clock = RoundClock(desk.spec.chain)
    for number in range(1, rounds + 1):
        found = found.observe_round(
            RoundObservation(
                round=Round(number),
                epoch=clock.epoch_of(Round(number)),
                void=False,
                accepted=tuple(MINERS),
                faults={},
                payload_roots={},
                evaluations=tuple(
                    Evaluation(
                        miner=miner,
                        rand_before=5.0,
                        rand_after=4.8 + place / 100,
                        own_before=5.0,
                        own_after=4.5,
                    )
                    for place, miner in enumerate(MINERS)
                ),
            )
        )
    return found


def salt_of(call: Call) -> Hash32:
    """The last argument of a reveal."""
    return Hash32(call.data[4 + 128 : 4 + 160])


async def test_work__through_its_windows__commits_then_reveals_what_it_committed(
    world: World,
) -> None:
    clock, scored = world.chain.clock, book(world.desk, 2)
    deadline = clock.weight_commit_deadline(EPOCH)
    with world.keeper() as keeper:
        world.chain.time = clock.epoch_end(EPOCH)
        await keeper.work(scored)
        assert world.outbox.sent == {}, "the contract takes it after the epoch, not at its end"
        world.chain.time += 1
        await keeper.work(scored)
        assert list(world.outbox.sent) == [f"weights-commit/{EPOCH}"]
        world.chain.time = deadline
        await keeper.work(scored)
        assert world.call("reveal") is None
        world.chain.time = deadline + 1
        await keeper.work(scored)
    commit, reveal = world.call("commit"), world.call("reveal")
    assert commit is not None
    assert reveal is not None
    weights = reveal.data[4 + 160 + 32 :][: 2 * len(MINERS)]
    assert sum(int.from_bytes(weights[i : i + 2], "big") for i in range(0, 6, 2)) == 65535
    commitment = weights_commitment(
        run=world.desk.run_file.run,
        validator=ME,
        epoch=EPOCH,
        weights=weights,
        salt=salt_of(reveal),
    )
    scores = world.chain.contracts.scores
    assert commit.data == scores.commit_weights_call(EPOCH, commitment).data


async def test_work__restarted_between_with_another_book__reveals_the_fixed_weights(
    world: World,
) -> None:
    clock = world.chain.clock
    world.chain.time = clock.epoch_end(EPOCH) + 1
    with world.keeper() as keeper:
        await keeper.work(book(world.desk, 2))
    world.chain.time = clock.weight_commit_deadline(EPOCH) + 1
    with world.keeper() as keeper:
        await keeper.work(ScoreBook.empty(Rules.of(world.desk.spec.scoring)))
    reveal = world.call("reveal")
    assert reveal is not None
    assert reveal.data[4 + 160 + 32 :][:6] != bytes(6), "not the empty book's"


async def test_work__reveal_window_without_a_commit__reveals_nothing(world: World) -> None:
    world.chain.time = world.chain.clock.weight_commit_deadline(EPOCH) + 1
    with world.keeper() as keeper:
        await keeper.fix(EPOCH, book(world.desk, 2))
        await keeper.work(book(world.desk, 2))
    assert world.outbox.sent == {}


async def test_work__after_the_reveal_deadline__is_over(world: World) -> None:
    clock, scored = world.chain.clock, book(world.desk, 2)
    with world.keeper() as keeper:
        world.chain.time = clock.epoch_end(EPOCH) + 1
        await keeper.work(scored)
        world.chain.time = clock.weight_reveal_deadline(EPOCH) + 1
        await keeper.work(scored)
    assert world.call("reveal") is None


async def test_work__last_round_not_scored_yet__waits_until_the_last_moment(world: World) -> None:
    clock, unfinished = world.chain.clock, book(world.desk, 1)
    deadline = clock.weight_commit_deadline(EPOCH)
    with world.keeper() as keeper:
        for time, committed in ((deadline - 4, False), (deadline - 3, True)):
            world.chain.time = time
            await keeper.work(unfinished)
            assert (world.call("commit") is not None) == committed


async def test_fix__no_validator_in_that_epoch__fixes_nothing(world: World) -> None:
    world.chain.holders = (key_named("another").address,)
    with world.keeper() as keeper:
        await keeper.fix(EPOCH, book(world.desk, 2))
        world.chain.time = world.chain.clock.epoch_end(EPOCH) + 1
        await keeper.work(book(world.desk, 2))
    assert world.outbox.sent == {}


async def test_fix__slashed_miner__weighs_nothing(world: World) -> None:
    world.chain.slashed = {MINERS[0]}
    with world.keeper() as keeper:
        await keeper.fix(EPOCH, book(world.desk, 2))
    report = await read_epoch(HomeSource(world.folder), EPOCH)
    assert report is not None
    assert (report.slashed, report.weights[0]) == ((MINERS[0],), 0)
    assert sum(report.weights[1:]) == 65535


async def test_fix__weights__are_published_with_what_they_follow_from(world: World) -> None:
    scored = book(world.desk, 2)
    with world.keeper() as keeper:
        await keeper.fix(EPOCH, scored)
    report = await read_epoch(HomeSource(world.folder), EPOCH)
    assert report is not None
    assert replay_weights(report, scored) == ()
    assert (report.book, report.round) == (book_digest(scored), 2)


def die(*_: object) -> None:
    raise Killed


async def test_work__killed_before_publishing__publishes_what_was_fixed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.chain.time = world.chain.clock.epoch_end(EPOCH) + 1
    with world.keeper() as keeper, monkeypatch.context() as killed:
        killed.setattr(Shelf, "offer_epoch", die)
        with pytest.raises(Killed):
            await keeper.work(book(world.desk, 2))
    world.chain.slashed = {MINERS[0]}
    with world.keeper() as keeper:
        await keeper.work(book(world.desk, 2))
    report = await read_epoch(HomeSource(world.folder), EPOCH)
    assert report is not None
    assert (report.slashed, report.round) == ((), 2)
    assert world.call("commit") is not None


async def salt(world: World, key: LocalSigner, epoch: Epoch, folder: Path) -> Hash32:
    """The salt of the reveal that a fresh process with this key makes for an epoch."""
    there = World(desk=world.desk, folder=folder, chain=FakeChain(world.desk))
    with there.keeper(key) as keeper:
        clock = there.chain.clock
        await keeper.fix(epoch, book(world.desk, 2 * epoch))
        there.chain.time = clock.epoch_end(epoch) + 1
        await keeper.work(book(world.desk, 2 * epoch))
        there.chain.time = clock.weight_commit_deadline(epoch) + 1
        await keeper.work(book(world.desk, 2 * epoch))
    return salt_of(there.outbox.sent[f"weights-reveal/{epoch}"])


async def test_salt__same_key_and_epoch__is_the_same_and_nobody_elses(
    world: World, tmp_path: Path
) -> None:
    folders = iter(tmp_path / f"process {number}" for number in range(5))

    async def of(key: LocalSigner, epoch: int) -> Hash32:
        folder = next(folders)
        folder.mkdir()
        return await salt(world, key, Epoch(epoch), folder)

    mine = await of(KEY, 1)
    assert await of(KEY, 1) == mine, "also in a process that knows nothing but the key"
    others = [await of(KEY, 2), await of(key_named("somebody"), 1)]
    assert mine not in others
    assert others[0] != others[1]
