"""The outbox: the one way in which a key sends transactions.

Promises:

- **Exactly once.** A transaction is signed and on disk, under a key that the caller chose, before the node sees it.
  Whoever submits the same key again, also after a crash, gets the same transaction; its nonce can be used once.
- **No waiting in line.** Nonces are given out locally, so many transactions of one key travel together.
- **It gets there.** A background task broadcasts again, raises fees, notices nonces that somebody else used and
  transactions that a reorganisation took back, until each is deep in the chain.
- **It says why.** A call that would revert is refused before it is signed; one that reverts on chain raises the same
  typed error (`ledger.errors.Reverted`).
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from ledger import json_rpc
from ledger.connection import Connection, Head, Request, block_request, head_of
from ledger.errors import (
    KeyReused,
    ReceiptTimeout,
    Reverted,
    RpcRefused,
    RpcUnavailable,
    empty_balance,
)
from ledger.fees import DEFAULT_TIP, GWEI, offer
from ledger.outbox_pump import OutboxSettings, Pump
from ledger.outbox_store import EXPIRED, Attempt, OutboxStore, Status
from ledger.reverts import named_revert
from ledger.transactions import Call, Fees, Receipt, least_gas, sign_transaction
from protocol.errors import Bug
from protocol.ids import Address
from protocol.ports import Signer

_GAS_LIMIT_MOST = 1 << 24
"""No transaction may ask for more (EIP-7825)."""
_MORE_THAN_ONE_TIP = 50 * GWEI


@dataclass(frozen=True, slots=True, kw_only=True)
class _Quote:
    gas: int
    fees: Fees
    head: Head
    count: int


class Outbox:
    """Sends the calls of one key. Made by `open`, closed by `aclose`; use it in ``async with``."""

    def __init__(
        self, store: OutboxStore, connection: Connection, signer: Signer, settings: OutboxSettings
    ) -> None:
        self._store = store
        self._connection = connection
        self._signer = signer
        self._settings = settings
        self._nonces = asyncio.Lock()
        self._floor = 0
        self._closed = False
        self._pump = Pump(store, connection, signer, settings)

    @classmethod
    async def open(
        cls,
        path: Path,
        connection: Connection,
        signer: Signer,
        *,
        settings: OutboxSettings | None = None,
    ) -> Outbox:
        """Opens the outbox file of a key and goes on with whatever was left in it.

        Raises:
            StoreBusy, StoreForeign, StoreDamaged: with what to do about it.
        """
        genesis = await connection.genesis_hash()
        store = OutboxStore(path)
        try:
            store.claim(chain_id=connection.chain_id, genesis=genesis, address=signer.address)
        except BaseException:
            store.close()
            raise
        outbox = cls(store, connection, signer, settings or OutboxSettings())
        outbox._pump.start()
        return outbox

    @property
    def address(self) -> Address:
        """The account that sends."""
        return self._signer.address

    async def submit(self, call: Call, key: str, *, timeout_s: float | None = None) -> Receipt:
        """Sends a call, unless one was sent under this key before, and waits until it is in a block.

        Args:
            call: what to send.
            key: names the intention, not the attempt, such as ``commit/7``.
            timeout_s: how long to wait for the block; the transaction stays in the outbox afterwards.

        Raises:
            Reverted: the contract refuses the call. Nothing was sent if `tx_hash` is None; submitting the key
                again tries again. Otherwise the refusal stands in a block and under this key for ever, unless it is
                one that passes: ``Expired`` if the call's window closed before a block took it, ``Paused`` if the run was.
                Named ``NotAccepted`` if no node takes such a call.
            ReceiptTimeout, RpcUnavailable, FeeTooHigh: try again with the same key.
            EmptyBalance: the account can't pay.
            KeyReused: the key stands for another call.
        """
        await self.send(call, key)
        return await self.receipt(key, timeout_s=timeout_s)

    async def send(self, call: Call, key: str) -> None:
        """The first half of `submit`: returns as soon as the transaction is on disk and was offered to the node."""
        self._pump.check()
        if self._known(call, key):
            return
        quote = await self._quote(call)
        async with self._nonces:
            if self._known(call, key):
                return
            nonce = self._store.next_nonce(max(quote.count, self._floor))
            raw = sign_transaction(
                call,
                signer=self._signer,
                chain_id=self._connection.chain_id,
                nonce=nonce,
                gas=quote.gas,
                fees=quote.fees,
            )
            attempt = Attempt(
                raw=raw.raw, hash=raw.hash, nonce=nonce, fees=quote.fees, block=quote.head.number
            )
            self._store.add(key, call, gas=quote.gas, attempt=attempt, now=time.time())
            self._floor = nonce + 1
            await self._pump.offer(key, attempt)

    async def receipt(self, key: str, *, timeout_s: float | None = None) -> Receipt:
        """The second half of `submit`: waits until the transaction under a key is in a block."""
        limit = self._settings.receipt_timeout_s if timeout_s is None else timeout_s
        try:
            async with asyncio.timeout(limit):
                entry = await self._pump.done(key)
        except TimeoutError as error:
            raise ReceiptTimeout(
                f"{key} is in no block after {limit:g} s{self._pump.trouble()}; the outbox keeps trying"
            ) from error
        failure = entry.error()
        if failure is not None:
            raise failure
        assert entry.receipt is not None
        return entry.receipt

    def known(self, key: str) -> bool:
        """Whether something was sent under this key, by this process or an earlier one, and not in vain."""
        entry = self._store.find(key)
        return entry is not None and not entry.may_be_tried_again

    def nonce_of(self, key: str) -> int | None:
        """The nonce of the transaction under a key; None if nothing was sent under it."""
        entry = self._store.find(key)
        return None if entry is None else entry.nonce

    async def next_nonce(self) -> int:
        """The nonce that the next transaction would get now."""
        count = await self._connection.transaction_count(self._signer.address, "pending")
        return self._store.next_nonce(max(count, self._floor))

    def waiting(self) -> int:
        """How many transactions are not in a block yet."""
        return sum(entry.status is Status.PENDING for entry in self._store.unsettled())

    def gas_used(self) -> list[tuple[str, int]]:
        """(label, gas used) of every transaction in a block, oldest first."""
        return self._store.gas_used()

    async def aclose(self) -> None:
        """Stops the background task. What is still waiting is continued at the next start."""
        if not self._closed:
            self._closed = True
            await self._pump.stop()
            self._store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _known(self, call: Call, key: str) -> bool:
        entry = self._store.find(key)
        if entry is None or entry.may_be_tried_again:
            return False
        before = entry.call
        if (before.to, before.data, before.value) != (call.to, call.data, call.value):
            raise KeyReused(
                f"outbox key {key!r} stands for another {before.label} than this {call.label}"
            )
        return True

    async def _quote(self, call: Call) -> _Quote:
        """Asks the node, in one round trip, all that signing needs."""
        if call.gas is not None and not least_gas(call) <= call.gas <= _GAS_LIMIT_MOST:
            raise Bug(f"{call.label} can't run with {call.gas} gas")
        sender = self._signer.address
        requests = [
            block_request("latest"),
            Request("eth_getBalance", [sender, "latest"]),
            Request("eth_getTransactionCount", [sender, "pending"]),
            Request("eth_gasPrice", []),
            Request("eth_maxPriorityFeePerGas", []),
        ]
        if call.gas is None:
            requests.append(self._estimate_request(call, "pending"))
        answers = await self._connection.try_batch(requests)
        block, balance, count, price, tip = answers[:5]
        head = head_of(_value(block))
        if head is None:
            raise RpcUnavailable("the node has no blocks yet")
        if call.not_after is not None and head.time >= call.not_after:
            raise named_revert(EXPIRED, {"not_after": call.not_after}, label=call.label)
        fees = offer(
            base_fee=head.base_fee,
            tip=_tip(tip),
            gas_price=json_rpc.as_int(_value(price)),
            cap=self._settings.fee_cap,
        )
        funds = json_rpc.as_int(_value(balance))
        if call.gas is not None:
            gas = call.gas
        else:
            if funds == 0:
                raise empty_balance(sender, 0, call.value + 1)
            gas = await self._gas(call, answers[5], funds)
        needed = call.value + gas * fees.maximum + self._store.worst_cost()
        if funds < needed:
            raise empty_balance(sender, funds, needed)
        return _Quote(gas=gas, fees=fees, head=head, count=json_rpc.as_int(_value(count)))

    async def _gas(
        self, call: Call, estimate: json_rpc.Json | Reverted | RpcRefused, funds: int
    ) -> int:
        """A gas limit from the node's estimate; on nodes that know no pending block, from the newest one."""
        if isinstance(estimate, RpcRefused):
            if "insufficient funds" in estimate.message.lower():
                raise empty_balance(self._signer.address, funds, call.value + 1)
            asked = self._estimate_request(call, "latest")
            estimate = await self._connection.request(
                asked.method, asked.parameters, label=call.label
            )
        used = json_rpc.as_int(_value(estimate))
        return min(used * 5 // 4 + 5_000, _GAS_LIMIT_MOST)

    def _estimate_request(self, call: Call, block: str) -> Request:
        transaction: dict[str, json_rpc.Json] = {
            "from": self._signer.address,
            "data": json_rpc.data(call.data),
            "value": json_rpc.quantity(call.value),
        }
        if call.to is not None:
            transaction["to"] = call.to
        return Request("eth_estimateGas", [transaction, block], call.label)


def _value(answer: json_rpc.Json | Reverted | RpcRefused) -> json_rpc.Json:
    if isinstance(answer, Exception):
        raise answer
    return answer


def _tip(answer: json_rpc.Json | Reverted | RpcRefused) -> int:
    """The node's suggestion, within reason; a usual one where the node has none."""
    if isinstance(answer, Exception):
        return DEFAULT_TIP
    return min(json_rpc.as_int(answer), _MORE_THAN_ONE_TIP)
