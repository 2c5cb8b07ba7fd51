"""A run on a real chain for tests: deployed, with a clock that the test moves and participants that the test makes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from ledger.connection import Connection
from ledger.contracts import Contracts
from ledger.contracts.registry import Role
from ledger.deploy import deploy
from ledger.events import EventReader
from ledger.keys import LocalSigner, new_private_key
from ledger.outbox import Outbox
from ledger.outbox_pump import OutboxSettings
from ledger.transactions import Call, Receipt
from protocol.beacon import Purpose
from protocol.clock import RoundClock
from protocol.ids import Address, Epoch, Hash32, Round, Slot, Units
from protocol.runfile import RunFile
from protocol.spec import ChainParams
from protocol.submission import SignedSubmission, Submission, operator_consent_digest
from tests.chain import Anvil
from tests.specs import SPEC, tokens

FAST = OutboxSettings(poll_s=0.05, finality_blocks=4, rebroadcast_s=0.5, receipt_timeout_s=20)
CAP = tokens(10_000_000)
ALLOCATION = tokens(1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A participant: its owner account's outbox and its operator's."""

    role: Role
    slot: Slot
    owner: Outbox
    operator: Outbox
    operator_key: LocalSigner

    @property
    def account(self) -> Address:
        return self.owner.address


@dataclass(slots=True, kw_only=True)
class World:
    """A deployed run. `sent` numbers the outbox keys, so that tests need not name them."""

    anvil: Anvil
    connection: Connection
    run_file: RunFile
    contracts: Contracts
    clock: RoundClock
    deployer: Outbox
    governor: Outbox
    reader: EventReader
    folder: Path
    stack: AsyncExitStack
    sent: int = 0
    boxes: dict[Address, Outbox] = field(default_factory=dict)

    async def outbox(self, signer: LocalSigner) -> Outbox:
        """An outbox that is closed with the world."""
        path = self.folder / f"{signer.address}.sqlite3"
        box = await Outbox.open(path, self.connection, signer, settings=FAST)
        self.boxes[signer.address] = await self.stack.enter_async_context(box)
        return box

    async def act(self, outbox: Outbox, call: Call) -> Receipt:
        """Sends a call and waits for it."""
        self.sent += 1
        return await outbox.submit(call, f"test/{self.sent}")

    async def join(self, role: Role, stake: Units) -> Member:
        """A new participant with this stake; its slot counts from the next epoch on."""
        owner, operator_key = self.anvil.key(), self.anvil.key()
        box, operator = await self.outbox(owner), await self.outbox(operator_key)
        for spender in (self.contracts.vault, self.contracts.rewards, self.contracts.faults):
            call = self.contracts.token.approve_call(spender.address, Units(2 * stake))
            await self.act(box, call)
        await self.act(
            self.deployer, self.contracts.token.transfer_call(owner.address, Units(2 * stake))
        )
        await self.act(box, self.contracts.vault.deposit_call(stake))
        digest = operator_consent_digest(
            domain=self.run_file.domain, run=self.run_file.run, account=owner.address, nonce=0
        )
        call = self.contracts.registry.register_call(
            role,
            operator=operator_key.address,
            consent=operator_key.sign_digest(digest),
            payout=None,
            endpoint="http://127.0.0.1:1",
        )
        await self.act(box, call)
        held = await self.contracts.registry.slot_of(owner.address, Epoch(1 << 30))
        assert held is not None
        return Member(
            role=role, slot=held[1], owner=box, operator=operator, operator_key=operator_key
        )

    def to(self, timestamp: int) -> None:
        """Moves the chain's time forward to this second."""
        if timestamp > self.anvil.time():
            self.anvil.advance_to(timestamp)

    async def draw(self, round_: Round, purpose: Purpose) -> Hash32:
        """Fixes and records a beacon."""
        self.to(self.clock.beacon_opens_after(round_, purpose) + 1)
        await self.act(self.deployer, self.contracts.epochs.fix_beacon_call(round_, purpose))
        self.anvil.mine(2)
        await self.act(self.deployer, self.contracts.epochs.record_beacon_call(round_, purpose))
        beacon = await self.contracts.epochs.beacon(round_, purpose)
        assert beacon is not None
        return beacon

    def submission(
        self, miner: Member, round_: Round, beacon: Hash32, **changes: object
    ) -> SignedSubmission:
        """A signed submission of a miner, its roots made up."""
        made_up = Hash32(bytes([7]) * 32)
        submission = replace(
            Submission(
                run=self.run_file.run,
                spec_hash=self.run_file.spec.hash(),
                round=round_,
                beacon=beacon,
                miner=miner.account,
                initial_root=self.run_file.spec.chain.genesis_root,
                local_from_round=Round(0),
                local_in=made_up,
                local_out=made_up,
                data_root=made_up,
                payload_root=made_up,
                payload_bytes=100,
                trace_root=made_up,
                steps=self.run_file.spec.chain.steps,
            ),
            **changes,  # type: ignore[arg-type]
        )
        digest = submission.digest(self.run_file.domain)
        return SignedSubmission(
            submission=submission, signature=miner.operator_key.sign_digest(digest)
        )


@asynccontextmanager
async def deployed(
    anvil: Anvil, folder: Path, *, params: ChainParams = SPEC.chain
) -> AsyncIterator[World]:
    """A fresh run on a chain whose time the test may move; genesis is a while away."""
    async with AsyncExitStack() as stack:
        connection = await stack.enter_async_context(await Connection.open(anvil.url))
        deployer = await stack.enter_async_context(
            await Outbox.open(folder / "deployer.sqlite3", connection, anvil.key(), settings=FAST)
        )
        governor = await stack.enter_async_context(
            await Outbox.open(folder / "governor.sqlite3", connection, anvil.key(), settings=FAST)
        )
        params = replace(params, genesis_time=anvil.time() + 10_000)
        run_file = await deploy(
            connection,
            deployer,
            replace(SPEC, chain=params, data=replace(SPEC.data, dataset_root=params.dataset_root)),
            cap=CAP,
            genesis_allocation=ALLOCATION,
            governor=governor.address,
        )
        contracts = Contracts(connection, run_file.contracts)
        reader = await EventReader.open(
            folder / "events.sqlite3",
            connection,
            run_file.contracts,
            from_block=run_file.deploy_block,
        )
        stack.callback(reader.close)
        clock = RoundClock(params)
        yield World(
            anvil=anvil,
            connection=connection,
            run_file=run_file,
            contracts=contracts,
            clock=clock,
            deployer=deployer,
            governor=governor,
            reader=reader,
            folder=folder,
            stack=stack,
        )


def stranger() -> Address:
    """An address that nothing ever happened to."""
    return LocalSigner(new_private_key()).address


async def until(condition: object, *, seconds: float = 10) -> None:
    """Waits until a function returns something true."""
    assert callable(condition)
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.02)
