"""The outbox on a real chain: exactly once, in one stream, to the end."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from ledger.abi import contract_abi
from ledger.broadcast import Answer, broadcast
from ledger.connection import Connection
from ledger.errors import (
    EmptyBalance,
    FeeTooHigh,
    KeyReused,
    ReceiptTimeout,
    Reverted,
    StoreBusy,
    StoreDamaged,
    StoreForeign,
)
from ledger.fees import GWEI
from ledger.json_rpc import Json
from ledger.keys import LocalSigner
from ledger.outbox import Outbox
from ledger.outbox_pump import OutboxSettings
from ledger.outbox_store import Attempt, OutboxStore, Outcome, Status
from ledger.transactions import Call, Fees, Receipt, sign_transaction
from protocol.errors import Bug
from protocol.ids import Address, Hash32
from tests.chain import Anvil, start_anvil
from tests.ledger.world import CAP, FAST, deployed, stranger, until
from tests.specs import tokens


@asynccontextmanager
async def sending(
    anvil: Anvil,
    folder: Path,
    signer: LocalSigner,
    *,
    settings: OutboxSettings = FAST,
    timeout_s: float = 10,
) -> AsyncIterator[Outbox]:
    """The signer's outbox in a folder, as one process has it."""
    async with await Connection.open(anvil.url, timeout_s=timeout_s) as connection:
        path = folder / "outbox.sqlite3"
        async with await Outbox.open(path, connection, signer, settings=settings) as outbox:
            yield outbox


def pay(to: Address, wei: int = 1) -> Call:
    return Call(to=to, data=b"", label="pay", value=wei)


def creation() -> Call:
    """A token whose minter and whole supply belong to the sender."""
    code = contract_abi("SynToken").creation((stranger(), CAP, CAP))
    return Call(to=None, data=code, label="SynToken.constructor")


async def test_submit__same_key_twice__sends_once(anvil: Anvil, tmp_path: Path) -> None:
    signer, to = anvil.key(), stranger()
    async with sending(anvil, tmp_path, signer) as outbox:
        first = await outbox.submit(pay(to), "pay/1")
        again = await outbox.submit(pay(to), "pay/1")
        assert first == again
        assert outbox.known("pay/1")
        assert not outbox.known("pay/2")
        with pytest.raises(KeyReused, match="pay/1"):
            await outbox.submit(pay(to, 2), "pay/1")
    async with sending(anvil, tmp_path, signer) as outbox:
        assert await outbox.submit(pay(to), "pay/1") == first
        assert outbox.gas_used() == [("pay", 21_000)]
    assert anvil.balance(to) == 1
    assert anvil.nonce(signer.address) == 1


async def test_submit__same_key_at_once__sends_once(anvil: Anvil, tmp_path: Path) -> None:
    signer, to = anvil.key(), stranger()
    async with sending(anvil, tmp_path, signer) as outbox:
        receipts = await asyncio.gather(*(outbox.submit(pay(to), "k") for _ in range(10)))
    assert len(set(receipts)) == 1
    assert anvil.balance(to) == 1


async def test_submit__many_at_once__travel_together(tmp_path: Path) -> None:
    with start_anvil("--block-time", "1") as anvil:
        signer, to = anvil.key(), stranger()
        async with sending(anvil, tmp_path, signer, settings=OutboxSettings()) as outbox:
            receipts = await asyncio.gather(
                *(outbox.submit(pay(to), f"k/{number}") for number in range(60))
            )
        blocks = {receipt.block for receipt in receipts}
        assert max(blocks) - min(blocks) <= 2
        assert anvil.balance(to) == 60


