"""Data requests on a real chain: asked, answered in turn, fined, and what their events and the books say."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from ledger.accounting import take_books
from ledger.contracts.requests import ItemKind, Opening, RequestStatus
from ledger.errors import Reverted
from ledger.event_types import BalanceWithdrawn, ItemAnswered, ItemRequested, ItemWithheld
from node.requests import open_requests, turn_at
from protocol.ids import Hash32, Units
from protocol.submission import SignedSubmission
from tests.chain import Anvil
from tests.ledger.vouched import CHUNKS, Scene, vouched
from tests.specs import CHAIN, tokens


@pytest.fixture
async def scene(own_anvil: Anvil, tmp_path: Path) -> AsyncIterator[Scene]:
    async with vouched(own_anvil, tmp_path) as scene:
        yield scene


async def test_request__answered_in_turn__pays_the_validator_and_is_there_for_all(
    scene: Scene,
) -> None:
    world, requests = scene.world, scene.world.contracts.requests
    item = scene.item(ItemKind.PAYLOAD, 3)
    await scene.ask(item)
    await world.reader.poll()
    [request] = open_requests(world.reader)
    state = await requests.request_of(item)
    assert (request.item, request.id) == (item, item.id)
    assert state.status is RequestStatus.OPEN
    assert (state.opened_block, state.deadline) == (request.opened_block, request.deadline)
    assert set(state.setters) == {member.slot for member in scene.validators}
    assert request.setters[0] == state.first

    block = await world.contracts.epochs.run_block()
    turn = turn_at(request, block + 1, CHAIN.answer_turn_blocks)
    assert turn.slot is not None
    server = scene.in_slot(turn.slot)
    other = next(member for member in scene.validators if member.slot != turn.slot)
    with pytest.raises(Reverted, match="NotYourTurn"):
        await scene.answer(other, 3)
    await scene.answer(server, 3)

    fee = await requests.fee_of(ItemKind.PAYLOAD, len(CHUNKS[3]))
    assert fee == CHAIN.answer_tariff + 3 * CHAIN.answer_tariff_per_kib
    await world.reader.poll()
    [answered] = world.reader.events(ItemAnswered)
    assert (answered.item, answered.opening.content) == (item, CHUNKS[3])
    assert answered.submission == scene.signed.submission
    assert (answered.paid, answered.fee) == (server.account, fee)
    assert open_requests(world.reader) == []
    assert await requests.balance_of(server.account) == fee
    books = await take_books(world.contracts, world.reader)
    assert books.balanced
    assert books.requests == CHAIN.request_bond

    for account in (server.account, world.deployer.address):
        await world.act(world.deployer, requests.withdraw_call(account))
    await world.reader.poll()
    paid = {event.account: event.amount for event in world.reader.events(BalanceWithdrawn)}
    assert paid == {
        server.account: fee,
        world.deployer.address: CHAIN.request_bond - fee,
    }
    assert await requests.held() == 0


async def test_request__submission__is_shown_with_its_signature(scene: Scene) -> None:
    world, requests = scene.world, scene.world.contracts.requests
    item = scene.item(ItemKind.SUBMISSION, 0)
    await scene.ask(item)
    state = await requests.request_of(item)
    server = scene.in_slot(state.first)
    opening = Opening(position=0, content=scene.signed.signature)
    await world.act(server.operator, requests.answer_call(item, scene.signed.submission, opening))
    await world.reader.poll()
    [answered] = world.reader.events(ItemAnswered)
    shown = SignedSubmission(submission=answered.submission, signature=answered.opening.content)
    assert shown == scene.signed


async def test_request__nobody_answers__fines_all_that_vouched(scene: Scene) -> None:
    world, requests = scene.world, scene.world.contracts.requests
    item = scene.item(ItemKind.LOCAL, 2 << 32 | 1)
    await scene.ask(item)
    state = await requests.request_of(item)
    assert await requests.open_requests(world.deployer.address, item.digest) == 1
    with pytest.raises(Reverted, match="TooEarly"):
        await world.act(world.deployer, requests.resolve_call(item))
    world.anvil.mine(state.deadline + 1 - await world.contracts.epochs.run_block())
    held = await world.contracts.token.balance_of(world.deployer.address)
    await world.act(world.deployer, requests.resolve_call(item))
    fine = CHAIN.min_validator_stake * CHAIN.withheld_slash_bps // 10_000
    for member in scene.validators:
        assert await world.contracts.vault.active_of(member.account) == tokens(2000) - fine
    bounty = 3 * (fine * CHAIN.bounty_bps // 10_000)
    assert await world.contracts.token.balance_of(world.deployer.address) == held + bounty
    await world.reader.poll()
    [withheld] = world.reader.events(ItemWithheld)
    assert (withheld.item, withheld.setters, withheld.fine) == (item, 0b111, fine)
    assert await requests.was_fined(replace(item, index=5))
    assert not await requests.was_fined(replace(item, kind=ItemKind.DATA))
    with pytest.raises(Reverted, match="AlreadyFined"):
        await scene.ask(replace(item, index=5))
    assert await requests.balance_of(world.deployer.address) == Units(CHAIN.request_bond)
    assert (await take_books(world.contracts, world.reader)).balanced


async def test_request__ballot_left_out_or_no_such_digest__is_refused(scene: Scene) -> None:
    world, requests = scene.world, scene.world.contracts.requests
    item = scene.item(ItemKind.TRACE, 0)
    approve = world.contracts.token.approve_call(requests.address, CHAIN.request_bond)
    await world.act(world.deployer, approve)
    with pytest.raises(Reverted, match="BallotsMissing"):
        await world.act(world.deployer, requests.request_call(item, scene.ballots[:2]))
    stranger = replace(item, digest=Hash32(bytes(32)))
    with pytest.raises(Reverted, match="NotCommitted"):
        await world.act(world.deployer, requests.request_call(stranger, scene.ballots))
    # In any order.
    await world.act(world.deployer, requests.request_call(item, scene.ballots[::-1]))
    await world.reader.poll()
    assert [event.item for event in world.reader.events(ItemRequested)] == [item]
