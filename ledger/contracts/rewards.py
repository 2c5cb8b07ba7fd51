"""The rewards distributor: posting, challenging and finalising settlements; claims and refunds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ledger.abi import AbiValue
from ledger.connection import BlockId
from ledger.contracts.base import Contract, Values
from ledger.transactions import Call
from protocol.ids import ZERO32, Address, Epoch, Hash32, Units
from protocol.settlement import SettlementLeaf, SumNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """A settlement for an epoch, which others may stand beside. It can be finalised after `window_ends`.

    Attributes:
        attempt: its number among the epoch's posts, from 1 on.
        poster: None once it was struck, became final or was closed.
        answered: challenges of it that were answered rightly.
    """

    epoch: Epoch
    attempt: int
    poster: Address | None
    posted_at: int
    window_ends: int
    open_challenges: int
    root: Hash32
    amount: Units
    pot: Units
    bond: Units
    answered: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """A challenge of one leaf; the leaf can be opened until `deadline`. `closed`: its bond went back."""

    challenger: Address
    deadline: int
    open: bool
    closed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CellNode:
    """A node of a validator's cells tree."""

    hash: Hash32
    sum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsOpening:
    """The chunk of one revealed weight vector that holds a miner's weight, and the hashes of all its chunks."""

    chunk: bytes
    chunk_hashes: tuple[Hash32, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """Everything that a challenged leaf is recomputed from (struct ``Opening``)."""

    leaf: SettlementLeaf
    siblings: tuple[SumNode, ...]
    prev_leaf: SettlementLeaf
    prev_siblings: tuple[SumNode, ...]
    cell_value: int
    cell_siblings: tuple[CellNode, ...]
    weights: tuple[WeightsOpening, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Owed:
    """What the distributor owes, in parts. All but `refunds` is held; refunds are minted when they are withdrawn.

    Attributes:
        settled: all that final settlements assigned; what was claimed of it is not owed any more.
    """

    bonds: Units
    rollover: Units
    fees: Units
    settled: Units
    refunds: Units

    def held(self, claimed: Units) -> Units:
        """What the contract should hold in tokens, where so much was claimed in all."""
        return Units(self.bonds + self.rollover + self.fees + self.settled - claimed)


class RewardsDistributor(Contract):
    """Pays the run's participants."""

    ABI = "RewardsDistributor"

    async def next_epoch(self, *, block: BlockId = "latest") -> Epoch:
        """The epoch that settles next."""
        return Epoch((await self._read("nextEpoch", block=block)).integer(0))

    async def pot_of(self, epoch: Epoch, *, block: BlockId = "latest") -> Units:
        """What an epoch pays out; fixed once it is next in line and has ended."""
        return Units((await self._read("potOf", epoch, block=block)).integer(0))

    async def required_bond(self) -> Units:
        """Bond of a post."""
        return Units((await self._read("requiredBond")).integer(0))

    async def scheduled_emission(self, epoch: Epoch) -> Units:
        """Emission of an epoch by the schedule."""
        return Units((await self._read("scheduledEmission", epoch)).integer(0))

    async def standing_posts(self, *, block: BlockId = "latest") -> list[Post]:
        """The posts that stand for the epoch next in line, oldest first."""
        found = [_post(item) for item in (await self._read("posts", block=block)).records(0)]
        return [post for post in found if post.poster is not None]

    async def post_of(
        self, epoch: Epoch, attempt: int, *, block: BlockId = "latest"
    ) -> Post | None:
        """A post that stands, also of a closed epoch; None if there is none (any more)."""
        post = _post((await self._read("postOf", epoch, attempt, block=block)).record(0))
        return None if post.poster is None else post

    async def challenge_of(
        self, epoch: Epoch, *, attempt: int, index: int, cell: int
    ) -> Challenge | None:
        record = (await self._read("challengeOf", epoch, attempt, index, cell)).record(0)
        challenger = record.address_or_none(0)
        if challenger is None:
            return None
        return Challenge(
            challenger=challenger,
            deadline=record.integer(1),
            open=record.truth(2),
            closed=record.truth(3),
        )

    async def final_root(self, epoch: Epoch, *, block: BlockId = "latest") -> Hash32 | None:
        """Root of a final settlement."""
        root = (await self._read("finalRoot", epoch, block=block)).hash(0)
        return None if root == ZERO32 else root

    async def last_final_at(self, epoch: Epoch, *, block: BlockId = "latest") -> Epoch:
        """The last final epoch at or before a settled one; 0 if none."""
        return Epoch((await self._read("lastFinalAt", epoch, block=block)).integer(0))

    async def prev_epochs_of(
        self, accounts: Sequence[Address], epoch: Epoch, *, block: BlockId = "latest"
    ) -> dict[Address, Epoch]:
        """The previous epoch that each account's leaf of `epoch` must name."""
        rows = await self._read_each(
            "prevEpochOf", [[account, epoch] for account in accounts], block=block
        )
        return {account: Epoch(row.integer(0)) for account, row in zip(accounts, rows, strict=True)}

    async def claimed_of(self, account: Address, *, block: BlockId = "latest") -> Units:
        """All that an account ever claimed."""
        return Units((await self._read("claimedOf", account, block=block)).integer(0))

    async def refunds_of(self, account: Address, *, block: BlockId = "latest") -> Units:
        """Chore refunds that an account can withdraw."""
        return Units((await self._read("refundsOf", account, block=block)).integer(0))

    async def bonds_of(self, account: Address, *, block: BlockId = "latest") -> Units:
        """Released bonds and bounties that an account can withdraw."""
        return Units((await self._read("bondsOf", account, block=block)).integer(0))

    async def owed(self, *, block: BlockId = "latest") -> Owed:
        """What the distributor owes, in one round trip per part."""
        parts = [
            Units((await self._read(name, block=block)).integer(0))
            for name in (
                "bondsHeld",
                "rollover",
                "pendingFees",
                "settled",
                "refundsOwed",
            )
        ]
        bonds, rollover, fees, settled, refunds = parts
        return Owed(bonds=bonds, rollover=rollover, fees=fees, settled=settled, refunds=refunds)

    def post_settlement_call(self, epoch: Epoch, *, miners: SumNode, validators: SumNode) -> Call:
        """Needs an allowance of `required_bond`."""
        return self._call("postSettlement", epoch, _node(miners), _node(validators))

    def challenge_leaf_call(self, epoch: Epoch, *, attempt: int, index: int, cell: int = 0) -> Call:
        """Needs an allowance of the challenge bond."""
        return self._call("challengeLeaf", epoch, attempt, index, cell)

    def open_leaf_call(
        self, epoch: Epoch, *, attempt: int, index: int, cell: int, opening: Opening
    ) -> Call:
        return self._call("openLeaf", epoch, attempt, index, cell, _opening(opening))

    def resolve_timeout_call(self, epoch: Epoch, *, attempt: int, index: int, cell: int) -> Call:
        return self._call("resolveTimeout", epoch, attempt, index, cell)

    def release_challenge_call(self, epoch: Epoch, *, attempt: int, index: int, cell: int) -> Call:
        return self._call("releaseChallenge", epoch, attempt, index, cell)

    def finalise_settlement_call(self, epoch: Epoch, attempt: int) -> Call:
        return self._call("finaliseSettlement", epoch, attempt)

    def close_post_call(self, epoch: Epoch, attempt: int) -> Call:
        """Ends a post that still stands though its epoch is closed."""
        return self._call("closePost", epoch, attempt)

    def void_epoch_call(self, epoch: Epoch) -> Call:
        return self._call("voidEpoch", epoch)

    def claim_call(self, epoch: Epoch, leaf: SettlementLeaf, siblings: Sequence[SumNode]) -> Call:
        packed = tuple((node.hash, node.w << 128 | node.amount) for node in siblings)
        return self._call("claim", epoch, _leaf(leaf), packed)

    def add_fees_call(self, amount: Units) -> Call:
        """Needs an allowance."""
        return self._call("addFees", amount)

    def withdraw_refunds_call(self, account: Address) -> Call:
        return self._call("withdrawRefunds", account)

    def withdraw_bonds_call(self, account: Address) -> Call:
        return self._call("withdrawBonds", account)


def _post(record: Values) -> Post:
    return Post(
        epoch=Epoch(record.integer(0)),
        attempt=record.integer(1),
        poster=record.address_or_none(2),
        posted_at=record.integer(3),
        window_ends=record.integer(4),
        open_challenges=record.integer(5),
        root=record.hash(6),
        amount=Units(record.integer(7)),
        pot=Units(record.integer(8)),
        bond=Units(record.integer(9)),
        answered=record.integer(10),
    )


def _node(node: SumNode) -> tuple[AbiValue, ...]:
    return (node.hash, node.w, node.amount)


def _leaf(leaf: SettlementLeaf) -> tuple[AbiValue, ...]:
    return (
        leaf.index,
        leaf.account,
        leaf.w,
        leaf.amount,
        leaf.cumulative,
        leaf.prev_epoch,
        leaf.cells,
    )


def _opening(opening: Opening) -> tuple[AbiValue, ...]:
    return (
        _leaf(opening.leaf),
        tuple(_node(node) for node in opening.siblings),
        _leaf(opening.prev_leaf),
        tuple(_node(node) for node in opening.prev_siblings),
        opening.cell_value,
        tuple((node.hash, node.sum) for node in opening.cell_siblings),
        tuple((item.chunk, item.chunk_hashes) for item in opening.weights),
    )
