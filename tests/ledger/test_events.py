"""The event reader and what is built on it, on a real chain: exact, restartable, reorganisation-proof."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ledger.connection import Connection
from ledger.errors import RpcUnavailable, StoreForeign
from ledger.event_store import BlockMark, EventStore
from ledger.event_types import Deposited, Event
from ledger.events import EventReader
from protocol.ids import ZERO32
from protocol.runfile import ContractAddresses
from tests.chain import Anvil, start_anvil
from tests.ledger.fake_node import RpcFault, fake_node
from tests.ledger.world import World, deployed, stranger
from tests.specs import tokens


async def _deposit(world: World, amount: int) -> None:
    vault, token = world.contracts.vault, world.contracts.token
    await world.act(world.deployer, token.approve_call(vault.address, tokens(amount)))
    await world.act(world.deployer, vault.deposit_call(tokens(amount)))


async def _reader(world: World, name: str, confirmations: int = 0) -> EventReader:
    reader = await EventReader.open(
        world.folder / name,
        world.connection,
        world.run_file.contracts,
        from_block=world.run_file.deploy_block,
        confirmations=confirmations,
    )
    world.stack.callback(reader.close)
    return reader


def _amounts(events: tuple[Event, ...] | list[Deposited]) -> list[int]:
    return [event.amount // tokens(1) for event in events if isinstance(event, Deposited)]


async def test_poll__new_events__each_comes_once_and_in_order(
    own_anvil: Anvil, tmp_path: Path
) -> None:
    async with deployed(own_anvil, tmp_path) as world:
        await world.reader.poll()
        await _deposit(world, 1)
        update = await world.reader.poll()
        assert _amounts(update.events) == [1]
        assert update.head.number == own_anvil.block_number()
        assert (await world.reader.poll()).events == ()
        own_anvil.mine(3)
        assert (await world.reader.poll()).events == ()
        await _deposit(world, 2)
        await _deposit(world, 3)
        assert _amounts((await world.reader.poll()).events) == [2, 3]
        assert _amounts(world.reader.events(Deposited)) == [1, 2, 3]
        deployer = world.deployer.address
        assert _amounts(world.reader.events(Deposited, account=deployer)) == [1, 2, 3]
        assert world.reader.events(Deposited, account=stranger()) == []


async def test_poll__another_reader__gets_the_same_in_ranges(
    own_anvil: Anvil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with deployed(own_anvil, tmp_path) as world:
        for amount in (1, 2, 3):
            await _deposit(world, amount)
            own_anvil.mine(4)
        await world.reader.poll()
        monkeypatch.setattr("ledger.events._RANGE", 3)
        late = await _reader(world, "late")
        assert _amounts((await late.poll()).events) == [1, 2, 3]
        assert late.store.all() == world.reader.store.all()
        assert late.complete_upto == own_anvil.block_number()


async def test_poll__restart__goes_on_where_it_stopped(own_anvil: Anvil, tmp_path: Path) -> None:
    async with deployed(own_anvil, tmp_path) as world:
        await _deposit(world, 1)
        first = await _reader(world, "e")
        await first.poll()
        first.close()
        await _deposit(world, 2)
        second = await _reader(world, "e")
        assert _amounts((await second.poll()).events) == [2]
        assert _amounts(second.events(Deposited)) == [1, 2]


async def test_poll__crash_between_ranges__keeps_what_was_read(
    own_anvil: Anvil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with deployed(own_anvil, tmp_path) as world:
        for amount in (1, 2, 3):
            await _deposit(world, amount)
            own_anvil.mine(4)
        monkeypatch.setattr("ledger.events._RANGE", 4)
        reader = await _reader(world, "e")
        append, calls = EventStore.append, []

        def torn(self: EventStore, *args: Any) -> None:
            calls.append(args)
            if len(calls) == 4:
                raise RpcUnavailable("gone")
            append(self, *args)

        monkeypatch.setattr(EventStore, "append", torn)
        with pytest.raises(RpcUnavailable):
            await reader.poll()
        monkeypatch.setattr(EventStore, "append", append)
        reader.close()
        again = await _reader(world, "e")
        await again.poll()
        assert _amounts(again.events(Deposited)) == [1, 2, 3]


@pytest.mark.parametrize("depth", [1, 2, 5])
async def test_poll__reorganised__takes_events_back(
    own_anvil: Anvil, tmp_path: Path, depth: int
) -> None:
    async with deployed(own_anvil, tmp_path) as world:
        await _deposit(world, 1)
        own_anvil.mine(depth)
        await world.reader.poll()
        call = world.contracts.vault.deposit_call(tokens(2))
        await world.act(
            world.deployer, world.contracts.token.approve_call(call.to or stranger(), tokens(2))
        )
        await world.reader.poll()
        await world.act(world.deployer, call)
        for _ in range(depth - 1):
            own_anvil.mine()
            await world.reader.poll()
        await world.reader.poll()
        assert _amounts(world.reader.events(Deposited)) == [1, 2]
        await world.deployer.aclose()  # or it would send the deposit again at once
        own_anvil.rpc("anvil_reorg", depth, [])
        own_anvil.rpc("anvil_dropAllTransactions")
        update = await world.reader.poll()
        assert _amounts(update.removed) == [2]
        assert update.events == ()
        assert _amounts(world.reader.events(Deposited)) == [1]
        own_anvil.mine()
        assert (await world.reader.poll()).removed == ()
        assert world.reader.complete_upto == own_anvil.block_number()


async def test_poll__reorganised_while_away__is_found_at_the_restart(
    own_anvil: Anvil, tmp_path: Path
) -> None:
    async with deployed(own_anvil, tmp_path) as world:
        await _deposit(world, 1)
        reader = await _reader(world, "e")
        await reader.poll()
        reader.close()
        await world.deployer.aclose()
        own_anvil.rpc("anvil_reorg", 1, [])
        own_anvil.rpc("anvil_dropAllTransactions")
        own_anvil.mine(3)
        again = await _reader(world, "e")
        assert _amounts((await again.poll()).removed) == [1]
        assert again.events(Deposited) == []


async def test_poll__reorganised_below_all_memory__starts_over(
    own_anvil: Anvil, tmp_path: Path
) -> None:
    async with deployed(own_anvil, tmp_path) as world:
        await _deposit(world, 1)
        reader = await _reader(world, "e")
        await reader.poll()
        reader.close()
        store = EventStore(world.folder / "e")
        mark = store.newest()
        assert mark is not None
        store.append([], BlockMark(number=mark.number, hash=ZERO32[:31] + b"\x01"))  # type: ignore[arg-type]
        store.close()
        again = await _reader(world, "e")
        update = await again.poll()
        assert _amounts(update.removed) == [1]
        assert _amounts(update.events) == [1]


async def test_poll__chain_became_shorter__waits_and_then_sees(
    own_anvil: Anvil, tmp_path: Path
) -> None:
    async with deployed(own_anvil, tmp_path) as world:
        await world.reader.poll()
        await world.deployer.aclose()
        own_anvil.mine(4)
        await world.reader.poll()
        own_anvil.rpc("anvil_rollback", 2)
        assert (await world.reader.poll()).removed == ()
        own_anvil.mine(5)
        await world.reader.poll()
        assert world.reader.complete_upto == own_anvil.block_number()
        newest = world.reader.store.newest()
        block = await world.connection.block("latest")
        assert newest is not None
        assert block is not None
        assert newest.hash == block.hash


async def test_poll__confirmations__hold_events_back(own_anvil: Anvil, tmp_path: Path) -> None:
    async with deployed(own_anvil, tmp_path) as world:
        reader = await _reader(world, "e", confirmations=2)
        await _deposit(world, 1)
        assert _amounts((await reader.poll()).events) == []
        own_anvil.mine()
        assert _amounts((await reader.poll()).events) == []
        own_anvil.mine()
        assert _amounts((await reader.poll()).events) == [1]
        await world.deployer.aclose()
        own_anvil.rpc("anvil_reorg", 2, [])
        assert (await reader.poll()).removed == ()


async def test_poll__head_stands_still__costs_one_request(
    own_anvil: Anvil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with deployed(own_anvil, tmp_path) as world:
        await world.reader.poll()
        asked: list[str] = []
        request = Connection.request

        async def counting(self: Connection, method: str, *args: Any, **kwargs: Any) -> Any:
            asked.append(method)
            return await request(self, method, *args, **kwargs)

        monkeypatch.setattr(Connection, "request", counting)
        for _ in range(3):
            await world.reader.poll()
        assert asked == ["eth_getBlockByNumber"] * 3
        asked.clear()
        own_anvil.mine()
        await world.reader.poll()
        assert asked == ["eth_getBlockByNumber", "eth_getLogs"]


async def test_poll__node_limits_ranges__asks_for_less(tmp_path: Path) -> None:
    head = {
        "number": "0x64",
        "hash": "0x" + "11" * 32,
        "parentHash": "0x" + "22" * 32,
        "timestamp": "0x1",
    }
    spans: list[int] = []

    def answer(method: str, params: list[Any]) -> Any:
        if method == "eth_getLogs":
            span = int(params[0]["toBlock"], 16) - int(params[0]["fromBlock"], 16) + 1
            if span > 20:
                raise RpcFault(-32602, "query returned more than 10000 results")
            spans.append(span)
            return []
        if method == "eth_getBlockByNumber":
            if params[0] == "latest":
                return head
            number = int(params[0], 16)
            return {**head, "number": params[0], "hash": f"0x{number:064x}"}
        return "0x1"

    contracts = ContractAddresses(
        **{name: stranger() for name in ContractAddresses.__dataclass_fields__}
    )
    async with fake_node(answer) as node, await Connection.open(node.url) as connection:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            reader = await EventReader.open(Path(folder) / "e", connection, contracts, from_block=1)
            await reader.poll()
            assert sum(spans) == 100
            assert reader.complete_upto == 100
            reader.close()


async def test_open__file_of_another_run__is_refused(own_anvil: Anvil, tmp_path: Path) -> None:
    async with deployed(own_anvil, tmp_path) as world:
        await _reader(world, "e")
        other = ContractAddresses(
            **{name: stranger() for name in ContractAddresses.__dataclass_fields__}
        )
        with pytest.raises(StoreForeign, match="another data folder"):
            await EventReader.open(tmp_path / "e", world.connection, other, from_block=0)


async def test_poll__interval_mining__misses_nothing(tmp_path: Path) -> None:
    with start_anvil("--block-time", "1") as anvil:
        async with deployed(anvil, tmp_path) as world:
            vault, token = world.contracts.vault, world.contracts.token
            await world.act(world.deployer, token.approve_call(vault.address, tokens(100)))
            for number in range(20):
                await world.deployer.send(vault.deposit_call(tokens(1)), f"d/{number}")
            seen = 0
            while seen < 20:
                seen += len(_amounts((await world.reader.poll()).events))
            assert seen == 20
