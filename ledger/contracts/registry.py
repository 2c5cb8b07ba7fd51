"""The registry: who holds which slot, which operator key acts for whom, and where a node serves its blobs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from ledger.connection import BlockId
from ledger.contracts.base import Contract, Values
from ledger.transactions import Call
from protocol.ids import ZERO_ADDRESS, Address, Epoch, Round, Slot, Units

_SLOTS_PER_READ = 256


class Role(IntEnum):
    """What an account does in a run (the numbers are the contract's)."""

    NONE = 0
    MINER = 1
    VALIDATOR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotHolder:
    """A held slot of an epoch.

    Attributes:
        operator: the key that is valid in the current round.
        next_operator: the key from the next round on, usually the same.
        stake: active stake in the epoch's snapshot.
    """

    slot: Slot
    account: Address
    operator: Address | None
    next_operator: Address | None
    payout: Address
    stake: Units
    endpoint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Duty:
    """For which account, in which role and slot an operator key acts. `slot` is None without a role."""

    account: Address
    role: Role
    slot: Slot | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRecord:
    """Proven faults of an account, and the epoch until which it may not register (0: it may)."""

    faults: int
    until_epoch: Epoch


class Registry(Contract):
    """The run's participants."""

    ABI = "Registry"

    async def slots(
        self, role: Role, epoch: Epoch, *, block: BlockId = "latest"
    ) -> list[SlotHolder]:
        """All held slots of an epoch, by slot."""
        count = await self.slot_count(role, block=block)
        if count <= _SLOTS_PER_READ:
            answer = await self._read("slots", int(role), epoch, block=block)
            return [_holder(item) for item in answer.records(0)]
        ranges = [
            [int(role), epoch, start, min(start + _SLOTS_PER_READ, count)]
            for start in range(0, count, _SLOTS_PER_READ)
        ]
        answers = await self._read_each("slotsInRange", ranges, block=block)
        return [_holder(item) for answer in answers for item in answer.records(0)]

    async def slot_of(
        self, account: Address, epoch: Epoch, *, block: BlockId = "latest"
    ) -> tuple[Role, Slot] | None:
        """Role and slot of an account in an epoch; None without."""
        answer = await self._read("slotOf", account, epoch, block=block)
        role = Role(answer.integer(0))
        return None if role is Role.NONE else (role, Slot(answer.integer(1)))

    async def slot_account(
        self, role: Role, slot: Slot, epoch: Epoch, *, block: BlockId = "latest"
    ) -> Address | None:
        answer = await self._read("slotAccount", int(role), slot, epoch, block=block)
        return answer.address_or_none(0)

    async def slot_count(self, role: Role, *, block: BlockId = "latest") -> int:
        """Slots ever used: the places of a bitmap or weight vector."""
        return (await self._read("slotCount", int(role), block=block)).integer(0)

    async def operator_at(
        self, account: Address, round_: Round, *, block: BlockId = "latest"
    ) -> Address | None:
        """The key that signs for the account in a round."""
        return (await self._read("operatorAt", account, round_, block=block)).address_or_none(0)

    async def account_of_operator(self, operator: Address) -> Address | None:
        """The account that a key belongs to, at whatever time."""
        return (await self._read("accountOfOperator", operator)).address_or_none(0)

    async def duty(
        self, operator: Address, *, round_: Round, epoch: Epoch, block: BlockId = "latest"
    ) -> Duty | None:
        """What an operator key does in a round of an epoch; None if it acts for nobody then."""
        answer = await self._read("duty", operator, round_, epoch, block=block)
        account, role = answer.address_or_none(0), Role(answer.integer(1))
        if account is None:
            return None
        slot = None if role is Role.NONE else Slot(answer.integer(2))
        return Duty(account=account, role=role, slot=slot)

    async def operator_count(self, account: Address) -> int:
        """The nonce of the account's next operator consent."""
        return (await self._read("operatorCount", account)).integer(0)

    async def role_of(self, account: Address) -> Role:
        """The role that the account has or will have from the next epoch on."""
        return Role((await self._read("roleOf", account)).integer(0))

    async def endpoint_of(self, account: Address) -> str:
        return (await self._read("endpointOf", account)).text(0)

    async def payout_of(self, account: Address) -> Address:
        return (await self._read("payoutOf", account)).address(0)

    async def total_validator_stake(self, epoch: Epoch, *, block: BlockId = "latest") -> Units:
        return Units((await self._read("totalValidatorStake", epoch, block=block)).integer(0))

    async def faults_of(self, account: Address) -> FaultRecord:
        answer = await self._read("faultsOf", account)
        return FaultRecord(faults=answer.integer(0), until_epoch=Epoch(answer.integer(1)))

    def register_call(
        self,
        role: Role,
        *,
        operator: Address,
        consent: bytes,
        payout: Address | None,
        endpoint: str,
    ) -> Call:
        """`consent`: the operator's signature of `protocol.submission.operator_consent_digest`."""
        payee = payout or ZERO_ADDRESS
        return self._call("register", int(role), operator, consent, payee, endpoint)

    def rotate_operator_call(self, operator: Address, consent: bytes) -> Call:
        return self._call("rotateOperator", operator, consent)

    def set_payout_call(self, payout: Address) -> Call:
        return self._call("setPayout", payout)

    def set_endpoint_call(self, account: Address, endpoint: str) -> Call:
        return self._call("setEndpoint", account, endpoint)


def _holder(item: Values) -> SlotHolder:
    return SlotHolder(
        slot=Slot(item.integer(0)),
        account=item.address(1),
        operator=item.address_or_none(2),
        next_operator=item.address_or_none(3),
        payout=item.address(4),
        stake=Units(item.integer(5)),
        endpoint=item.text(6),
    )
