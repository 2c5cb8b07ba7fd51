"""A stepped subnet: a real chain, really deployed contracts, real nodes with real servers and keys, in one process.

Nothing waits for the wall clock. The chain's time moves when the test says so (and by one second with each
transaction), and the roles do what there is to do when the test lets them: `Subnet.run_round` leads everybody through
a round, `Subnet.moments` stops before each window so that a test can interfere.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hunter.cheats import behaviour_named as hunter_named
from hunter.hunter import Hunter
from ledger.accounting import Books, take_books
from ledger.connection import Connection
from ledger.contracts import Contracts
from ledger.contracts.registry import Role
from ledger.deploy import deploy
from ledger.events import EventReader
from ledger.keys import LocalSigner
from ledger.outbox import Outbox
from ledger.outbox_pump import OutboxSettings
from ledger.reverts import revert_error
from ledger.transactions import Call
from miner.behaviour import Behaviour
from miner.cheats import behaviour_named
from miner.miner import Miner
from node.node import Node, NodeConfig
from protocol.beacon import Purpose
from protocol.clock import RoundClock
from protocol.hashing import keccak256
from protocol.ids import Address, Epoch, Hash32, Round, Slot, Units
from protocol.runfile import RunFile
from protocol.spec import CodecSpec, OuterSpec, RunSpec
from protocol.submission import operator_consent_digest
from scoring.book import ScoreBook
from scoring.report import RoundReport, value_of
from tests.chain import Anvil, start_anvil
from tests.ports import free_port
from tests.specs import MODEL, SPEC, tokens
from training.dataset import TokenDataset
from training.inner import InnerLoop, Loops
from training.model_folder import read_model
from training.parameters import initial_parameters
from training.prepare import prepare_dataset
from training.roots import state_root
from validator.cheats import CHEATS as VALIDATOR_CHEATS
from validator.cheats import behaviour_named as validator_named
from validator.shelf import REPORT, parse_locator, round_topic
from validator.validator import Validator

ROOT = Path(__file__).resolve().parent.parent.parent
FAST = OutboxSettings(poll_s=0.05, finality_blocks=3, rebroadcast_s=5, receipt_timeout_s=20)
STAKE = {Role.MINER: tokens(200), Role.VALIDATOR: tokens(2000)}
FUNDS = tokens(1_000)
"""Tokens of an operator or hunter, for bonds."""
CAP, ALLOCATION = tokens(10_000_000), tokens(1_000_000)
MODEL_SPEC = replace(MODEL, vocab_size=300, layers=1)
INNER = replace(SPEC.inner, steps=6, batch=8, learning_rate="0.03")
CODEC = replace(SPEC.codec, chunk=256, k=128)
"""It learns within a few rounds, so that scores tell work from luck."""

CLOCK = {
    "rounds_per_epoch": 2,
    "train_s": 200,
    "put_s": 50,
    "publish_s": 50,
    "attest_s": 50,
    "apply_s": 50,
    "weight_commit_s": 40,
    "weight_reveal_s": 40,
    "settlement_turn_s": 20,
    "settlement_window_s": 50,
    "settlement_void_s": 250,
    "unbonding_s": 30_000,
}
"""Room for a transaction a second in each window; an epoch is settled in the first round of the next one."""


class Moment(StrEnum):
    """Where a round stops for the test, each just inside the window that it names."""

    TRAIN = "train"
    REVEAL = "reveal"
    POST = "post"
    COMMIT = "commit"
    PUBLISH = "publish"
    ATTEST = "attest"
    EVALUATE = "evaluate"
    APPLY = "apply"


@dataclass(kw_only=True)
class Member:
    """A participant. `node` and `role` are None while it is closed; one that sleeps runs but does nothing."""

    name: str
    kind: Role
    owner: Address
    key: LocalSigner
    folder: Path
    port: int
    behaviour: str = "honest"
    data_dir: Path | None = None
    start_dir: Path | None = None
    loops: Loops = InnerLoop
    asleep: bool = False
    node: Node | None = None
    role: Miner | Validator | Hunter | None = None
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def open_node(self) -> Node:
        """The node, which must be open."""
        assert self.node is not None, f"{self.name} is closed"
        return self.node

    @property
    def head(self) -> Round:
        """The round at whose start its model stands."""
        return self.open_node.follower.head

    @property
    def root(self) -> Hash32:
        """State root of its model."""
        return self.open_node.follower.root

    def validator(self) -> Validator:
        assert isinstance(self.role, Validator)
        return self.role

    def hunter(self) -> Hunter:
        assert isinstance(self.role, Hunter)
        return self.role

    def miner(self) -> Miner:
        assert isinstance(self.role, Miner)
        return self.role


class Subnet:
    """A run with its participants. Made by `subnet`."""

    def __init__(
        self,
        *,
        anvil: Anvil,
        folder: Path,
        run_file: RunFile,
        dataset: TokenDataset,
        connection: Connection,
        reader: EventReader,
        deployer: Address,
        governor: Address,
        outbox: OutboxSettings,
        disputes: bool,
    ) -> None:
        self.anvil = anvil
        self.folder = folder
        self.run_file = run_file
        self.dataset = dataset
        self.connection = connection
        self.reader = reader
        self.deployer = deployer
        self.governor = governor
        self.outbox = outbox
        self.disputes = disputes
        self.contracts = Contracts(connection, run_file.contracts)
        self.clock = RoundClock(run_file.spec.chain)
        self.members: list[Member] = []
        self.round = Round(1)
        """The next one to be run."""
        self.paused_s = 0
        """Length of all pauses that are over."""
        self._paused_at = 0

    # -- participants ------------------------------------------------------------------------------

    @property
    def miners(self) -> list[Member]:
        return [member for member in self.members if member.kind is Role.MINER]

    @property
    def validators(self) -> list[Member]:
        return [member for member in self.members if member.kind is Role.VALIDATOR]

    @property
    def hunters(self) -> list[Member]:
        return [member for member in self.members if member.kind is Role.NONE]

    def named(self, name: str) -> Member:
        return next(member for member in self.members if member.name == name)

    async def join(self, kind: Role, name: str, *, behaviour: str = "honest") -> Member:
        """A new participant with its stake; its slot counts from the next epoch on. Its node is not opened."""
        key = key_named(f"{name}'s operator")
        owner = key.address if kind is Role.NONE else key_named(name).address
        member = Member(
            name=name,
            kind=kind,
            owner=owner,
            key=key,
            folder=self.folder / name,
            port=free_port(),
            behaviour=behaviour,
            data_dir=self.dataset.folder,
        )
        for account in {owner, key.address}:
            self.anvil.fund(account)
        token = self.contracts.token
        if kind is not Role.MINER:
            self.send(self.deployer, token.transfer_call(key.address, FUNDS))
        if kind is not Role.NONE:
            self.send(self.deployer, token.transfer_call(owner, STAKE[kind]))
            self.send(owner, token.approve_call(self.contracts.vault.address, Units(2**255)))
            self.send(owner, self.contracts.vault.deposit_call(STAKE[kind]))
            self.send(owner, self.registration(member))
        self.members.append(member)
        return member

    def registration(self, member: Member, *, key: LocalSigner | None = None) -> Call:
        """The call by which a member registers, with its first operator key."""
        key = key or member.key
        digest = operator_consent_digest(
            domain=self.run_file.domain, run=self.run_file.run, account=member.owner, nonce=0
        )
        return self.contracts.registry.register_call(
            member.kind,
            operator=key.address,
            consent=key.sign_digest(digest),
            payout=None,
            endpoint=member.url,
        )

    async def open(self, *members: Member) -> None:
        """Starts members' nodes and roles, each from its own folder."""
        await asyncio.gather(*(self._open(member) for member in members))

    async def _open(self, member: Member) -> None:
        mining: Behaviour | None = None
        if member.kind is Role.MINER:
            mining = behaviour_named(member.behaviour)
        config = NodeConfig(
            state_dir=member.folder,
            rpc_url=self.anvil.url,
            port=member.port,
            data_dir=member.data_dir,
            start_dir=member.start_dir,
            allow_private=True,
            store_bytes=1 << 30,
            outbox=self.outbox,
        )
        member.stack = AsyncExitStack()
        opened = Node.open(
            config,
            self.run_file,
            member.key,
            providers=mining.providers() if mining else None,
        )
        member.node = await member.stack.enter_async_context(opened)
        if member.kind is Role.MINER:
            member.role = Miner(member.node, mining, loops=member.loops)
            member.stack.callback(member.role.close)
        elif member.kind is Role.NONE:
            hunting = hunter_named(
                member.behaviour, disputes=self.disputes, audits=8 if self.disputes else 1
            )
            member.role = Hunter(member.node, hunting)
            member.stack.callback(member.role.close)
        else:
            member.role = Validator(member.node, validator_named(member.behaviour))
            member.stack.callback(member.role.close)
            await member.role.prepare()

    async def close(self, *members: Member) -> None:
        """Stops members; what is not in their folders is lost."""
        for member in members:
            await member.stack.aclose()
            member.node = member.role = None

    async def reopen(self, *members: Member) -> None:
        await self.close(*members)
        await self.open(*members)

    @contextmanager
    def asleep(self, *members: Member) -> Iterator[None]:
        """These members do nothing meanwhile; their servers answer."""
        for member in members:
            member.asleep = True
        try:
            yield
        finally:
            for member in members:
                member.asleep = False

    @contextmanager
    def no_chores(self, really: bool = True) -> Iterator[None]:
        """No validator does what anyone may do for all meanwhile; their own duties go on."""

        async def nothing() -> None: ...

        with ExitStack() as stack:
            for member in self.validators if really else []:
                caretaker = member.validator()._caretaker
                stack.enter_context(patch.object(caretaker, "work", nothing))
            yield

    # -- the chain ---------------------------------------------------------------------------------

    def send(self, sender: Address, call: Call) -> dict[str, Any]:
        """Sends a call from any account, key or no key, and returns the receipt.

        Raises:
            Reverted: the contract refuses it.
        """
        transaction = {"from": sender, "to": call.to, "data": "0x" + call.data.hex()}
        refusal = self.anvil.try_rpc("eth_call", transaction, "pending").get("error")
        if refusal is not None:
            data = bytes.fromhex(str(refusal.get("data") or "0x").removeprefix("0x"))
            raise revert_error(data, label=call.label)
        receipt = self.anvil.transact({**transaction, "gas": hex(10_000_000)})
        assert receipt["status"] == "0x1", f"{call.label} was refused in a block"
        return receipt

    @property
    def time(self) -> int:
        """The run's: the chain's less pauses that are over."""
        return self.anvil.time() - self.paused_s

    def go_to(self, timestamp: int) -> None:
        """Mines a block at this second of the run's, unless it is past."""
        if timestamp > self.time:
            self.anvil.advance_to(timestamp + self.paused_s)

    def pause(self) -> None:
        """The governor stops the run's clocks."""
        self.send(self.governor, self.contracts.epochs.pause_call())
        self.note_paused()

    def resume(self) -> None:
        """The governor lets them go on."""
        self.send(self.governor, self.contracts.epochs.resume_call())
        self.note_resumed()

    def note_paused(self) -> None:
        """Somebody stopped them in the newest block."""
        self._paused_at = self.anvil.time()

    def note_resumed(self) -> None:
        """Somebody let them go on in the newest block."""
        self.paused_s += self.anvil.time() - self._paused_at

    # -- time ----------------------------------------------------------------------------------

    async def work(
        self, passes: int = 1, *, only: Collection[Member] | None = None, mining: bool = False
    ) -> None:
        """Everybody that is open and awake does what there is to do, one after the other, so often.

        Validators go first, in an order of their own in each round, then miners, then hunters. `mining` adds a block
        after each pass.
        """
        for _ in range(passes):
            for member in self._in_order():
                if (
                    member.role is None
                    or member.asleep
                    or (only is not None and member not in only)
                ):
                    continue
                await member.role.step()
                self._wait_for_block()
            if mining:
                self.anvil.mine()

    def _wait_for_block(self) -> None:
        """Until the chain has taken what was sent; it answers a moment before it mines."""
        while self.anvil.rpc("txpool_status")["pending"] != "0x0":
            pass

    def _in_order(self) -> Sequence[Member]:
        validators = self.validators
        random.Random(int(self.round)).shuffle(validators)
        return [*validators, *self.miners, *self.hunters]

    async def moments(self) -> AsyncIterator[Moment]:
        """Moves time to each window of the next round in turn; the caller lets the members work.

        A round begins when its assignment beacon is about to be recorded and ends when its outcome is concluded and the
        beacon of the next one is fixed.
        """
        round_, clock = self.round, self.clock
        everyone = 1 + len(self.validators)
        if round_ == 1:
            self.go_to(clock.beacon_opens_after(round_, Purpose.ASSIGNMENT) + everyone)
            await self.work()
        self.go_to(clock.start(round_) + 2)
        self.anvil.mine(everyone)
        yield Moment.TRAIN
        ended = Epoch(clock.epoch_of(round_) - 1)
        if ended >= 1 and round_ == clock.first_round(Epoch(ended + 1)):
            self.go_to(clock.weight_commit_deadline(ended) + 1)
            yield Moment.REVEAL
            self.go_to(clock.weight_reveal_deadline(ended) + everyone)
            yield Moment.POST
        self.go_to(clock.put_opens(round_))
        yield Moment.COMMIT
        self.go_to(clock.put_deadline(round_) + 1)
        yield Moment.PUBLISH
        self.go_to(clock.publish_deadline(round_) + everyone)
        yield Moment.ATTEST
        self.anvil.mine(everyone)
        yield Moment.EVALUATE
        self.go_to(clock.attest_deadline(round_) + everyone)
        yield Moment.APPLY
        self.round = Round(round_ + 1)

    async def run_round(self) -> Round:
        """Leads everybody through the next round and returns its number."""
        round_ = self.round
        async for moment in self.moments():
            await self.work(2 if moment is Moment.PUBLISH else 1)
        return round_

    async def run_rounds(self, count: int) -> None:
        for _ in range(count):
            await self.run_round()

    # -- what is there to see --------------------------------------------------------------------

    async def poll(self) -> EventReader:
        """The stored events, up to date."""
        await self.reader.poll()
        return self.reader

    async def books(self) -> Books:
        """The books of now."""
        await self.reader.poll()
        return await take_books(self.contracts, self.reader)

    async def assert_balanced(self) -> None:
        """Every contract holds what it owes, to the unit."""
        books = await self.books()
        assert books.balanced, books
        assert books.token_balance == books.accounted

    async def assert_paid(self, *members: Member) -> None:
        """Each of these miners and validators has claimed what its newest final leaf says; not all got nothing."""
        claimed = []
        for member in members:
            newest = await self.validators[0].open_node.settlements.newest_leaf(member.owner)
            assert newest is not None, member.name
            claimed.append(await self.contracts.rewards.claimed_of(member.owner))
            assert claimed[-1] == newest[1].cumulative, member.name
            assert claimed[-1] > 0 or member.kind is Role.MINER, member.name
        assert sum(claimed) > 0

    async def wealth_of(self, hunter: Member) -> int:
        """What the only hunter has: tokens, bonds that stand behind no challenge, bounties that wait for it."""
        contracts = self.contracts
        return (
            await contracts.token.balance_of(hunter.owner)
            + await contracts.faults.free_bond(hunter.owner)
            + await contracts.verdicts.bounties_held()
        )

    def assert_agreement(self, *members: Member) -> Hash32:
        """All open nodes (or these) stand at the same round with the same root, which is returned."""
        nodes = {
            member.name: (member.head, member.root)
            for member in members or self.members
            if member.node is not None
        }
        assert len(set(nodes.values())) == 1, nodes
        return next(iter(nodes.values()))[1]

    def book(self, validator: Member) -> ScoreBook:
        """What a validator thinks of the miners."""
        return validator.validator()._scorer.book

    def heldout_loss(self, round_: Round) -> float:
        """Held-out loss of the model at the end of a round, as a validator reported it."""
        node = self.validators[0].open_node
        ref = parse_locator(node.board.records(round_topic(round_))[0])[REPORT]
        report = node.store.get(ref.digest)
        assert report is not None
        return value_of(RoundReport.from_bytes(report).heldout_loss)

    async def final_root(self, round_: Round) -> Hash32 | None:
        """The root that the chain finalised for the start of a round."""
        return await self.contracts.epochs.finalised_root(round_)

    async def slot(self, member: Member, epoch: Epoch | None = None) -> Slot | None:
        """The slot of a member in an epoch (the current one)."""
        epoch = epoch or Epoch(max(1, self.clock.epoch_at(self.time)))
        held = await self.contracts.registry.slot_of(member.owner, epoch)
        return held[1] if held else None

    def failed_transactions(self) -> list[str]:
        """Hashes of the transactions since the run began that a block refused."""
        failed = []
        for number in range(self.run_file.deploy_block, self.anvil.block_number() + 1):
            receipts = self.anvil.rpc("eth_getBlockReceipts", hex(number))
            failed += [each["transactionHash"] for each in receipts if each["status"] != "0x1"]
        return failed