async def test_send__in_order__later_ones_build_on_pending_ones(tmp_path: Path) -> None:
    """The estimate of a call sees what was sent before it and is in no block yet."""
    with start_anvil("--no-mining") as anvil:
        signer = anvil.key()
        async with sending(anvil, tmp_path, signer) as outbox:
            await outbox.send(creation(), "create")
            token = (await _created(outbox, anvil)).contract
            assert token is not None
            interface = contract_abi("SynToken")
            approve = interface.function("approve").encode_call((signer.address, 5))
            burn = interface.function("burnFrom").encode_call((signer.address, 5))
            with pytest.raises(Reverted, match="ERC20InsufficientAllowance"):
                await outbox.send(Call(to=token, data=burn, label="burnFrom"), "burn")
            await outbox.send(Call(to=token, data=approve, label="approve"), "approve")
            await outbox.send(Call(to=token, data=burn, label="burnFrom"), "burn")
            assert outbox.waiting() == 2
            anvil.mine()
            assert (await outbox.receipt("burn")).succeeded


async def _created(outbox: Outbox, anvil: Anvil) -> Receipt:
    anvil.mine()
    return await outbox.receipt("create")


async def test_submit__call_that_would_revert__is_refused_unsigned(
    own_anvil: Anvil, tmp_path: Path
) -> None:
    async with deployed(own_anvil, tmp_path) as world:
        poor = await world.outbox(own_anvil.key())
        call = world.contracts.token.transfer_call(stranger(), tokens(1))
        with pytest.raises(Reverted) as refused:
            await poor.submit(call, "transfer")
        assert refused.value.name == "ERC20InsufficientBalance"
        assert refused.value.arguments == {
            "sender": poor.address,
            "balance": 0,
            "needed": tokens(1),
        }
        assert refused.value.tx_hash is None
        assert own_anvil.nonce(poor.address) == 0
        await world.act(
            world.deployer, world.contracts.token.transfer_call(poor.address, tokens(5))
        )
        assert (await poor.submit(call, "transfer")).succeeded


async def test_submit__revert_on_chain__is_typed_and_stands(
    own_anvil: Anvil, tmp_path: Path
) -> None:
    async with deployed(own_anvil, tmp_path) as world:
        poor = await world.outbox(own_anvil.key())
        sure = world.contracts.token.transfer_call(stranger(), tokens(1))
        call = Call(to=sure.to, data=sure.data, label=sure.label, gas=100_000)
        for _ in range(2):
            with pytest.raises(Reverted) as refused:
                await poor.submit(call, "transfer")
            assert refused.value.name == "ERC20InsufficientBalance"
            assert refused.value.arguments["needed"] == tokens(1)
            assert refused.value.tx_hash is not None
        assert own_anvil.nonce(poor.address) == 1
        approve = world.contracts.token.approve_call(stranger(), tokens(1))
        hungry = Call(to=approve.to, data=approve.data, label=approve.label, gas=30_000)
        with pytest.raises(Reverted) as refused:
            await poor.submit(hungry, "hungry")
        assert refused.value.name == "OutOfGas"


async def test_submit__impossible_gas__is_our_bug(anvil: Anvil, tmp_path: Path) -> None:
    async with sending(anvil, tmp_path, anvil.key()) as outbox:
        for gas in (20_999, 21_000 + 39_999, 1 << 25):
            call = Call(to=stranger(), data=b"x" * 1_000, label="heavy", gas=gas)
            with pytest.raises(Bug, match="heavy"):
                await outbox.send(call, "k")
        assert not outbox.known("k")


