"""The outbox's background task: pushes what waits, collects receipts, watches until each transaction is final.

One pass asks the node for its head and for the number of transactions that the account has in blocks; that number alone
says which of ours are through. Receipts are read only for those. A pass is repeatable at any point: it derives
everything from the store and the node.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from ledger import json_rpc
from ledger.broadcast import Answer, broadcast
from ledger.connection import Connection, Head, Request, block_request, call_request, head_of
from ledger.errors import EmptyBalance, FeeTooHigh, Reverted, RpcRefused, RpcUnavailable
from ledger.fees import DEFAULT_TIP, GWEI, bumped, offer
from ledger.json_rpc import Json
from ledger.outbox_store import EXPIRED, Attempt, Entry, OutboxStore, Outcome, Status
from ledger.transactions import Call, Fees, Receipt, sign_transaction
from protocol.errors import Bug, Retryable, SyntienceError
from protocol.ids import Address
from protocol.ports import Signer

_EMPTY_GAS = 21_000
_QUIET = 4
"""While everything is in a block and only waits to be final, passes come this many times more rarely."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxSettings:
    """How an outbox behaves.

    Attributes:
        poll_s: pause between two passes while something waits.
        confirmations: a transaction counts as done when so many blocks have it, its own included.
        finality_blocks: after so many more blocks it is forgotten; a reorganisation must not reach deeper.
        bump_after_blocks: blocks that may pass a transaction by before its fees are raised.
        rebroadcast_s: how long a waiting transaction is left alone before it is sent again.
        receipt_timeout_s: how long `submit` waits by default.
        fee_cap: the most that is ever offered per gas, in wei.
    """

    poll_s: float = 0.5
    confirmations: int = 1
    finality_blocks: int = 12
    bump_after_blocks: int = 5
    rebroadcast_s: float = 10.0
    receipt_timeout_s: float = 120.0
    fee_cap: int = 500 * GWEI

    def __post_init__(self) -> None:
        if not 1 <= self.confirmations <= self.finality_blocks + 1:
            raise Bug(
                "an outbox waits for at least one confirmation and not longer than for finality"
            )


