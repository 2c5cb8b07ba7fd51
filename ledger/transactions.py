"""What is sent to the chain: calls, their signed transactions, and receipts.

Transactions are encoded here from first principles (RLP, EIP-1559, EIP-155), so that any `Signer` that signs 32-byte
digests will do, be it a key in memory or a remote one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ledger import json_rpc
from ledger.json_rpc import Json
from protocol.hashing import keccak256
from protocol.ids import Address, Hash32, address_bytes, to_address
from protocol.ports import Signer

Rlp = bytes | Sequence["Rlp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call that changes the chain, ready to be sent by an outbox.

    Attributes:
        to: the contract; None creates one.
        data: selector and arguments, or creation code.
        label: ``Contract.function``, for messages and gas statistics.
        value: native currency sent along, in wei.
        gas: gas limit; None lets the outbox estimate, which also finds out at once that a call would revert.
        not_after: the last second (block time) at which the call makes sense. Once it is past, an outbox puts an empty
            transaction in its place and reports the refusal ``Expired``. None: it always makes sense.
    """

    to: Address | None
    data: bytes
    label: str
    value: int = 0
    gas: int | None = None
    not_after: int | None = None

    def within(self, not_after: int, *, gas: int | None = None) -> Call:
        """The same call with a window's deadline and, to save the estimate, a gas limit."""
        return replace(self, not_after=not_after, gas=gas if gas is not None else self.gas)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fees:
    """Wei per gas. `priority` is None on a chain without EIP-1559; `maximum` is then the gas price."""

    maximum: int
    priority: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RawTransaction:
    """A signed transaction and its hash."""

    raw: bytes
    hash: Hash32


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRecord:
    """An event as the chain stores it."""

    address: Address
    topics: tuple[bytes, ...]
    data: bytes
    block: int
    block_hash: Hash32
    tx_hash: Hash32
    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What became of a transaction. `succeeded` is False for a revert on chain."""

    tx_hash: Hash32
    block: int
    block_hash: Hash32
    succeeded: bool
    gas_used: int
    gas_price: int
    contract: Address | None
    logs: tuple[LogRecord, ...]

    @classmethod
    def from_rpc(cls, value: Json) -> Receipt:
        """Reads ``eth_getTransactionReceipt``."""
        record = json_rpc.as_record(value)
        contract = record.get("contractAddress")
        return cls(
            tx_hash=json_rpc.as_hash(json_rpc.field(record, "transactionHash")),
            block=json_rpc.as_int(json_rpc.field(record, "blockNumber")),
            block_hash=json_rpc.as_hash(json_rpc.field(record, "blockHash")),
            succeeded=json_rpc.as_int(json_rpc.field(record, "status")) == 1,
            gas_used=json_rpc.as_int(json_rpc.field(record, "gasUsed")),
            gas_price=json_rpc.as_int(record.get("effectiveGasPrice", "0x0")),
            contract=None if contract is None else json_rpc.as_address(contract),
            logs=tuple(
                log_from_rpc(log) for log in json_rpc.as_list(json_rpc.field(record, "logs"))
            ),
        )


def log_from_rpc(value: Json) -> LogRecord:
    """Reads one entry of ``eth_getLogs`` or of a receipt."""
    record: Mapping[str, Json] = json_rpc.as_record(value)
    return LogRecord(
        address=json_rpc.as_address(json_rpc.field(record, "address")),
        topics=tuple(
            json_rpc.as_bytes(topic) for topic in json_rpc.as_list(json_rpc.field(record, "topics"))
        ),
        data=json_rpc.as_bytes(json_rpc.field(record, "data")),
        block=json_rpc.as_int(json_rpc.field(record, "blockNumber")),
        block_hash=json_rpc.as_hash(json_rpc.field(record, "blockHash")),
        tx_hash=json_rpc.as_hash(json_rpc.field(record, "transactionHash")),
        index=json_rpc.as_int(json_rpc.field(record, "logIndex")),
    )


def sign_transaction(
    call: Call, *, signer: Signer, chain_id: int, nonce: int, gas: int, fees: Fees
) -> RawTransaction:
    """Signs a call as an EIP-1559 transaction, or as a legacy one with EIP-155 where `fees` has no priority."""
    to = address_bytes(call.to) if call.to else b""
    if fees.priority is None:
        return _sign_legacy([nonce, fees.maximum, gas, to, call.value, call.data], signer, chain_id)
    fields: list[int | bytes] = [
        chain_id,
        nonce,
        fees.priority,
        fees.maximum,
        gas,
        to,
        call.value,
        call.data,
    ]
    no_access_list: list[Rlp] = []
    body: list[Rlp] = [*map(_item, fields), no_access_list]
    r, s, parity = _signature(signer, b"\x02" + rlp(body))
    raw = b"\x02" + rlp([*body, _item(parity), _item(r), _item(s)])
    return RawTransaction(raw=raw, hash=Hash32(keccak256(raw)))


def _sign_legacy(fields: list[int | bytes], signer: Signer, chain_id: int) -> RawTransaction:
    body: list[Rlp] = [_item(value) for value in fields]
    r, s, parity = _signature(signer, rlp([*body, _item(chain_id), b"", b""]))
    raw = rlp([*body, _item(35 + 2 * chain_id + parity), _item(r), _item(s)])
    return RawTransaction(raw=raw, hash=Hash32(keccak256(raw)))


def _signature(signer: Signer, message: bytes) -> tuple[int, int, int]:
    signature = signer.sign_digest(Hash32(keccak256(message)))
    return (
        int.from_bytes(signature[:32], "big"),
        int.from_bytes(signature[32:64], "big"),
        signature[64] - 27,
    )


def least_gas(call: Call) -> int:
    """Gas below which no node takes a transaction: its own cost, or EIP-7623's floor for its data."""
    zeros = call.data.count(0)
    tokens = zeros + 4 * (len(call.data) - zeros)
    intrinsic = 21_000 + 4 * tokens
    if call.to is None:
        intrinsic += 32_000 + 2 * ((len(call.data) + 31) // 32)
    return max(intrinsic, 21_000 + 10 * tokens)


def contract_address(creator: Address, nonce: int) -> Address:
    """Where the contract lands that an account creates with a nonce."""
    return to_address(keccak256(rlp([address_bytes(creator), _item(nonce)]))[12:])


def rlp(item: Rlp) -> bytes:
    """Recursive length prefix encoding (Ethereum yellow paper, appendix B)."""
    if isinstance(item, bytes):
        if len(item) == 1 and item[0] < 0x80:
            return item
        return _prefix(len(item), 0x80) + item
    body = b"".join(rlp(part) for part in item)
    return _prefix(len(body), 0xC0) + body


def _prefix(length: int, offset: int) -> bytes:
    if length < 56:
        return bytes([offset + length])
    size = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes([offset + 55 + len(size)]) + size


def _item(value: int | bytes) -> Rlp:
    """Integers without leading zeros, zero as the empty string."""
    return (
        value if isinstance(value, bytes) else value.to_bytes((value.bit_length() + 7) // 8, "big")
    )
