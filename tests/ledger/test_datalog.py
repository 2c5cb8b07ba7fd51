"""The public data log: the same bytes for everyone, and no byte can change unseen."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from ledger.contracts.registry import Role
from ledger.datalog import DataLog, FourHashes, verify
from ledger.errors import DataLogDamaged
from ledger.event_store import StoredEvent
from ledger.keys import LocalSigner
from protocol.beacon import Purpose
from protocol.errors import Rejected
from protocol.ids import Hash32, Round
from protocol.submission import Domain, SignedSubmission
from tests.chain import Anvil
from tests.ledger.world import World, deployed
from tests.specs import tokens


@pytest_asyncio.fixture
async def world(own_anvil: Anvil, tmp_path: Path) -> AsyncIterator[World]:
    async with deployed(own_anvil, tmp_path) as made:
        yield made


async def _one_round(world: World) -> SignedSubmission:
    miner = await world.join(Role.MINER, tokens(200))
    beacon = await world.draw(Round(1), Purpose.ASSIGNMENT)
    signed = world.submission(miner, Round(1), beacon)
    world.to(world.clock.put_opens(Round(1)))
    digest = signed.submission.digest(world.run_file.domain)
    await world.act(miner.operator, world.contracts.epochs.commit_call(Round(1), digest))
    await world.reader.poll()
    return signed


def _log(world: World, name: str = "log") -> DataLog:
    run_file = world.run_file
    return DataLog(world.folder / name, run=run_file.run, domain=run_file.domain)


async def test_log__two_nodes__same_bytes_in_any_steps(world: World) -> None:
    signed = await _one_round(world)
    events = world.reader.store.all()
    assert len(events) >= 6
    whole, stepwise = _log(world, "a"), _log(world, "b")
    assert whole.extend(events) == len(events)
    for upto in range(len(events)):
        stepwise.extend(events[: upto + 1])
        assert stepwise.complete_upto == events[upto].log.block
    assert whole.extend(events) == 0
    assert whole.head == stepwise.head
    assert whole.disclose(signed)
    assert not whole.disclose(signed)
    assert stepwise.disclose(signed)
    for name in ("log.jsonl", "disclosures.jsonl"):
        first, second = (world.folder / folder / name for folder in ("a", "b"))
        assert first.read_bytes() == second.read_bytes()
    audit = verify(
        world.folder / "a", run=world.run_file.run, domain=world.run_file.domain, events=events
    )
    assert audit.entries == len(events)
    assert audit.head == whole.head
    submission = signed.submission
    assert audit.disclosures == (
        FourHashes(
            round=Round(1),
            account=submission.miner,
            data_in=submission.data_root,
            data_out=submission.payload_root,
            weights_before=submission.initial_root,
            weights_after=submission.trace_root,
        ),
    )


async def test_verify__any_byte_flipped__is_found(world: World) -> None:
    signed = await _one_round(world)
    log = _log(world)
    log.extend(world.reader.store.all())
    log.disclose(signed)
    folder, run_file = world.folder / "log", world.run_file
    for name in ("log.jsonl", "disclosures.jsonl"):
        path = folder / name
        good = path.read_bytes()
        for position in range(len(good)):
            bad = bytearray(good)
            bad[position] ^= 1 << position % 8
            path.write_bytes(bad)
            with pytest.raises(DataLogDamaged):
                verify(folder, run=run_file.run, domain=run_file.domain)
        path.write_bytes(good)
    verify(folder, run=run_file.run, domain=run_file.domain)


async def test_verify__lines_dropped_swapped_or_forged__is_found(world: World) -> None:
    await _one_round(world)
    events = world.reader.store.all()
    log = _log(world)
    log.extend(events)
    folder = world.folder / "log"
    lines = (folder / "log.jsonl").read_bytes().splitlines(keepends=True)

    def check(changed: list[bytes], against: list[StoredEvent] | None) -> None:
        (folder / "log.jsonl").write_bytes(b"".join(changed))
        with pytest.raises(DataLogDamaged):
            verify(folder, run=world.run_file.run, domain=world.run_file.domain, events=against)

    for number in range(len(lines) - 1):
        check(lines[:number] + lines[number + 1 :], None)
        check([*lines[:number], lines[number + 1], lines[number], *lines[number + 2 :]], None)
    check(lines[:-1], events)  # only the chain shows what is missing at the end
    forged = _log(world, "forged")
    forged.extend(events[:-1])
    stolen = replace(events[-1], log=replace(events[-1].log, tx_hash=Hash32(b"\x01" * 32)))
    forged.extend([stolen])
    check((world.folder / "forged/log.jsonl").read_bytes().splitlines(keepends=True), events)
    other = Domain(chain_id=1, registry=world.run_file.contracts.registry)
    (folder / "log.jsonl").write_bytes(b"".join(lines))
    with pytest.raises(DataLogDamaged):
        verify(folder, run=Hash32(bytes(32)), domain=other)


async def test_disclose__without_commit_or_by_a_stranger__is_refused(world: World) -> None:
    signed = await _one_round(world)
    log = _log(world)
    with pytest.raises(Rejected, match="no logged commit"):
        log.disclose(signed)
    log.extend(world.reader.store.all())
    digest = signed.submission.digest(world.run_file.domain)
    forged = replace(signed, signature=LocalSigner(b"\x01" * 32).sign_digest(digest))
    log.disclose(forged)  # the log stores, the audit judges
    with pytest.raises(DataLogDamaged, match="nobody who may"):
        verify(world.folder / "log", run=world.run_file.run, domain=world.run_file.domain)


async def test_log__crash_in_a_line__is_cut_and_continued(world: World) -> None:
    await _one_round(world)
    events = world.reader.store.all()
    log = _log(world)
    log.extend(events)
    path = world.folder / "log" / "log.jsonl"
    good = path.read_bytes()
    path.write_bytes(good[:-20])
    again = _log(world)
    assert again.extend(events) == 1
    assert path.read_bytes() == good
    again.rebuild(events[:3])
    assert again.complete_upto == events[2].log.block
    again.extend(events)
    assert path.read_bytes() == good
    torn = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(torn[:-2]))  # killed between two lines of one block
    assert _log(world).follow(world.reader.store, upto=own_head(world)) == 2
    assert path.read_bytes() == good
    path.write_bytes(b"x" + good)
    with pytest.raises(DataLogDamaged, match="rebuild it from the chain"):
        _log(world)


def own_head(world: World) -> int:
    return world.reader.complete_upto


async def test_follow__only_final_blocks__then_the_rest(world: World) -> None:
    await _one_round(world)
    store, log = world.reader.store, _log(world)
    events = store.all()
    middle = events[len(events) // 2].log.block
    first = log.follow(store, upto=middle)
    assert first == sum(item.log.block <= middle for item in events)
    assert log.follow(store, upto=middle) == 0
    assert log.follow(store, upto=own_head(world)) == len(events) - first
    verify(
        world.folder / "log", run=world.run_file.run, domain=world.run_file.domain, events=events
    )


async def test_follow__reorganisation_reached_into_it__is_built_anew(world: World) -> None:
    signed = await _one_round(world)
    store, log = world.reader.store, _log(world)
    log.follow(store, upto=own_head(world))
    log.disclose(signed)
    for box in world.boxes.values():
        await box.aclose()
    world.anvil.rpc("anvil_reorg", 3, [])
    world.anvil.rpc("anvil_dropAllTransactions")
    assert (await world.reader.poll()).removed
    fewer = store.all()
    log.follow(store, upto=own_head(world))
    audit = verify(
        world.folder / "log", run=world.run_file.run, domain=world.run_file.domain, events=fewer
    )
    assert audit.entries == len(fewer)
    assert audit.disclosures == ()
    assert _log(world).head == audit.head == log.head