class Pump:
    """Works on the store until everything in it is final, then sleeps until it is woken."""

    def __init__(
        self, store: OutboxStore, connection: Connection, signer: Signer, settings: OutboxSettings
    ) -> None:
        self._store = store
        self._connection = connection
        self._signer = signer
        self._settings = settings
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._waiters: dict[str, set[asyncio.Future[Entry]]] = {}
        self._sent_at: dict[str, float] = {}
        self._invalid: dict[str, str] = {}
        self._missing: set[str] = set()
        self._failure: SyntienceError | None = None
        self._trouble = ""
        self._head = 0

    def start(self) -> None:
        """Begins in the running event loop."""
        self._task = asyncio.create_task(self._run(), name=f"outbox {self._signer.address}")
        self._task.add_done_callback(self._ended)

    def check(self) -> None:
        """Raises what stopped the task, if it was stopped."""
        if self._failure is not None:
            raise self._failure

    async def stop(self) -> None:
        """Ends the task; what waits stays in the store."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        for waiters in self._waiters.values():
            for future in waiters:
                future.cancel()

    def trouble(self) -> str:
        """What the last pass stumbled over, as the end of a sentence; empty if nothing."""
        return f" ({self._trouble})" if self._trouble else ""

    async def offer(self, key: str, attempt: Attempt) -> None:
        """Shows a new transaction to the node for the first time.

        Raises:
            EmptyBalance: the account can't pay; the transaction stays and is offered again.
        """
        self._wake.set()
        try:
            await self._send(key, attempt)
        except Retryable as error:
            self._trouble = str(error)

    async def done(self, key: str) -> Entry:
        """Waits until the transaction under a key has its confirmations."""
        entry = self._store.find(key)
        if entry is None:
            raise Bug(f"no transaction {key!r} in the outbox")
        if self._is_done(entry):
            return entry
        self.check()
        future: asyncio.Future[Entry] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(key, set()).add(future)
        self._wake.set()
        try:
            return await future
        finally:
            waiters = self._waiters.get(key, set())
            waiters.discard(future)
            if not waiters:
                self._waiters.pop(key, None)

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            try:
                pause_s = await self._pass()
                self._trouble = ""
            except (Retryable, RpcRefused) as error:
                # Nodes also refuse what they merely can't answer yet, such as a block that they have just heard of.
                self._trouble = str(error)
                _LOG.warning("outbox of %s: %s", self._signer.address, error)
                pause_s = self._settings.poll_s
            await self._rest(pause_s)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Nothing must wait for a task that is no more."""
        if task.cancelled() or (error := task.exception()) is None:
            return
        _LOG.error("outbox of %s stopped: %s", self._signer.address, error)
        failure = (
            error if isinstance(error, SyntienceError) else Bug(f"the outbox stopped: {error!r}")
        )
        self._failure = failure
        for key in list(self._waiters):
            self._fail(key, failure)

    async def _rest(self, pause_s: float | None) -> None:
        """Sleeps; a long rest (None: for ever) ends as soon as there is work."""
        if pause_s is not None and pause_s <= self._settings.poll_s:
            await asyncio.sleep(pause_s)
            return
        try:
            async with asyncio.timeout(pause_s):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def _pass(self) -> float | None:
        """One look at the chain; returns the pause until the next one, None if nothing is left to do."""
        if not (entries := self._store.unsettled()):
            return None
        head, count = await self._position()
        self._head = head.number
        taken_back = [
            entry for entry in entries if entry.status is Status.MINED and entry.nonce >= count
        ]
        for entry in taken_back:
            _LOG.warning("%s was taken back by a reorganisation", entry.key)
            self._store.mark_pending(entry.key)
        pending = [entry for entry in entries if entry.status is Status.PENDING] + taken_back
        await self._collect([entry for entry in pending if entry.nonce < count], head)
        await self._settle([entry for entry in entries if entry not in pending], head)
        await self._push([entry for entry in pending if entry.nonce >= count], head, count)
        entries = self._store.unsettled()
        self._tell(entries)
        if not entries:
            return None
        busy = any(not self._is_done(entry) for entry in entries)
        return self._settings.poll_s * (1 if busy else _QUIET)

    async def _position(self) -> tuple[Head, int]:
        block, count = await self._connection.batch(
            [
                block_request("latest"),
                Request("eth_getTransactionCount", [self._signer.address, "latest"]),
            ]
        )
        head = head_of(block)
        if head is None:
            raise RpcUnavailable("the node has no blocks yet")
        return head, json_rpc.as_int(count)

    async def _collect(self, entries: Sequence[Entry], head: Head) -> None:
        """Finds out what became of transactions whose nonce is used up."""
        asked = [(entry, attempt) for entry in entries for attempt in entry.attempts]
        receipts = await self._receipts([attempt for _, attempt in asked])
        found = {
            entry.key: receipt
            for (entry, _), receipt in zip(asked, receipts, strict=True)
            if receipt
        }
        for entry in entries:
            if entry.key in found:
                await self._mined(entry, found[entry.key])
        missing = [entry for entry in entries if entry.key not in found]
        # A node may tell the nonce a moment before the receipt, and another node behind the same address later still: what
        # was missing once is looked for again before anything is signed anew.
        lost = [entry for entry in missing if entry.key in self._missing]
        self._missing = {entry.key for entry in missing}
        if lost:
            await self._replace_lost(lost, head)

    async def _mined(self, entry: Entry, answer: Json) -> None:
        receipt = Receipt.from_rpc(answer)
        mined = next(item for item in entry.attempts if item.hash == receipt.tx_hash)
        if mined.given_up is not None:
            outcome = Outcome(given_up=mined.given_up)
        elif receipt.succeeded:
            outcome = Outcome()
        else:
            outcome = await self._why(entry, receipt)
        self._store.mark_mined(entry.key, answer, outcome)
        self._sent_at.pop(entry.key, None)
        self._invalid.pop(entry.key, None)

    async def _why(self, entry: Entry, receipt: Receipt) -> Outcome:
        """Runs a reverted transaction again on the state before its block, then after it, to see the error."""
        if receipt.gas_used >= entry.gas - entry.gas // 64:
            return Outcome(out_of_gas=True)
        if entry.call.to is None:
            return Outcome()
        for block in (receipt.block - 1, receipt.block):
            asked = call_request(entry.call.to, entry.call.data, block)
            transaction = {
                "from": self._signer.address,
                "to": entry.call.to,
                "data": json_rpc.data(entry.call.data),
                "value": json_rpc.quantity(entry.call.value),
            }
            try:
                await self._connection.request(asked.method, [transaction, asked.parameters[1]])
            except Reverted as error:
                return Outcome(revert=error.data)
            except RpcRefused:
                continue
        return Outcome()

    async def _replace_lost(self, entries: Sequence[Entry], head: Head) -> None:
        """Signs transactions anew whose nonce went to a stranger's transaction, once that is beyond doubt."""
        depth = max(head.number - self._settings.finality_blocks, 0)
        settled = await self._connection.transaction_count(self._signer.address, depth)
        beyond_doubt = [entry for entry in entries if entry.nonce < settled]
        if not beyond_doubt:
            return
        fees = await self._fees(head)
        for entry in beyond_doubt:
            count = await self._connection.transaction_count(self._signer.address, "pending")
            # From here to the store no await, or `send` could give out the same nonce.
            nonce = self._store.next_nonce(count)
            _LOG.warning(
                "nonce %d of %s was used elsewhere; now it is %d", entry.nonce, entry.key, nonce
            )
            await self._sign_again(entry, nonce, fees, head)

    async def _settle(self, entries: Sequence[Entry], head: Head) -> None:
        """Looks once more at transactions that are deep enough, and forgets them if they are still there."""
        deep = [
            (entry, entry.receipt)
            for entry in entries
            if entry.receipt and head.number - entry.receipt.block >= self._settings.finality_blocks
        ]
        asked = [
            Request("eth_getTransactionReceipt", [json_rpc.data(receipt.tx_hash)])
            for _, receipt in deep
        ]
        answers = await self._connection.batch(asked) if asked else []
        for (entry, receipt), answer in zip(deep, answers, strict=True):
            if answer is None:
                self._store.mark_pending(entry.key)
            elif Receipt.from_rpc(answer).block_hash != receipt.block_hash:
                await self._mined(entry, answer)
            else:
                self._store.mark_final(entry.key)

    async def _push(self, entries: Sequence[Entry], head: Head, count: int) -> None:
        """Raises the fees of what is stuck, gives up what came too late, sends again what may have been lost."""
        fees: Fees | None = None
        for entry in entries:
            attempt = entry.attempts[-1]
            give_up = attempt.given_up is None and self._hopeless(entry, head) is not None
            stuck = head.number - attempt.block >= self._settings.bump_after_blocks
            blocked = entry.nonce == count or (head.base_fee or 0) > attempt.fees.maximum
            if give_up or (stuck and blocked):
                try:
                    fees = fees or await self._fees(head)
                    raised = bumped(attempt.fees, fees, cap=self._settings.fee_cap)
                except FeeTooHigh:
                    raised = None
                if raised is not None:
                    await self._sign_again(entry, entry.nonce, raised, head)
                    continue
            if (
                time.monotonic() - self._sent_at.get(entry.key, -1e9)
                >= self._settings.rebroadcast_s
            ):
                await self._send_again(entry)

    async def _send_again(self, entry: Entry) -> None:
        """The newest attempt; where the account can't pay that, the cheapest one with the same nonce."""
        try:
            await self._send(entry.key, entry.attempts[-1])
        except EmptyBalance as error:
            cheapest = next(attempt for attempt in entry.attempts if attempt.nonce == entry.nonce)
            if cheapest is entry.attempts[-1]:
                self._fail(entry.key, error)
                return
            await self._send(entry.key, cheapest)

    def _hopeless(self, entry: Entry, head: Head) -> str | None:
        """Why the call itself won't be sent any more; None while there is hope."""
        before = entry.attempts[-1].given_up if entry.attempts else None
        if before is not None:
            return before
        if entry.call.not_after is not None and head.time >= entry.call.not_after:
            return EXPIRED
        return self._invalid.get(entry.key)

    async def _sign_again(self, entry: Entry, nonce: int, fees: Fees, head: Head) -> None:
        """Signs a transaction with other fees or nonce; an empty one if the call itself is hopeless."""
        given_up = self._hopeless(entry, head)
        raw = sign_transaction(
            _nothing(self._signer.address) if given_up is not None else entry.call,
            signer=self._signer,
            chain_id=self._connection.chain_id,
            nonce=nonce,
            gas=_EMPTY_GAS if given_up is not None else entry.gas,
            fees=fees,
        )
        attempt = Attempt(
            raw=raw.raw, hash=raw.hash, nonce=nonce, fees=fees, block=head.number, given_up=given_up
        )
        self._store.add_attempt(entry.key, attempt)
        try:
            await self._send(entry.key, attempt)
        except EmptyBalance as error:
            _LOG.warning("%s: no funds for higher fees: %s", entry.key, error)

    async def _send(self, key: str, attempt: Attempt) -> None:
        # Noted before the node answers: a pass meanwhile must not send the same thing again.
        self._sent_at[key] = time.monotonic()
        try:
            answer, words = await broadcast(self._connection, attempt.raw)
        except Retryable:
            self._sent_at.pop(key, None)
            raise
        if answer is Answer.NO_FUNDS:
            raise EmptyBalance(
                f"{self._signer.address} can't pay for {key} ({words})",
                "send it native currency; the outbox waits",
            )
        if answer is Answer.INVALID and attempt.given_up is None:
            self._invalid[key] = words
        if answer in (Answer.INVALID, Answer.UNDERPRICED, Answer.REFUSED):
            self._trouble = words
            _LOG.info("%s was not taken: %s", key, words)

    async def _fees(self, head: Head) -> Fees:
        price, tip = await self._connection.try_batch(
            [Request("eth_gasPrice", []), Request("eth_maxPriorityFeePerGas", [])]
        )
        if isinstance(price, Exception):
            raise price
        return offer(
            base_fee=head.base_fee,
            tip=DEFAULT_TIP if isinstance(tip, Exception) else json_rpc.as_int(tip),
            gas_price=json_rpc.as_int(price),
            cap=self._settings.fee_cap,
        )

    async def _receipts(self, attempts: Sequence[Attempt]) -> list[Json]:
        if not attempts:
            return []
        return await self._connection.batch(
            [
                Request("eth_getTransactionReceipt", [json_rpc.data(attempt.hash)])
                for attempt in attempts
            ]
        )

    def _is_done(self, entry: Entry) -> bool:
        if entry.status is Status.PENDING or entry.receipt is None:
            return False
        if entry.status is Status.FINAL or self._settings.confirmations <= 1:
            return True
        return self._head - entry.receipt.block + 1 >= self._settings.confirmations

    def _tell(self, entries: Sequence[Entry]) -> None:
        """Wakes whoever waits for a transaction that is done."""
        open_keys = {entry.key for entry in entries if not self._is_done(entry)}
        for key in [key for key in self._waiters if key not in open_keys]:
            entry = self._store.find(key)
            for future in self._waiters.get(key, ()):
                if not future.done() and entry is not None:
                    future.set_result(entry)

    def _fail(self, key: str, error: SyntienceError) -> None:
        for future in self._waiters.get(key, ()):
            if not future.done():
                future.set_exception(error)


def _nothing(sender: Address) -> Call:
    """A call without effect, which uses up a nonce."""
    return Call(to=sender, data=b"", label="nothing")
