"""The command that asks on chain for a leaf: shown, withheld, refused, and repeated after a kill."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ledger.contracts.requests import ItemKind, RequestStatus
from protocol import canonical
from protocol.ids import Round, Units
from syntience import data_request
from syntience.cli.app import run
from syntience.data_request import Want, ask, save_answer
from syntience.errors import ConfigError, RequestRefused
from syntience.rewards import collect
from syntience.staking import Owner
from tests.chain import Anvil
from tests.ledger.vouched import CHUNKS, ROUND, Scene, vouched
from tests.specs import CHAIN, tokens

CHUNK = Want(round=ROUND, miner="0", kind=ItemKind.PAYLOAD, index=4, tensor=None)


@pytest.fixture
async def scene(own_anvil: Anvil, tmp_path: Path) -> AsyncIterator[Scene]:
    async with vouched(own_anvil, tmp_path) as scene:
        yield scene


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_request, "_POLL_S", 0.02)


async def owner_of(scene: Scene, amount: Units) -> Owner:
    """A key that holds so many tokens."""
    world = scene.world
    signer = world.anvil.key()
    await world.act(world.deployer, world.contracts.token.transfer_call(signer.address, amount))
    return Owner(
        connection=world.connection,
        contracts=world.contracts,
        run_file=world.run_file,
        outbox=await world.outbox(signer),
        signer=signer,
    )


async def _until_open(scene: Scene, index: int) -> None:
    requests = scene.world.contracts.requests
    item = scene.item(ItemKind.PAYLOAD, index)
    while (await requests.request_of(item)).status is not RequestStatus.OPEN:
        await asyncio.sleep(0.02)


def quiet(word: str, text: str) -> None: ...


async def test_ask__somebody_answers__is_saved_and_costs_the_fee(
    scene: Scene, tmp_path: Path
) -> None:
    owner = await owner_of(scene, CHAIN.request_bond)
    told: list[str] = []
    asking = asyncio.create_task(
        ask(owner, CHUNK, events=tmp_path, say=lambda word, _: told.append(word))
    )
    await _until_open(scene, 4)
    state = await scene.world.contracts.requests.request_of(scene.item(ItemKind.PAYLOAD, 4))
    await scene.answer(scene.in_slot(state.first), 4)
    outcome = await asking
    assert told in (["request", "owed by"], ["request"]), "the answer may come before it is told"
    assert outcome.answer is not None
    save_answer(outcome.answer, tmp_path / "chunk.json")
    saved = canonical.loads((tmp_path / "chunk.json").read_bytes().removesuffix(b"\n"))
    assert isinstance(saved, dict)
    assert saved["opening"]["content"] == CHUNKS[4].hex()
    assert saved["submission"] == scene.signed.submission.to_json()
    fee = await scene.world.contracts.requests.fee_of(ItemKind.PAYLOAD, len(CHUNKS[4]))
    left = await owner.contracts.token.balance_of(owner.account)
    assert left == CHAIN.request_bond - fee

    again = await ask(owner, CHUNK, events=tmp_path, say=quiet)
    assert again == outcome, "asked once, it is there for all"


async def test_collect__fee_for_an_answer__is_paid_to_the_account(
    scene: Scene, tmp_path: Path
) -> None:
    item = scene.item(ItemKind.PAYLOAD, 4)
    await scene.ask(item)
    server = scene.in_slot((await scene.world.contracts.requests.request_of(item)).first)
    await scene.answer(server, 4)
    owner = await owner_of(scene, Units(0))
    collected = await collect(owner, server.account, events=tmp_path)
    fee = await scene.world.contracts.requests.fee_of(ItemKind.PAYLOAD, len(CHUNKS[4]))
    assert (collected.bonds, collected.total) == (fee, fee)
    again = await collect(owner, server.account, events=tmp_path)
    assert again.total == 0


async def test_ask__killed_while_it_waits__goes_on_and_nobody_answered_is_fined(
    scene: Scene, tmp_path: Path
) -> None:
    owner = await owner_of(scene, CHAIN.request_bond)
    asking = asyncio.create_task(ask(owner, CHUNK, events=None, say=quiet))
    await _until_open(scene, 4)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    scene.world.anvil.mine(3 * CHAIN.answer_turn_blocks + CHAIN.answer_blocks + 9)
    outcome = await ask(owner, CHUNK, events=None, say=quiet)
    assert outcome.answer is None
    assert outcome.fine == CHAIN.min_validator_stake * CHAIN.withheld_slash_bps // 10_000
    assert len(outcome.fined) == 3
    bounty = 3 * (outcome.fine * CHAIN.bounty_bps // 10_000)
    left = await owner.contracts.token.balance_of(owner.account)
    assert left == CHAIN.request_bond + bounty


async def test_ask__nothing_to_be_asked_for__is_refused_before_anything_is_sent(
    scene: Scene, tmp_path: Path
) -> None:
    owner = await owner_of(scene, Units(CHAIN.request_bond - 1))
    wrong = [
        (Want(round=Round(9), miner="0", kind=ItemKind.TRACE, index=0, tensor=None), "no round 9"),
        (Want(round=ROUND, miner="7", kind=ItemKind.TRACE, index=0, tensor=None), "no miner 7"),
        (CHUNK, "bond"),
    ]
    for want, reason in wrong:
        with pytest.raises(RequestRefused, match=reason):
            await ask(owner, want, events=tmp_path, say=quiet)
    with pytest.raises(ConfigError, match="--tensor"):
        await ask(
            owner,
            Want(round=ROUND, miner="0", kind=ItemKind.LOCAL, index=0, tensor=None),
            events=tmp_path,
            say=quiet,
        )
    assert await owner.contracts.token.balance_of(owner.account) < tokens(2)
    assert owner.outbox.waiting() == 0


def test_command__unknown_kind__names_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["data", "request", "--round", "1", "--miner", "0", "--kind", "weights"]) == 1
    assert "submission, data, trace, payload, local" in capsys.readouterr().err
