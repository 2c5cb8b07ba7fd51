"""Deploying, joining, the books, and what is said when a run file and a chain don't fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ledger.abi import CONTRACT_NAMES
from ledger.accounting import books_at, take_books
from ledger.connection import Connection
from ledger.contracts.registry import Role
from ledger.deploy import deploy
from ledger.errors import (
    EmptyBalance,
    NotDeployed,
    Reverted,
    RunFileError,
    RunMismatch,
)
from ledger.keys import LocalSigner, new_private_key
from ledger.outbox import Outbox
from ledger.runs import join, load_run_file, write_run_file
from ledger.transactions import Call
from protocol.errors import OperatorError
from protocol.ids import Units
from protocol.runfile import RunFile
from protocol.spec import RunSpec
from protocol.submission import run_id
from tests.chain import Anvil, start_anvil
from tests.ledger.world import ALLOCATION, CAP, FAST, deployed, stranger
from tests.specs import SPEC, tokens

LATER = replace(SPEC, chain=replace(SPEC.chain, genesis_time=2_000_000_000))


async def _deploy(outbox: Outbox, connection: Connection, spec: RunSpec = LATER) -> RunFile:
    return await deploy(connection, outbox, spec, cap=CAP, genesis_allocation=ALLOCATION)


async def test_deploy__twice_with_one_outbox__deploys_once(
    own_anvil: Anvil, tmp_path: Path
) -> None:
    signer = own_anvil.key()
    async with await Connection.open(own_anvil.url) as connection:
        async with await Outbox.open(tmp_path / "o", connection, signer, settings=FAST) as box:
            first = await _deploy(box, connection)
        async with await Outbox.open(tmp_path / "o", connection, signer, settings=FAST) as again:
            assert await _deploy(again, connection) == first
    assert own_anvil.nonce(signer.address) == len(CONTRACT_NAMES)


async def test_deploy__crash_in_the_middle__is_completed(
    own_anvil: Anvil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signer, send = own_anvil.key(), Outbox.send
    sent: list[str] = []

    async def dying(self: Outbox, call: Call, key: str) -> None:
        if len(sent) == 3:
            raise KeyboardInterrupt
        sent.append(key)
        await send(self, call, key)

    async with await Connection.open(own_anvil.url) as connection:
        async with await Outbox.open(tmp_path / "o", connection, signer, settings=FAST) as box:
            monkeypatch.setattr(Outbox, "send", dying)
            with pytest.raises(KeyboardInterrupt):
                await _deploy(box, connection)
            monkeypatch.setattr(Outbox, "send", send)
        async with await Outbox.open(tmp_path / "o", connection, signer, settings=FAST) as again:
            run_file = await _deploy(again, connection)
        await join(run_file, connection)
    assert own_anvil.nonce(signer.address) == len(CONTRACT_NAMES)


async def test_deploy__used_account__computes_from_its_nonce(
    own_anvil: Anvil, tmp_path: Path
) -> None:
    signer = own_anvil.key()
    async with (
        await Connection.open(own_anvil.url) as connection,
        await Outbox.open(tmp_path / "o", connection, signer, settings=FAST) as box,
    ):
        for number in range(3):
            call = Call(to=stranger(), data=b"", label="pay", value=1)
            await box.submit(call, f"pay/{number}")
        run_file = await _deploy(box, connection)
        contracts = await join(run_file, connection)
        assert await contracts.token.balance_of(signer.address) == ALLOCATION
        assert await contracts.token.total_supply() == ALLOCATION
        assert (await contracts.epochs.schedule())[0].spec_hash == run_file.spec.hash()
        assert await contracts.epochs.params() == run_file.spec.chain
        assert 0 < run_file.deploy_block <= own_anvil.block_number()


async def test_deploy__two_chains_of_one_id__have_different_runs(tmp_path: Path) -> None:
    runs = set()
    key = new_private_key()
    for number in range(2):
        with start_anvil("--timestamp", str(1_700_000_000 + number)) as anvil:
            signer = LocalSigner(key)
            anvil.fund(signer.address)
            async with (
                await Connection.open(anvil.url) as connection,
                await Outbox.open(tmp_path / str(number), connection, signer, settings=FAST) as box,
            ):
                runs.add((await _deploy(box, connection)).run)
    assert len(runs) == 2


async def test_deploy__wrong_inputs__say_what_to_do(own_anvil: Anvil, tmp_path: Path) -> None:
    async with await Connection.open(own_anvil.url) as connection:
        poor = LocalSigner(new_private_key())
        async with await Outbox.open(tmp_path / "p", connection, poor, settings=FAST) as box:
            with pytest.raises(EmptyBalance, match=poor.address):
                await _deploy(box, connection)
        signer = own_anvil.key()
        async with await Outbox.open(tmp_path / "o", connection, signer, settings=FAST) as box:
            with pytest.raises(OperatorError, match="in the past"):
                await _deploy(box, connection, SPEC)
            for name, value, kind in (
                ("train_s", -5, "uint32"),
                ("bounty_bps", 1 << 16, "uint16"),
                ("genesis_time", 1 << 64, "uint64"),
            ):
                changes = {"genesis_time": 2_000_000_000, name: value}
                odd = replace(SPEC.chain, **changes)  # type: ignore[arg-type]  # fields by name
                with pytest.raises(OperatorError, match=f"{name} is {value}, which is no {kind}"):
                    await _deploy(box, connection, replace(SPEC, chain=odd))
            soon = replace(SPEC.chain, unbonding_s=1, genesis_time=2_000_000_000)
            with pytest.raises(Reverted) as refused:
                await _deploy(box, connection, replace(SPEC, chain=soon))
            assert refused.value.name == "UnbondingTooShort"
            assert refused.value.label == "StakeVault.constructor"


async def test_join__chain_without_the_run__says_so(own_anvil: Anvil, tmp_path: Path) -> None:
    async with deployed(own_anvil, tmp_path) as world:
        run_file = world.run_file
    with start_anvil() as empty:
        async with await Connection.open(empty.url) as connection:
            with pytest.raises(NotDeployed, match="restarted has lost the run"):
                await join(run_file, connection)
    with start_anvil("--chain-id", "5") as other:
        async with await Connection.open(other.url) as connection:
            with pytest.raises(RunMismatch, match="chain 31337, not on 5"):
                await join(run_file, connection)


async def test_join__file_and_contracts_differ__names_the_difference(
    own_anvil: Anvil, tmp_path: Path
) -> None:
    async with deployed(own_anvil, tmp_path) as world:
        good = world.run_file
        await join(good, world.connection)
        params = replace(good.spec.chain, put_s=good.spec.chain.put_s + 1)
        changed = replace(good, spec=replace(good.spec, chain=params))
        with pytest.raises(RunMismatch, match="spec's hash"):
            await join(changed, world.connection)
        run = run_id(chain_id=31337, registry=good.contracts.registry, nonce=good.nonce + 1)
        with pytest.raises(RunMismatch, match="run's id"):
            await join(replace(good, run=run, nonce=good.nonce + 1), world.connection)
        swapped = replace(good.contracts, epochs=good.contracts.vault)
        with pytest.raises(RunMismatch, match="answer like others"):
            await join(replace(good, contracts=swapped), world.connection)


async def test_run_file__wrong_or_missing__says_what_to_do(
    own_anvil: Anvil, tmp_path: Path
) -> None:
    path = tmp_path / "run.json"
    with pytest.raises(RunFileError, match="no run file"):
        load_run_file(path)
    with pytest.raises(RunFileError, match="permissions"):
        load_run_file(tmp_path)
    async with deployed(own_anvil, tmp_path) as world:
        write_run_file(path, world.run_file)
        assert load_run_file(path) == world.run_file
    good = path.read_bytes()
    for bad in (b"", b"{}", good[:-9], good.replace(b":31337", b":31338")):
        path.write_bytes(bad)
        with pytest.raises(RunFileError, match="no valid run file"):
            load_run_file(path)


async def test_books__a_donation__shows_as_a_difference(own_anvil: Anvil, tmp_path: Path) -> None:
    async with deployed(own_anvil, tmp_path) as world:
        miner = await world.join(Role.MINER, tokens(200))
        await world.act(miner.owner, world.contracts.vault.request_unbond_call(tokens(50)))
        await world.reader.poll()
        books = await take_books(world.contracts, world.reader)
        assert books.balanced
        assert books.stakes == books.token_balance == tokens(200)
        gift = world.contracts.token.transfer_call(world.contracts.registry.address, Units(1))
        await world.act(world.deployer, gift)
        await world.reader.poll()
        after = await take_books(world.contracts, world.reader)
        assert not after.balanced
        assert after.token_balance == after.accounted + 1
        before = await books_at(world.contracts, [miner.account], Units(0), books.block)
        assert before == books
