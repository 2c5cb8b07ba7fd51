"""Data requests: a leaf of a submission is asked for with a bond, and the validators that vouched for it owe it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum

from ledger.abi import AbiValue
from ledger.connection import BlockId
from ledger.contracts.base import Contract, Values
from ledger.contracts.epochs import Ballot
from ledger.errors import Undecodable
from ledger.transactions import Call
from protocol.hashing import abi_words, keccak256
from protocol.ids import Address, Hash32, Round, Slot, Units
from protocol.submission import Submission


class ItemKind(IntEnum):
    """What can be asked for (the numbers are the contract's)."""

    SUBMISSION = 0
    DATA = 1
    TRACE = 2
    PAYLOAD = 3
    LOCAL = 4


class RequestStatus(IntEnum):
    """Where a request stands (the numbers are the contract's)."""

    NONE = 0
    OPEN = 1
    ANSWERED = 2
    WITHHELD = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One leaf of one submission.

    Attributes:
        miner: its slot in that round.
        digest: of the submission, as committed.
        index: of the leaf; of a local state tensor << 32 | leaf, tensors in the order of their names.
    """

    round: Round
    miner: Slot
    digest: Hash32
    kind: ItemKind
    index: int

    @property
    def id(self) -> Hash32:
        """Names the request."""
        return Hash32(keccak256(abi_words(*self.to_abi())))

    def to_abi(self) -> tuple[int, int, Hash32, int, int]:
        """The struct ``Item``."""
        return (self.round, self.miner, self.digest, int(self.kind), self.index)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A leaf with its path, or the last leaf before one that does not exist.

    Attributes:
        position: index of the leaf shown.
        content: of the leaf; of a data leaf its hash, of a submission the signature.
        proof: siblings bottom-up.
        tensor_position, tensor, tensor_proof: of a local state, the tensor's own leaf; else empty.
    """

    position: int
    content: bytes
    proof: tuple[Hash32, ...] = ()
    tensor_position: int = 0
    tensor: bytes = b""
    tensor_proof: tuple[Hash32, ...] = ()

    def to_abi(self) -> tuple[AbiValue, ...]:
        """The struct ``Opening``."""
        return tuple(getattr(self, item.name) for item in fields(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestState:
    """A request as the contract keeps it. Blocks are less pauses.

    Attributes:
        deadline: last block for an answer.
        setters: validator slots that set the bit, ascending.
        first: the slot whose turn comes first.
    """

    status: RequestStatus
    requester: Address
    opened_block: int
    deadline: int
    setters: tuple[Slot, ...]
    first: Slot


class DataRequests(Contract):
    """Where withheld data are asked for."""

    ABI = "DataRequests"

    async def request_of(self, item: Item, *, block: BlockId = "latest") -> RequestState:
        """How the request for an item stands."""
        record = (await self._read("requestOf", item.to_abi(), block=block)).record(0)
        return RequestState(
            status=RequestStatus(record.integer(0)),
            requester=record.address(1),
            opened_block=record.integer(2),
            deadline=record.integer(3),
            setters=slots_of(record.integer(4)),
            first=Slot(record.integer(5)),
        )

    async def fee_of(self, kind: ItemKind, content_bytes: int) -> Units:
        """What an answer with so many bytes costs the requester."""
        return Units((await self._read("feeOf", int(kind), content_bytes)).integer(0))

    async def open_requests(self, requester: Address, digest: Hash32) -> int:
        """Open requests of an account about one submission."""
        return (await self._read("openRequests", requester, digest)).integer(0)

    async def was_fined(self, item: Item) -> bool:
        """Whether an item of this kind of this submission was withheld, so that no other can be asked for."""
        round_, miner, digest, kind, _ = item.to_abi()
        return (await self._read("wasFined", round_, miner, digest, kind)).truth(0)

    async def balance_of(self, account: Address, *, block: BlockId = "latest") -> Units:
        """What an account can withdraw."""
        return Units((await self._read("balanceOf", account, block=block)).integer(0))

    async def held(self, *, block: BlockId = "latest") -> Units:
        """Bonds of open requests, and balances."""
        return Units((await self._read("held", block=block)).integer(0))

    def request_call(self, item: Item, ballots: Sequence[Ballot]) -> Call:
        """Needs an allowance of the request bond. `ballots`: all attestations of the round."""
        ordered = sorted(ballots, key=lambda ballot: ballot.slot)
        opened = tuple((ballot.slot, ballot.root, ballot.bitmap) for ballot in ordered)
        return self._call("request", item.to_abi(), opened)

    def answer_call(self, item: Item, submission: Submission, opening: Opening) -> Call:
        """In a validator's turn only that validator's; after all turns anybody's."""
        return self._call("answer", item.to_abi(), _fields_of(submission), opening.to_abi())

    def resolve_call(self, item: Item) -> Call:
        """Fines whoever owed an item that nobody showed; anybody's, after the deadline."""
        return self._call("resolve", item.to_abi())

    def withdraw_call(self, account: Address) -> Call:
        """Pays an account its balance; anybody's."""
        return self._call("withdraw", account)


def slots_of(mask: int) -> tuple[Slot, ...]:
    """The set bits of a mask, ascending."""
    return tuple(Slot(slot) for slot in range(mask.bit_length()) if mask >> slot & 1)


def item_from_abi(record: Values) -> Item:
    """The struct ``Item``; raises `Undecodable`."""
    try:
        kind = ItemKind(record.integer(3))
    except ValueError as error:
        raise Undecodable(str(error)) from error
    return Item(
        round=Round(record.integer(0)),
        miner=Slot(record.integer(1)),
        digest=record.hash(2),
        kind=kind,
        index=record.integer(4),
    )


def opening_from_abi(record: Values) -> Opening:
    """The struct ``Opening``; raises `Undecodable`."""
    return Opening(
        position=record.integer(0),
        content=record.raw(1),
        proof=_hashes(record.record(2)),
        tensor_position=record.integer(3),
        tensor=record.raw(4),
        tensor_proof=_hashes(record.record(5)),
    )


def submission_from_abi(record: Values) -> Submission:
    """The struct ``Submission``, whose fields are in the order of ours; raises `Undecodable`."""
    numbers = {"round", "local_from_round", "payload_bytes", "steps"}
    values: dict[str, object] = {}
    for position, item in enumerate(fields(Submission)):
        if item.name in numbers:
            values[item.name] = record.integer(position)
        elif item.name == "miner":
            values[item.name] = record.address(position)
        else:
            values[item.name] = record.hash(position)
    return Submission(**values)  # type: ignore[arg-type]  # each value was read by its field's kind


def _hashes(record: Values) -> tuple[Hash32, ...]:
    return tuple(record.hash(position) for position in range(len(record)))


def _fields_of(submission: Submission) -> tuple[AbiValue, ...]:
    return tuple(getattr(submission, item.name) for item in fields(submission))
