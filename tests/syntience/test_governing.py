"""What a governor does with a run, by function and by command, and what it is refused."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from ledger.outbox import Outbox
from ledger.runs import join
from protocol.ids import Epoch
from protocol.runfile import RunFile
from protocol.spec import RunSpec
from syntience.cli.app import run
from syntience.errors import GovernanceRefused
from syntience.governing import announce, pause, resume, withdraw_announced
from syntience.staking import Owner
from tests.chain import Anvil
from tests.ledger.world import World, deployed
from tests.specs import CHAIN
from tests.syntience.town import PASSWORD, found_town


@pytest_asyncio.fixture
async def world(own_anvil: Anvil, tmp_path: Path) -> AsyncIterator[World]:
    async with deployed(own_anvil, tmp_path) as made:
        yield made


def _owner(world: World, outbox: Outbox) -> Owner:
    return Owner(
        connection=world.connection,
        contracts=world.contracts,
        run_file=world.run_file,
        outbox=outbox,
        signer=outbox._signer,
    )


def _changed(spec: RunSpec) -> RunSpec:
    inner = replace(spec.inner, steps=2 * spec.inner.steps, batch=spec.inner.batch // 2)
    compute = replace(spec.compute, micro_batch=inner.batch)
    chain = replace(spec.chain, steps=inner.steps)
    return replace(spec, inner=inner, compute=compute, chain=chain)


async def test_pause__by_the_governor_alone__and_anyone_ends_it_when_it_has_lasted(
    world: World,
) -> None:
    governor, other = _owner(world, world.governor), _owner(world, world.deployer)
    with pytest.raises(GovernanceRefused, match="is not the governor of this run"):
        await pause(other)
    with pytest.raises(GovernanceRefused, match="under way"):
        await resume(governor)
    halt = await pause(governor)
    assert (halt.since, halt.most_s) == (world.anvil.time(), CHAIN.pause_most_s)
    assert await pause(governor) == halt, "called again it finds what it did"
    with pytest.raises(GovernanceRefused, match=r"only the governor ends the pause now, anyone in"):
        await resume(other)
    world.to(halt.since + CHAIN.pause_most_s)
    after = await resume(other)
    assert after.total_s >= CHAIN.pause_most_s
    with pytest.raises(GovernanceRefused, match=r"the next pause can start in [\d,]+ s"):
        await pause(governor)


async def test_announce__then_withdraw__and_what_comes_too_soon(world: World) -> None:
    governor, spec = _owner(world, world.governor), _changed(world.run_file.spec)
    with pytest.raises(GovernanceRefused, match="no terms are announced"):
        await withdraw_announced(governor)
    with pytest.raises(GovernanceRefused, match="can start with epoch 5, not with 2"):
        await announce(governor, spec, from_epoch=Epoch(2), judge=None)
    for other, what in (
        (replace(spec, chain=replace(spec.chain, put_s=99)), "chain.put_s"),
        (replace(spec, model=replace(spec.model, layers=9)), "the model"),
    ):
        with pytest.raises(GovernanceRefused, match=f"another {what}, which is final"):
            await announce(governor, other, from_epoch=None, judge=None)
    terms = await announce(governor, spec, from_epoch=None, judge=None)
    assert (terms.from_epoch, terms.judge) == (5, world.run_file.contracts.committee)
    assert await announce(governor, spec, from_epoch=None, judge=None) == terms
    assert await world.contracts.epochs.terms_at(Epoch(5)) == terms
    faults = world.run_file.contracts.faults
    for epoch, judge in ((Epoch(9), None), (None, faults)):
        with pytest.raises(GovernanceRefused, match="is announced from epoch 5 on"):
            await announce(governor, spec, from_epoch=epoch, judge=judge)
    assert await withdraw_announced(governor) == (5, spec.hash())
    assert len(await world.contracts.epochs.schedule()) == 1
    with pytest.raises(GovernanceRefused, match="by these terms already"):
        await announce(governor, world.run_file.spec, from_epoch=None, judge=None)


async def test_join__run_file_of_announced_terms__fits_though_the_parameters_were_others(
    world: World,
) -> None:
    spec = _changed(world.run_file.spec)
    await announce(_owner(world, world.governor), spec, from_epoch=None, judge=None)
    await join(replace(world.run_file, spec=spec), world.connection)
    await join(world.run_file, world.connection)


def test_governor_commands__pause_and_announce__show_in_the_status(
    own_anvil: Anvil,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SYNTIENCE_PASSWORD", PASSWORD)
    town = found_town(own_anvil, tmp_path)
    assert f"governor   {town.founder.address}" in capsys.readouterr().out
    spec = _changed(town.read().spec)
    (tmp_path / "next.json").write_bytes(spec.to_bytes())

    def said(*arguments: str, key: str = "founder", status: int = 0) -> str:
        assert run([*arguments, *town.options(key)]) == status
        answer = capsys.readouterr()
        return answer.out + answer.err

    assert "paused     since" in said("governor", "pause")
    assert "the clocks stand still" in said("status")
    assert json.loads(said("status", "--json"))["paused_s"] >= 0
    assert "pauses took" in said("governor", "resume")
    assert json.loads(said("status", "--json"))["paused_s"] is None
    out = tmp_path / "run-next.json"
    answer = said("governor", "announce", "--spec", str(tmp_path / "next.json"), "--out", str(out))
    assert RunFile.from_bytes(out.read_bytes()) == replace(town.read(), spec=spec)
    assert f"spec 0x{spec.hash().hex()} from epoch 5 on" in answer
    assert f"from epoch 5 on another spec, 0x{spec.hash().hex()}" in said("status")
    [announced] = json.loads(said("status", "--json"))["announced"]
    assert (announced["from_epoch"], announced["is_ours"]) == (5, False)
    assert "which was to start with epoch 5" in said("governor", "withdraw")
    town.key("stranger")
    refusal = said("governor", "pause", key="stranger", status=1)
    assert "is not the governor of this run" in refusal
