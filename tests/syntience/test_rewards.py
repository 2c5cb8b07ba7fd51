"""Collecting, and what `status` says about it, after an epoch that really settled."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ledger.contracts.registry import Role
from ledger.errors import Reverted
from ledger.keys import LocalSigner
from ledger.runs import write_run_file
from node.settlements import Settlements
from protocol.beacon import Purpose
from protocol.ids import Epoch, Hash32, Round, Units
from protocol.settlement import weights_commitment
from syntience.layers import Secret
from syntience.rewards import collect
from syntience.session import read_run
from syntience.staking import Owner
from syntience.status import RunStatus, read_status
from tests.chain import Anvil
from tests.ledger.world import Member, World, deployed
from tests.specs import CHAIN, SPEC, tokens

EPOCH = Epoch(1)
SALT = Hash32(b"\x06" * 32)
WEIGHTS = bytes.fromhex("0064")
POT = CHAIN.emission_per_epoch - 2 * CHAIN.chore_tariff
"""Less what the beacon's two chores are refunded with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A run whose first epoch paid a miner and a validator; another validator lost a little for a missing reveal."""

    world: World
    run_file: Path
    miner: Member
    validator: Member
    silent: Member

    async def owner(self, signer: LocalSigner) -> Owner:
        """Who sends; any key may."""
        known = self.world.boxes.get(signer.address)
        return Owner(
            connection=self.world.connection,
            contracts=self.world.contracts,
            run_file=self.world.run_file,
            outbox=known or await self.world.outbox(signer),
            signer=signer,
        )

    async def status(self, of: Member) -> RunStatus:
        """What the command reads, given the operator's key."""
        url = Secret(self.world.anvil.url)
        return await read_status(self.run_file, url, key=of.operator.address)


@pytest.fixture
async def settled(own_anvil: Anvil, tmp_path: Path) -> AsyncIterator[Settled]:
    params = replace(SPEC.chain, rounds_per_epoch=1, unbonding_s=1_000)
    async with deployed(own_anvil, tmp_path, params=params) as world:
        miner = await world.join(Role.MINER, tokens(200))
        validator = await world.join(Role.VALIDATOR, tokens(2000))
        silent = await world.join(Role.VALIDATOR, tokens(1500))
        await world.draw(Round(1), Purpose.ASSIGNMENT)
        world.to(world.clock.attest_deadline(Round(1)) + 1)
        await _reveal(world, validator)
        await _settle(world, silent)
        path = tmp_path / "run.json"
        write_run_file(path, world.run_file)
        yield Settled(world=world, run_file=path, miner=miner, validator=validator, silent=silent)


async def _reveal(world: World, validator: Member) -> None:
    scores = world.contracts.scores
    commitment = weights_commitment(
        run=world.run_file.run,
        validator=validator.account,
        epoch=EPOCH,
        weights=WEIGHTS,
        salt=SALT,
    )
    world.to(world.clock.epoch_end(EPOCH) + 1)
    await world.act(validator.operator, scores.commit_weights_call(EPOCH, commitment))
    world.to(world.clock.weight_commit_deadline(EPOCH) + 1)
    call = scores.reveal_weights_call(
        EPOCH, slot=validator.slot, account=validator.account, weights=WEIGHTS, salt=SALT
    )
    await world.act(validator.operator, call)


async def _settle(world: World, silent: Member) -> None:
    contracts = world.contracts
    world.to(world.clock.weight_reveal_deadline(EPOCH) + 1)
    call = contracts.scores.penalise_missing_reveal_call(EPOCH, silent.slot)
    await world.act(world.deployer, call)
    async with read_run(world.connection, contracts, world.run_file) as chain:
        settlements = Settlements(chain, miners_bps=world.run_file.spec.chain.miners_bps)
        tree = await settlements.build(EPOCH, await contracts.rewards.pot_of(EPOCH))
    assert tree is not None
    bond = await contracts.rewards.required_bond()
    await world.act(world.deployer, contracts.token.approve_call(contracts.rewards.address, bond))
    call = contracts.rewards.post_settlement_call(
        EPOCH, miners=tree.miners, validators=tree.validators
    )
    await world.act(world.deployer, call)
    [post] = await contracts.rewards.standing_posts()
    world.to(post.window_ends + 1)
    await world.act(world.deployer, contracts.rewards.finalise_settlement_call(EPOCH, post.attempt))


async def test_collect__by_the_operator__pays_the_account_once(
    settled: Settled, tmp_path: Path
) -> None:
    miner, token = settled.miner, settled.world.contracts.token
    before = await token.balance_of(miner.account)
    events = tmp_path / "events"
    events.mkdir()
    first = await collect(await settled.owner(miner.operator_key), None, events=events)
    assert first.account == first.payout == miner.account
    assert first.epoch == EPOCH
    assert first.rewards == POT * 6 // 10
    assert await token.balance_of(miner.account) == before + first.rewards
    sent = settled.world.anvil.nonce(miner.operator.address)
    again = await collect(await settled.owner(miner.operator_key), None, events=events)
    assert (again.total, again.epoch) == (0, None)
    assert settled.world.anvil.nonce(miner.operator.address) == sent


async def test_collect__by_a_stranger__pays_whom_the_contracts_owe(settled: Settled) -> None:
    world = settled.world
    stranger, poster = await settled.owner(world.anvil.key()), world.deployer.address
    collected = await collect(stranger, settled.validator.account, events=None)
    assert collected.rewards == POT * 4 // 10
    assert await world.contracts.token.balance_of(stranger.account) == 0
    before = await world.contracts.token.balance_of(poster)
    collected = await collect(stranger, poster, events=None)
    assert collected.bonds == CHAIN.settlement_bond
    assert collected.refunds == 3 * CHAIN.chore_tariff
    assert await world.contracts.token.balance_of(poster) == before + collected.total


async def test_collect__stakes_of_that_epoch_are_forgotten__reads_them_as_they_were_known(
    settled: Settled,
) -> None:
    world, vault = settled.world, settled.world.contracts.vault
    epoch_s, known = CHAIN.round_s, 1_000 // CHAIN.round_s + 4
    for epoch in range(3, 3 + known + 4):
        world.to(world.clock.epoch_end(Epoch(epoch)) + epoch_s)
        await world.act(settled.validator.owner, vault.deposit_call(Units(1)))
    with pytest.raises(Reverted) as forgotten:
        await vault.stake_at(settled.validator.account, EPOCH)
    assert forgotten.value.name == "EpochForgotten"
    collected = await collect(
        await settled.owner(world.anvil.key()), settled.validator.account, events=None
    )
    assert collected.rewards == POT * 4 // 10


async def test_status__after_a_settlement__shows_what_was_earned_claimed_and_lost(
    settled: Settled,
) -> None:
    status = await settled.status(settled.miner)
    assert (status.settled, status.void, status.miners, status.validators) == ((EPOCH,), (), 1, 2)
    account = status.account
    assert account is not None
    assert (account.account, account.role, account.slot) == (settled.miner.account, "miner", 0)
    assert (account.earned, account.claimed, account.slashed) == (POT * 6 // 10, 0, 0)
    await collect(await settled.owner(settled.miner.operator_key), None, events=None)
    account = (await settled.status(settled.miner)).account
    assert account is not None
    assert account.claimed == account.earned == POT * 6 // 10
    lost = (await settled.status(settled.silent)).account
    assert lost is not None
    assert lost.slashed == CHAIN.missing_reveal_penalty
    assert lost.earned == 0