@contextmanager
def start_stepped_anvil() -> Iterator[Anvil]:
    """A chain whose time only `Subnet` moves: a block with each transaction, a second with each block."""
    with start_anvil("--timestamp", "1700000000") as anvil:
        anvil.rpc("anvil_setBlockTimestampInterval", 1)
        anvil.rpc("anvil_autoImpersonateAccount", True)
        yield anvil


@asynccontextmanager
async def subnet(
    anvil: Anvil,
    folder: Path,
    dataset: TokenDataset,
    *,
    miners: Sequence[str] = ("honest", "honest"),
    validators: int = 2,
    hunters: int = 0,
    rogues: Sequence[str] = (),
    disputes: bool = False,
    outbox: OutboxSettings = FAST,
    codec: CodecSpec = CODEC,
    outer: OuterSpec = SPEC.outer,
    start: Path | None = None,
    loops: Mapping[str, Loops] | None = None,
    **chain: int,
) -> AsyncIterator[Subnet]:
    """A fresh run whose members are registered, open and waiting for genesis.

    Args:
        anvil: from `start_stepped_anvil`.
        miners: the behaviour of each. Names are the behaviour and a number, if there are several of a kind.
        validators: how many; named v1, v2, …
        hunters: how many; named h1, h2, …
        rogues: kinds of validators and hunters that cheat, on top; named like the miners.
        disputes: whether the hunters open games about work that they can't reproduce.
        outbox: how all members watch their transactions.
        codec, outer: parts of the spec.
        start: a folder with the model to start from, which v1 alone has.
        loops: what trains the miners of these names.
        **chain: parameters that differ from `CLOCK` and `tests.specs`.
    """
    async with AsyncExitStack() as stack:
        connection = await stack.enter_async_context(await Connection.open(anvil.url))
        deployer, governor = key_named("deployer"), key_named("governor").address
        for account in (deployer.address, governor):
            anvil.fund(account)
        deployers_box = await stack.enter_async_context(
            await Outbox.open(folder / "deployer.db", connection, deployer, settings=FAST)
        )
        genesis_time = anvil.time() + 1_000
        spec = subnet_spec(dataset, codec=codec, outer=outer, genesis_time=genesis_time, **chain)
        if start is not None:
            spec = starting_from(start, spec)
        run_file = await deploy(
            connection,
            deployers_box,
            spec,
            cap=CAP,
            genesis_allocation=ALLOCATION,
            governor=governor,
        )
        reader = await EventReader.open(
            folder / "events.db", connection, run_file.contracts, from_block=run_file.deploy_block
        )
        stack.callback(reader.close)
        net = Subnet(
            anvil=anvil,
            folder=folder,
            run_file=run_file,
            dataset=dataset,
            connection=connection,
            reader=reader,
            deployer=deployer.address,
            governor=governor,
            outbox=outbox,
            disputes=disputes,
        )
        for number in range(1, validators + 1):
            await net.join(Role.VALIDATOR, f"v{number}")
        for name, behaviour in _names(rogues):
            kind = Role.VALIDATOR if behaviour in VALIDATOR_CHEATS else Role.NONE
            await net.join(kind, name, behaviour=behaviour)
        for name, behaviour in _names(miners):
            member = await net.join(Role.MINER, name, behaviour=behaviour)
            member.loops = (loops or {}).get(name, InnerLoop)
        for number in range(1, hunters + 1):
            await net.join(Role.NONE, f"h{number}")
        net.validators[0].start_dir = start
        try:
            await net.open(*net.members)
            yield net
        finally:
            await net.close(*net.members)


