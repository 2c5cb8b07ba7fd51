"""A committed submission on a real chain, its attest deadline over, that three validators vouched for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from ledger.contracts.epochs import Ballot
from ledger.contracts.registry import Role
from ledger.contracts.requests import Item, ItemKind, Opening
from ledger.transactions import Receipt
from protocol.beacon import Purpose
from protocol.ids import Round, Slot
from protocol.merkle import MerkleTree, leaf_hash
from protocol.submission import SignedSubmission
from tests.chain import Anvil
from tests.ledger.world import Member, World, deployed
from tests.specs import CHAIN, tokens

ROUND = Round(1)
CHUNKS = [bytes([number]) * (600 * number) for number in range(1, 6)]
TREE = MerkleTree([leaf_hash(chunk) for chunk in CHUNKS])


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A committed submission that three validators vouched for."""

    world: World
    validators: list[Member]
    signed: SignedSubmission
    ballots: list[Ballot]

    def item(self, kind: ItemKind, index: int) -> Item:
        digest = self.signed.submission.digest(self.world.run_file.domain)
        return Item(round=ROUND, miner=Slot(0), digest=digest, kind=kind, index=index)

    def answer(self, member: Member, chunk: int) -> Awaitable[Receipt]:
        """A validator shows a chunk."""
        item, submission = self.item(ItemKind.PAYLOAD, chunk), self.signed.submission
        opening = Opening(position=chunk, content=CHUNKS[chunk], proof=TREE.proof(chunk))
        call = self.world.contracts.requests.answer_call(item, submission, opening)
        return self.world.act(member.operator, call)

    def in_slot(self, slot: Slot) -> Member:
        """Who holds a validator slot."""
        return next(member for member in self.validators if member.slot == slot)

    async def ask(self, item: Item) -> None:
        requests, token = self.world.contracts.requests, self.world.contracts.token
        deployer = self.world.deployer
        await self.world.act(deployer, token.approve_call(requests.address, CHAIN.request_bond))
        await self.world.act(deployer, requests.request_call(item, self.ballots))


@asynccontextmanager
async def vouched(anvil: Anvil, folder: Path) -> AsyncIterator[Scene]:
    """The scene on a fresh run."""
    async with deployed(anvil, folder) as world:
        validators = [await world.join(Role.VALIDATOR, tokens(2000)) for _ in range(3)]
        miner = await world.join(Role.MINER, tokens(200))
        beacon = await world.draw(ROUND, Purpose.ASSIGNMENT)
        signed = world.submission(miner, ROUND, beacon, payload_root=TREE.root)
        world.to(world.clock.put_opens(ROUND))
        digest = signed.submission.digest(world.run_file.domain)
        await world.act(miner.operator, world.contracts.epochs.commit_call(ROUND, digest))
        world.to(world.clock.publish_deadline(ROUND) + 1)
        ballots = []
        for member in validators:
            root = world.run_file.spec.chain.genesis_root
            ballots.append(Ballot(slot=member.slot, root=root, bitmap=b"\x01"))
            call = world.contracts.epochs.attest_call(ROUND, root, b"\x01")
            await world.act(member.operator, call)
        world.to(world.clock.attest_deadline(ROUND) + 1)
        yield Scene(world=world, validators=validators, signed=signed, ballots=ballots)