async def test_submit__call_that_no_node_takes__frees_its_nonce(
    anvil: Anvil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signer, to = anvil.key(), stranger()
    refused_raw: list[bytes] = []

    async def picky(connection: Connection, raw: bytes) -> tuple[Answer, str]:
        if not refused_raw or raw in refused_raw:
            refused_raw.append(raw)
            return Answer.INVALID, "oversized data"
        return await broadcast(connection, raw)

    monkeypatch.setattr("ledger.outbox_pump.broadcast", picky)
    async with sending(anvil, tmp_path, signer) as outbox:
        await outbox.send(pay(to), "refused")
        assert (await outbox.submit(pay(to), "next")).succeeded
        with pytest.raises(Reverted, match="oversized data") as refused:
            await outbox.receipt("refused")
        assert refused.value.name == "NotAccepted"
    assert anvil.balance(to) == 1
    assert anvil.nonce(signer.address) == 2


async def test_submit__funds_gone_when_offered__waits_for_more(
    anvil: Anvil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signer, to = anvil.key(), stranger()

    async def poor(connection: Connection, raw: bytes) -> tuple[Answer, str]:
        return Answer.NO_FUNDS, "insufficient funds"

    monkeypatch.setattr("ledger.outbox_pump.broadcast", poor)
    async with sending(anvil, tmp_path, signer) as outbox:
        for _ in range(2):
            with pytest.raises(EmptyBalance, match="the outbox waits"):
                await outbox.submit(pay(to), "k")
        monkeypatch.undo()
        await asyncio.sleep(0.1)
        assert (await outbox.submit(pay(to), "k")).succeeded
    assert anvil.balance(to) == 1


async def test_submit__after_the_task_died__says_why(
    anvil: Anvil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signer, to = anvil.key(), stranger()

    def full(self: OutboxStore, *args: object) -> None:
        raise OSError("disk full")

    async with sending(anvil, tmp_path, signer) as outbox:
        monkeypatch.setattr(OutboxStore, "mark_mined", full)
        for _ in range(2):
            with pytest.raises(Bug, match="disk full"):
                await outbox.submit(pay(to), "k")
        with pytest.raises(Bug, match="disk full"):
            await outbox.submit(pay(to), "other")
        monkeypatch.undo()
    async with sending(anvil, tmp_path, signer) as restarted:
        assert (await restarted.submit(pay(to), "k")).succeeded
    assert anvil.balance(to) == 1


async def test_submit__no_funds__says_what_to_do(anvil: Anvil, tmp_path: Path) -> None:
    signer = LocalSigner(b"\x17" * 32)
    async with sending(anvil, tmp_path, signer) as outbox:
        with pytest.raises(EmptyBalance, match="send it some") as refused:
            await outbox.submit(pay(stranger()), "k")
        assert signer.address in str(refused.value)
        anvil.rpc("anvil_setBalance", signer.address, hex(1_000))
        with pytest.raises(EmptyBalance):
            await outbox.submit(pay(stranger()), "k")
        anvil.rpc("anvil_setBalance", signer.address, hex(10**18))
        with pytest.raises(EmptyBalance):
            await outbox.submit(pay(stranger(), 10**18), "k")
        assert not outbox.known("k")
        assert (await outbox.submit(pay(stranger()), "k")).succeeded


async def test_receipt__no_block__times_out_and_goes_on(tmp_path: Path) -> None:
    with start_anvil("--no-mining") as anvil:
        signer, to = anvil.key(), stranger()
        async with sending(anvil, tmp_path, signer) as outbox:
            with pytest.raises(ReceiptTimeout, match="keeps trying"):
                await outbox.submit(pay(to), "k", timeout_s=0.3)
            anvil.mine()
            assert (await outbox.submit(pay(to), "k")).succeeded
        assert anvil.balance(to) == 1


async def test_receipt__confirmations__are_waited_for(tmp_path: Path) -> None:
    with start_anvil("--no-mining") as anvil:
        signer = anvil.key()
        settings = OutboxSettings(poll_s=0.05, confirmations=3, finality_blocks=4)
        async with sending(anvil, tmp_path, signer, settings=settings) as outbox:
            await outbox.send(pay(stranger()), "k")
            anvil.mine(2)
            with pytest.raises(ReceiptTimeout):
                await outbox.receipt("k", timeout_s=0.4)
            anvil.mine()
            receipt = await outbox.receipt("k")
            assert anvil.block_number() - receipt.block + 1 == 3


def test_settings__more_confirmations_than_finality__are_refused() -> None:
    with pytest.raises(Bug):
        OutboxSettings(confirmations=10, finality_blocks=2)


async def test_pump__dropped_from_the_pool__is_sent_again(tmp_path: Path) -> None:
    with start_anvil("--no-mining") as anvil:
        signer, to = anvil.key(), stranger()
        async with sending(anvil, tmp_path, signer) as outbox:
            await outbox.send(pay(to), "k")
            anvil.rpc("anvil_dropAllTransactions")
            await until(lambda: anvil.rpc("txpool_status")["pending"] == "0x1")
            anvil.mine()
            assert (await outbox.receipt("k")).succeeded
        assert anvil.balance(to) == 1


async def test_pump__stuck_below_the_base_fee__raises_its_fees(tmp_path: Path) -> None:
    with start_anvil("--no-mining") as anvil:
        signer, to = anvil.key(), stranger()
        settings = OutboxSettings(poll_s=0.05, bump_after_blocks=2, rebroadcast_s=0.2)
        async with sending(anvil, tmp_path, signer, settings=settings) as outbox:
            await outbox.send(pay(to), "a")
            await outbox.send(pay(to), "b")
            for _ in range(4):
                anvil.rpc("anvil_setNextBlockBaseFeePerGas", hex(40 * GWEI))
                anvil.mine()
            assert anvil.balance(to) == 0

            def paid() -> bool:
                anvil.rpc("anvil_setNextBlockBaseFeePerGas", hex(40 * GWEI))
                anvil.mine()
                return anvil.balance(to) == 2

            await until(paid)
            receipt = await outbox.receipt("a")
            assert receipt.gas_price >= 40 * GWEI
            assert (await outbox.receipt("b")).succeeded
        assert anvil.nonce(signer.address) == 2


async def test_send__base_fee_above_the_cap__waits_unsigned(tmp_path: Path) -> None:
    with start_anvil("--block-base-fee-per-gas", str(50 * GWEI)) as anvil:
        signer = anvil.key()
        settings = OutboxSettings(poll_s=0.05, fee_cap=10 * GWEI)
        async with sending(anvil, tmp_path, signer, settings=settings) as outbox:
            with pytest.raises(FeeTooHigh):
                await outbox.send(pay(stranger()), "k")
            assert not outbox.known("k")


async def test_pump__nonce_used_by_a_stranger__sends_with_another(tmp_path: Path) -> None:
    with start_anvil("--no-mining") as anvil:
        signer, to, other = anvil.key(), stranger(), stranger()
        async with sending(anvil, tmp_path, signer) as outbox:
            await outbox.send(pay(to), "k")
            anvil.rpc("anvil_dropAllTransactions")
            thief = sign_transaction(
                pay(other),
                signer=signer,
                chain_id=31337,
                nonce=0,
                gas=21_000,
                fees=Fees(maximum=90 * GWEI, priority=50 * GWEI),
            )
            anvil.rpc("eth_sendRawTransaction", "0x" + thief.raw.hex())
            anvil.mine()
            assert anvil.balance(other) == 1
            await asyncio.sleep(0.3)
            assert anvil.rpc("txpool_status")["pending"] == "0x0"  # not final yet: no second one
            anvil.mine(5)

            def paid() -> bool:
                anvil.mine()
                return anvil.balance(to) == 1

            await until(paid)
            assert (await outbox.receipt("k")).succeeded
        assert anvil.nonce(signer.address) == 2


async def test_pump__reorganised_away__gets_into_a_block_again(
    own_anvil: Anvil, tmp_path: Path
) -> None:
    signer, to = own_anvil.key(), stranger()
    own_anvil.mine(5)
    async with (
        await Connection.open(own_anvil.url) as connection,
        await Outbox.open(tmp_path / "o", connection, signer, settings=FAST) as outbox,
    ):
        await outbox.submit(pay(to), "k")
        own_anvil.rpc("anvil_reorg", 3, [])
        assert own_anvil.balance(to) == 0
        own_anvil.mine()
        await until(lambda: own_anvil.balance(to) == 1)
        own_anvil.mine(6)
        await until(lambda: not _open_rows(outbox))
        assert (await outbox.receipt("k")).succeeded
    assert own_anvil.nonce(signer.address) == 1


def _open_rows(outbox: Outbox) -> list[str]:
    return [entry.key for entry in outbox._store.unsettled()]


async def test_pump__window_closed__uses_up_the_nonce_and_reports(tmp_path: Path) -> None:
    with start_anvil("--no-mining") as anvil:
        signer, to = anvil.key(), stranger()
        async with sending(anvil, tmp_path, signer) as outbox:
            window = anvil.time() + 100
            await outbox.send(pay(to).within(window), "late")
            await outbox.send(pay(to), "next")
            anvil.rpc("anvil_dropAllTransactions")
            anvil.advance_to(window)

            def through() -> bool:
                anvil.mine()
                return anvil.balance(to) == 1

            await until(through)
            for _ in range(2):
                with pytest.raises(Reverted) as refused:
                    await outbox.submit(pay(to).within(window), "late")
                assert refused.value.name == "Expired"
            assert (await outbox.receipt("next")).succeeded
            with pytest.raises(Reverted) as refused:
                await outbox.send(pay(to).within(window), "later")
            assert refused.value.name == "Expired"
            assert not outbox.known("later")
            assert outbox.gas_used() == [("pay", 21_000)]
        assert anvil.balance(to) == 1
        assert anvil.nonce(signer.address) == 2


async def test_submit__window_moved_by_a_pause__is_sent_again_under_the_same_key(
    tmp_path: Path,
) -> None:
    with start_anvil("--no-mining") as anvil:
        signer, to = anvil.key(), stranger()
        # What was dropped must not come back in time.
        slow = replace(FAST, rebroadcast_s=600)
        async with sending(anvil, tmp_path, signer, settings=slow) as outbox:
            window = anvil.time() + 100
            await outbox.send(pay(to).within(window), "late")
            assert outbox.known("late")
            anvil.rpc("anvil_dropAllTransactions")
            anvil.advance_to(window)

            def given_up() -> bool:
                anvil.mine()
                return not outbox.known("late")

            await until(given_up)
            await outbox.send(pay(to).within(window + 500), "late")
            assert outbox.known("late")
            assert outbox.nonce_of("late") == 1
            await until(lambda: anvil.rpc("txpool_status")["pending"] == "0x1")
            anvil.mine()
            assert (await outbox.receipt("late")).succeeded
            anvil.mine(10)
            await until(lambda: not _open_rows(outbox))
            assert await outbox.submit(pay(to).within(window + 500), "late")
        assert anvil.balance(to) == 1
        assert anvil.nonce(signer.address) == 2


async def test_send__node_slow_to_answer__is_shown_the_transaction_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[bytes] = []

    async def slowly(connection: Connection, raw: bytes) -> tuple[Answer, str]:
        shown.append(raw)
        await asyncio.sleep(4 * FAST.poll_s)
        return await broadcast(connection, raw)

    monkeypatch.setattr("ledger.outbox_pump.broadcast", slowly)
    with start_anvil("--no-mining") as anvil:
        signer = anvil.key()
        slow = replace(FAST, rebroadcast_s=600)
        async with sending(anvil, tmp_path, signer, settings=slow) as outbox:
            await outbox.send(pay(stranger()), "first")
            await outbox.send(pay(stranger()), "second")
            await asyncio.sleep(4 * FAST.poll_s)
    assert len(shown) == 2


async def test_submit__window_met__is_like_any_other(anvil: Anvil, tmp_path: Path) -> None:
    signer, to = anvil.key(), stranger()
    async with sending(anvil, tmp_path, signer) as outbox:
        call = pay(to).within(anvil.time() + 1_000, gas=30_000)
        assert (await outbox.submit(call, "k")).succeeded
    assert anvil.balance(to) == 1


async def test_restart__after_the_chain_forgot_the_pool__sends_again(tmp_path: Path) -> None:
    with start_anvil("--no-mining") as anvil:
        signer, to = anvil.key(), stranger()
        async with sending(anvil, tmp_path, signer) as outbox:
            for number in range(5):
                await outbox.send(pay(to), f"k/{number}")
        anvil.rpc("anvil_dropAllTransactions")
        async with sending(anvil, tmp_path, signer) as restarted:
            await until(lambda: anvil.rpc("txpool_status")["pending"] == "0x5")
            anvil.mine()
            for number in range(5):
                assert (await restarted.submit(pay(to), f"k/{number}")).succeeded
        assert anvil.balance(to) == 5


async def test_submit__node_away_for_a_while__goes_on(tmp_path: Path) -> None:
    """The node stops answering after the transaction was offered and comes back."""
    with start_anvil("--no-mining") as anvil:
        signer, to = anvil.key(), stranger()
        async with sending(anvil, tmp_path, signer, timeout_s=0.3) as outbox:
            await outbox.send(pay(to), "k")
            os.kill(anvil.pid, signal.SIGSTOP)
            with pytest.raises(ReceiptTimeout, match="did not answer in time"):
                await outbox.receipt("k", timeout_s=1.5)
            os.kill(anvil.pid, signal.SIGCONT)
            anvil.mine()
            assert (await outbox.receipt("k")).succeeded


async def test_open__second_process__is_refused(anvil: Anvil, tmp_path: Path) -> None:
    async with await Connection.open(anvil.url) as connection:
        signer = anvil.key()
        async with await Outbox.open(tmp_path / "o", connection, signer, settings=FAST):
            with pytest.raises(StoreBusy, match="another process"):
                await Outbox.open(tmp_path / "o", connection, signer)
        async with await Outbox.open(tmp_path / "o", connection, signer, settings=FAST):
            pass


async def test_open__other_key_or_chain__is_refused(anvil: Anvil, tmp_path: Path) -> None:
    async with await Connection.open(anvil.url) as connection:
        signer = anvil.key()
        async with await Outbox.open(tmp_path / "o", connection, signer, settings=FAST):
            pass
        with pytest.raises(StoreForeign, match="data folder of its own"):
            await Outbox.open(tmp_path / "o", connection, anvil.key())
    with start_anvil("--timestamp", "1000") as other:
        async with await Connection.open(other.url) as connection:
            with pytest.raises(StoreForeign, match="another chain"):
                await Outbox.open(tmp_path / "o", connection, signer)


async def test_open__damaged_file__says_so(anvil: Anvil, tmp_path: Path) -> None:
    path = tmp_path / "o"
    path.write_bytes(b"this is no database, however long one looks at it" * 100)
    async with await Connection.open(anvil.url) as connection:
        with pytest.raises(StoreDamaged, match="cannot use the database"):
            await Outbox.open(path, connection, anvil.key())


def test_store__finished_transactions__lose_their_attempts(tmp_path: Path) -> None:
    with OutboxStore(tmp_path / "o") as store:
        attempt = Attempt(
            raw=b"x",
            hash=Hash32(bytes(32)),
            nonce=3,
            fees=Fees(maximum=1, priority=1),
            block=1,
        )
        store.add("k", pay(stranger()), gas=21_000, attempt=attempt, now=0)
        assert store.next_nonce(0) == 4
        assert store.worst_cost() == 21_001
        receipt: Json = {
            "transactionHash": "0x" + "11" * 32,
            "blockNumber": "0x5",
            "blockHash": "0x" + "22" * 32,
            "status": "0x1",
            "gasUsed": "0x5208",
            "contractAddress": None,
            "logs": [],
        }
        store.mark_mined("k", receipt, Outcome())
        assert store.worst_cost() == 0
        store.mark_final("k")
        entry = store.find("k")
        assert entry is not None
        assert entry.status is Status.FINAL
        assert entry.attempts == ()
        assert store.unsettled() == []
        assert store.next_nonce(0) == 0
        with pytest.raises(Bug):
            store.mark_final("no such key")