def subnet_spec(
    dataset: TokenDataset,
    *,
    codec: CodecSpec = CODEC,
    outer: OuterSpec = SPEC.outer,
    **chain: int,
) -> RunSpec:
    """The spec of a stepped subnet over a data set; `chain`: parameters that differ."""
    params = replace(
        SPEC.chain,
        **{**CLOCK, **chain},  # type: ignore[arg-type]  # seconds, blocks and amounts alike
        steps=INNER.steps,
        samples_per_round=INNER.steps * INNER.batch,
        train_samples=dataset.spec.train_samples,
        dataset_depth=dataset.depth,
        dataset_root=dataset.root,
        genesis_root=state_root(initial_parameters(MODEL_SPEC)),
        codec_chunk=codec.chunk,
    )
    return replace(
        SPEC,
        chain=params,
        model=MODEL_SPEC,
        data=dataset.spec,
        inner=replace(INNER, trace_every=params.trace_every),
        codec=codec,
        outer=outer,
        scoring=replace(SPEC.scoring, rand_samples=128),
    )


def starting_from(folder: Path, spec: RunSpec) -> RunSpec:
    """The same run from the model in a folder, trained more gently."""
    stored = read_model(folder, context=spec.data.sample_tokens - 1)
    return replace(
        spec,
        chain=replace(spec.chain, genesis_root=state_root(stored.params)),
        model=stored.model,
        start="checkpoint",
        inner=replace(spec.inner, learning_rate="0.01"),
    )


def prepare_text(folder: Path) -> TokenDataset:
    """A small data set of real text: the repository's own."""
    prepare_dataset(
        [path.read_text() for path in (ROOT / "LICENSE", *sorted((ROOT / "docs").glob("*.md")))],
        folder,
        vocab_size=MODEL_SPEC.vocab_size,
        context=MODEL_SPEC.context,
        heldout_fraction=0.1,
    )
    return TokenDataset.open(folder)


def key_named(name: str) -> LocalSigner:
    """A key that has the same address in every run."""
    return LocalSigner(keccak256(name.encode()))


def _names(behaviours: Sequence[str]) -> Iterator[tuple[str, str]]:
    """honest1, honest2, copier, …"""
    for index, behaviour in enumerate(behaviours):
        number = behaviours[: index + 1].count(behaviour)
        several = behaviours.count(behaviour) > 1 or behaviour == "honest"
        yield (f"{behaviour}{number}" if several else behaviour), behaviour
