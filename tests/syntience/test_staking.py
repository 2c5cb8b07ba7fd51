"""Joining and leaving a run, against real contracts: what is sent, what is refused before anything is sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from ledger.contracts.registry import Role
from ledger.errors import EmptyBalance, FixableRevert
from ledger.keys import LocalSigner, new_private_key
from protocol.ids import Address, Epoch, Round, Units
from syntience.errors import StakingRefused
from syntience.staking import (
    REGISTER_GAS,
    Owner,
    Seat,
    consent_to,
    deposit_more,
    exit_run,
    join_run,
    rotate_operator,
    set_endpoint,
    take_seat,
    withdraw,
)
from tests.chain import Anvil
from tests.ledger.world import World, deployed
from tests.specs import SPEC, tokens

ENDPOINT = "http://127.0.0.1:7700"


@pytest.fixture
async def world(own_anvil: Anvil, tmp_path: Path) -> AsyncIterator[World]:
    async with deployed(own_anvil, tmp_path) as world:
        yield world


async def _owner(world: World, amount: Units) -> Owner:
    signer = world.anvil.key()
    if amount:
        call = world.contracts.token.transfer_call(signer.address, amount)
        await world.act(world.deployer, call)
    return Owner(
        connection=world.connection,
        contracts=world.contracts,
        run_file=world.run_file,
        outbox=await world.outbox(signer),
        signer=signer,
    )


async def _join(
    owner: Owner,
    operator: LocalSigner,
    *,
    role: Role = Role.MINER,
    stake: Units,
    endpoint: str = ENDPOINT,
    payout: Address | None = None,
) -> None:
    await join_run(
        connection=owner.connection,
        contracts=owner.contracts,
        run_file=owner.run_file,
        owner_outbox=owner.outbox,
        owner_signer=owner.signer,
        operator_signer=operator,
        role=role,
        stake=stake,
        endpoint=endpoint,
        payout=payout,
    )


def _key() -> LocalSigner:
    return LocalSigner(new_private_key())


async def test_join_run__stranger__deposits_and_holds_a_slot_in_one_go(world: World) -> None:
    owner, operator = await _owner(world, tokens(150)), _key()
    await _join(owner, operator, stake=tokens(150), payout=operator.address)
    (held,) = await world.contracts.registry.slots(Role.MINER, Epoch(1))
    assert (held.account, held.operator, held.endpoint, held.stake, held.payout) == (
        owner.account,
        operator.address,
        ENDPOINT,
        tokens(150),
        operator.address,
    )
    gas = dict(owner.outbox.gas_used())
    assert gas["Registry.register"] < REGISTER_GAS / 2
    assert world.anvil.nonce(owner.account) == 2


async def test_join_run__again__sends_nothing(world: World) -> None:
    owner, operator = await _owner(world, tokens(150)), _key()
    for _ in range(2):
        await _join(owner, operator, stake=tokens(150))
    assert world.anvil.nonce(owner.account) == 2


async def test_join_run__blocks_come_slowly__both_transactions_share_one(world: World) -> None:
    owner, operator = await _owner(world, tokens(100)), _key()
    world.anvil.rpc("evm_setAutomine", False)
    world.anvil.rpc("evm_setIntervalMining", 2)
    before = world.anvil.block_number()
    await _join(owner, operator, stake=tokens(100))
    assert await world.contracts.registry.role_of(owner.account) is Role.MINER
    blocks = [
        len(world.anvil.rpc("eth_getBlockByNumber", hex(number), False)["transactions"])
        for number in range(before + 1, world.anvil.block_number() + 1)
    ]
    assert [count for count in blocks if count] == [2]


async def test_join_run__killed_between_sending_and_mining__goes_on_where_it_was(
    world: World, tmp_path: Path
) -> None:
    owner, operator = await _owner(world, tokens(300)), _key()
    world.anvil.rpc("evm_setAutomine", False)
    seat = Seat(
        role=Role.MINER,
        operator=await consent_to(owner.account, operator, owner.contracts, owner.run_file),
        endpoint=ENDPOINT,
    )
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await take_seat(owner, seat, deposit=tokens(150))
    assert owner.outbox.waiting() == 2
    world.anvil.rpc("evm_setAutomine", True)
    world.anvil.mine()
    await _join(owner, operator, stake=tokens(150))
    assert await world.contracts.vault.active_of(owner.account) == tokens(150)
    assert await world.contracts.registry.role_of(owner.account) is Role.MINER
    assert world.anvil.nonce(owner.account) == 2


@pytest.mark.parametrize(
    ("holds", "stake", "role", "words"),
    [
        (200, 99, Role.MINER, "at least 100 tokens, this would be 99: deposit at least 100"),
        (2000, 999, Role.VALIDATOR, "a validator needs a stake of at least 1000 tokens"),
        (50, 100, Role.MINER, "holds 50 tokens, too few to deposit 100"),
    ],
)
async def test_join_run__too_little__is_refused_before_anything_is_sent(
    world: World, holds: int, stake: int, role: Role, words: str
) -> None:
    owner = await _owner(world, tokens(holds))
    with pytest.raises(StakingRefused, match=words):
        await _join(owner, _key(), role=role, stake=tokens(stake))
    assert world.anvil.nonce(owner.account) == 0


async def test_join_run__other_role_or_a_used_key__is_refused(world: World) -> None:
    owner, operator = await _owner(world, tokens(2000)), _key()
    await _join(owner, operator, stake=tokens(100))
    with pytest.raises(StakingRefused, match="is a miner already"):
        await _join(owner, operator, role=Role.VALIDATOR, stake=tokens(1000))
    with pytest.raises(StakingRefused, match="registered with another operator"):
        await _join(owner, _key(), stake=tokens(100))
    other = await _owner(world, tokens(100))
    with pytest.raises(StakingRefused, match=r"served 0x.* before: make a fresh one"):
        await _join(other, operator, stake=tokens(100))


async def test_join_run__full_subnet__says_so_and_a_later_try_needs_no_new_deposit(
    own_anvil: Anvil, tmp_path: Path
) -> None:
    params = replace(SPEC.chain, max_miners=1)
    async with deployed(own_anvil, tmp_path, params=params) as world:
        first, second = await _owner(world, tokens(100)), await _owner(world, tokens(100))
        await _join(first, _key(), stake=tokens(100))
        operator = _key()
        with pytest.raises(FixableRevert, match=r"SubnetFull.*wait until a slot is given up"):
            await _join(second, operator, stake=tokens(100))
        await exit_run(first)
        await _join(second, operator, stake=tokens(100))
        assert await world.contracts.registry.role_of(second.account) is Role.MINER
        assert await world.contracts.vault.active_of(second.account) == tokens(100)


async def test_deposit_more__then_exit_and_withdraw__returns_every_unit(world: World) -> None:
    owner, operator = await _owner(world, tokens(160)), _key()
    await _join(owner, operator, stake=tokens(100))
    assert await deposit_more(owner, tokens(60)) == tokens(160)
    with pytest.raises(StakingRefused, match="nothing to withdraw"):
        await withdraw(owner)
    assert await exit_run(owner) == tokens(160)
    assert await exit_run(owner) == tokens(160)
    with pytest.raises(StakingRefused, match=r"160 tokens are locked for [\d,]+ s more"):
        await withdraw(owner)
    world.to((await world.contracts.vault.unbonding_of(owner.account)).unlock_time + 1)
    await world.act(world.governor, world.contracts.epochs.pause_call())
    with pytest.raises(StakingRefused, match="paused, and no stake leaves it meanwhile"):
        await withdraw(owner)
    await world.act(world.governor, world.contracts.epochs.resume_call())
    assert await withdraw(owner) == tokens(160)
    assert await world.contracts.token.balance_of(owner.account) == tokens(160)
    with pytest.raises(StakingRefused, match="nothing at stake"):
        await exit_run(owner)


async def test_withdraw__epoch_of_the_exit_is_not_settled__says_what_it_waits_for(
    world: World,
) -> None:
    owner = await _owner(world, tokens(100))
    await _join(owner, _key(), stake=tokens(100))
    world.to(world.clock.start(Round(1)))
    await exit_run(owner)
    world.to((await world.contracts.vault.unbonding_of(owner.account)).unlock_time + 1)
    with pytest.raises(
        FixableRevert, match=r"NotSettled.*settled or void \(see `syntience status`"
    ):
        await withdraw(owner)
    await world.act(world.deployer, world.contracts.rewards.void_epoch_call(Epoch(1)))
    assert await withdraw(owner) == tokens(100)


async def test_join_run__back_after_an_exit__keeps_its_operator(world: World) -> None:
    owner, operator = await _owner(world, tokens(200)), _key()
    await _join(owner, operator, stake=tokens(100))
    await exit_run(owner)
    await _join(owner, operator, stake=tokens(100), endpoint="http://other:1")
    assert await world.contracts.registry.role_of(owner.account) is Role.MINER
    assert await world.contracts.registry.operator_count(owner.account) == 1
    assert await world.contracts.registry.endpoint_of(owner.account) == "http://other:1"


async def test_rotate_operator__fresh_key__serves_from_the_next_round(world: World) -> None:
    owner, first, second = await _owner(world, tokens(100)), _key(), _key()
    consent = await consent_to(owner.account, second, owner.contracts, owner.run_file)
    with pytest.raises(StakingRefused, match="never registered"):
        await rotate_operator(owner, consent)
    await _join(owner, first, stake=tokens(100))
    world.to(world.clock.start(Round(2)))
    consent = await consent_to(owner.account, second, owner.contracts, owner.run_file)
    assert await rotate_operator(owner, consent) == 3
    registry = world.contracts.registry
    assert await registry.operator_at(owner.account, Round(2)) == first.address
    assert await registry.operator_at(owner.account, Round(3)) == second.address
    back = await consent_to(owner.account, first, owner.contracts, owner.run_file)
    with pytest.raises(StakingRefused, match="served this account before"):
        await rotate_operator(owner, back)


async def test_set_endpoint__registered__everybody_reads_the_new_one(world: World) -> None:
    owner = await _owner(world, tokens(100))
    with pytest.raises(StakingRefused, match="never registered"):
        await set_endpoint(owner, ENDPOINT)
    await _join(owner, _key(), stake=tokens(100))
    await set_endpoint(owner, "https://miner.example")
    assert await world.contracts.registry.endpoint_of(owner.account) == "https://miner.example"


async def test_join_run__account_without_native_currency__says_so(world: World) -> None:
    owner = await _owner(world, tokens(100))
    world.anvil.fund(owner.account, 0)
    with pytest.raises(EmptyBalance, match="send it some and start again"):
        await _join(owner, _key(), stake=tokens(100))
