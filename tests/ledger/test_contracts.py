"""The wrappers' rarer calls and views, on a real run: every argument lands where it belongs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from ledger.contracts.epochs import Ballot, PauseState, StakeTally
from ledger.contracts.evidence import WrongDataEvidence
from ledger.contracts.registry import Duty, Role
from ledger.contracts.rewards import CellNode, Opening, WeightsOpening
from ledger.contracts.token import Permit
from ledger.errors import Reverted
from ledger.event_types import PauseEnded, TermsAnnounced, TermsWithdrawn
from ledger.outbox import Outbox
from ledger.transactions import Call
from protocol.assignment import assigned_sample
from protocol.beacon import Purpose
from protocol.hashing import keccak256
from protocol.ids import ZERO32, ZERO_ADDRESS, Epoch, Hash32, Round, Slot, Units
from protocol.merkle import MerkleTree
from protocol.settlement import EMPTY_NODE, SettlementLeaf
from protocol.submission import operator_consent_digest
from protocol.terms import terms_of
from tests.chain import Anvil
from tests.ledger.world import World, deployed, stranger
from tests.specs import SPEC, some_hash, tokens

LEAVES = [some_hash(f"sample {number}") for number in range(120)]
DATASET = MerkleTree(LEAVES)
LEAF = SettlementLeaf(
    index=0,
    account=ZERO_ADDRESS,
    w=0,
    amount=Units(0),
    cumulative=Units(0),
    prev_epoch=Epoch(0),
    cells=ZERO32,
)


@pytest_asyncio.fixture
async def world(own_anvil: Anvil, tmp_path: Path) -> AsyncIterator[World]:
    params = replace(SPEC.chain, dataset_root=DATASET.root, unbonding_s=3_000)
    async with deployed(own_anvil, tmp_path, params=params) as made:
        yield made


async def _refused(world: World, outbox: Outbox, call: Call) -> Reverted:
    with pytest.raises(Reverted) as refused:
        await world.act(outbox, call)
    assert refused.value.name not in ("Unknown", "Empty", "Panic"), refused.value
    assert refused.value.label == call.label
    return refused.value


async def test_permit__deposit__needs_no_allowance(world: World) -> None:
    token, vault = world.contracts.token, world.contracts.vault
    key = world.anvil.key()
    box = await world.outbox(key)
    await world.act(world.deployer, token.transfer_call(key.address, tokens(7)))
    permit = await token.sign_permit(
        key, spender=vault.address, amount=tokens(7), deadline=world.anvil.time() + 1_000
    )
    other = Permit(amount=tokens(7), deadline=permit.deadline, signature=b"\x01" * 64 + b"\x1b")
    refusal = await _refused(world, box, vault.deposit_with_permit_call(other))
    assert refusal.name == "ERC20InsufficientAllowance"
    await world.act(box, vault.deposit_with_permit_call(permit))
    assert await vault.active_of(key.address) == tokens(7)
    assert await token.allowance(key.address, vault.address) == 0


async def test_exit__request_and_withdraw__pays_back(world: World) -> None:
    vault, token = world.contracts.vault, world.contracts.token
    miner = await world.join(Role.MINER, tokens(100))
    await world.act(miner.owner, vault.request_unbond_call(tokens(100)))
    unbonding = await vault.unbonding_of(miner.account)
    assert unbonding.amount == tokens(100)
    refusal = await _refused(world, miner.owner, vault.withdraw_call())
    assert refusal.name == "StillLocked"
    world.to(unbonding.unlock_time + 1)
    before = await token.balance_of(miner.account)
    await world.act(miner.owner, vault.withdraw_call())
    assert await token.balance_of(miner.account) == before + tokens(100)
    assert await vault.stake_at(miner.account, Epoch(1)) == 0
    assert await world.contracts.registry.role_of(miner.account) is Role.NONE


async def test_registry__keys_payout_and_endpoint__change(world: World) -> None:
    registry = world.contracts.registry
    miner = await world.join(Role.MINER, tokens(100))
    world.to(world.clock.start(Round(1)))
    fresh = world.anvil.key()
    digest = operator_consent_digest(
        domain=world.run_file.domain, run=world.run_file.run, account=miner.account, nonce=1
    )
    assert await registry.operator_count(miner.account) == 1
    call = registry.rotate_operator_call(fresh.address, fresh.sign_digest(digest))
    await world.act(miner.owner, call)
    assert await registry.operator_at(miner.account, Round(1)) == miner.operator.address
    assert await registry.operator_at(miner.account, Round(2)) == fresh.address
    assert await registry.account_of_operator(fresh.address) == miner.account
    assert await registry.account_of_operator(stranger()) is None
    held = await registry.slots(Role.MINER, Epoch(1))
    assert (held[0].operator, held[0].next_operator) == (miner.operator.address, fresh.address)
    duty = await registry.duty(fresh.address, round_=Round(2), epoch=Epoch(1))
    assert duty == Duty(account=miner.account, role=Role.MINER, slot=Slot(0))
    assert await registry.duty(stranger(), round_=Round(2), epoch=Epoch(1)) is None
    payout = stranger()
    await world.act(miner.owner, registry.set_payout_call(payout))
    assert await registry.payout_of(miner.account) == payout
    await world.act(miner.operator, registry.set_endpoint_call(miner.account, "http://a:1"))
    assert await registry.endpoint_of(miner.account) == "http://a:1"
    assert await registry.slot_account(Role.MINER, Slot(0), Epoch(1)) == miner.account
    assert await registry.slot_account(Role.MINER, Slot(5), Epoch(1)) is None
    assert await registry.slot_of(stranger(), Epoch(1)) is None
    assert await registry.slot_count(Role.MINER) == 1
    long = registry.set_endpoint_call(miner.account, "x" * 300)
    assert (await _refused(world, miner.owner, long)).name == "EndpointTooLong"


async def test_registry__stake_below_the_minimum__says_what_to_do(world: World) -> None:
    poor = await world.outbox(world.anvil.key())
    call = world.contracts.registry.register_call(
        Role.MINER, operator=stranger(), consent=bytes(65), payout=None, endpoint=""
    )
    refusal = await _refused(world, poor, call)
    assert refusal.arguments["minimum"] == tokens(100)
    assert "stake deposit" in str(refusal)


async def test_faults__wrong_data__is_proven(world: World) -> None:
    faults, params = world.contracts.faults, world.run_file.spec.chain
    miner = await world.join(Role.MINER, tokens(200))
    beacon = await world.draw(Round(1), Purpose.ASSIGNMENT)
    claimed = MerkleTree([some_hash(f"own {i}") for i in range(params.samples_per_round)])
    signed = world.submission(miner, Round(1), beacon, data_root=claimed.root)
    world.to(world.clock.put_opens(Round(1)))
    digest = signed.submission.digest(world.run_file.domain)
    await world.act(miner.operator, world.contracts.epochs.commit_call(Round(1), digest))
    index = 3
    sample = assigned_sample(
        run=world.run_file.run,
        round_=Round(1),
        beacon=beacon,
        miner=miner.account,
        index=index,
        train_samples=params.train_samples,
    )
    assert sample == await faults.assigned_sample(
        Round(1), beacon=beacon, miner=miner.account, index=index
    )
    evidence = WrongDataEvidence(
        signed=signed,
        index=index,
        claimed_leaf=some_hash(f"own {index}"),
        claimed_proof=tuple(claimed.proof(index)),
        true_leaf=LEAVES[sample],
        true_proof=tuple(DATASET.proof(sample)),
    )
    salt = Hash32(b"\x09" * 32)
    bond = params.challenge_bond
    await world.act(world.deployer, world.contracts.token.approve_call(faults.address, bond))
    hunter = world.deployer
    commitment = faults.commitment(hunter.address, evidence, salt)
    await world.act(hunter, faults.commit_challenge_call(commitment))
    early = await _refused(world, hunter, faults.expire_challenge_call(hunter.address, commitment))
    assert early.name == "NotExpired"
    assert await faults.challenge_block(hunter.address, some_hash("none")) is None
    world.anvil.mine()
    await world.act(hunter, faults.prove_call(evidence, salt))
    assert await world.contracts.vault.active_of(miner.account) == tokens(100)


async def test_rewards__calls_out_of_turn__are_refused_by_name(world: World) -> None:
    rewards, scores, box = world.contracts.rewards, world.contracts.scores, world.deployer
    opening = Opening(
        leaf=LEAF,
        siblings=(EMPTY_NODE,) * 13,
        prev_leaf=LEAF,
        prev_siblings=(EMPTY_NODE,) * 13,
        cell_value=1,
        cell_siblings=(CellNode(hash=ZERO32, sum=0),) * 12,
        weights=(WeightsOpening(chunk=b"\x00\x01", chunk_hashes=(Hash32(keccak256(b"x")),)),),
    )
    epoch = Epoch(1)
    calls = [
        rewards.open_leaf_call(epoch, attempt=1, index=0, cell=0, opening=opening),
        rewards.challenge_leaf_call(epoch, attempt=1, index=4096, cell=1),
        rewards.resolve_timeout_call(epoch, attempt=1, index=0, cell=0),
        rewards.release_challenge_call(epoch, attempt=1, index=0, cell=0),
        rewards.finalise_settlement_call(epoch, 1),
        rewards.close_post_call(epoch, 1),
        rewards.void_epoch_call(epoch),
        rewards.claim_call(epoch, LEAF, (EMPTY_NODE,) * 13),
        rewards.withdraw_refunds_call(box.address),
        rewards.withdraw_bonds_call(box.address),
        rewards.post_settlement_call(epoch, miners=EMPTY_NODE, validators=EMPTY_NODE),
        scores.penalise_missing_reveal_call(epoch, Slot(0)),
        scores.reveal_weights_call(
            epoch, slot=Slot(0), account=box.address, weights=b"\x00\x01", salt=ZERO32
        ),
        world.contracts.epochs.record_beacon_call(Round(1), Purpose.ASSIGNMENT),
    ]
    for call in calls:
        await _refused(world, box, call)


async def test_rewards__fees_and_chores__show_in_the_views(world: World) -> None:
    rewards, token, box = world.contracts.rewards, world.contracts.token, world.deployer
    await world.act(box, token.approve_call(rewards.address, tokens(3)))
    await world.act(box, rewards.add_fees_call(tokens(3)))
    await world.draw(Round(1), Purpose.ASSIGNMENT)
    tariff = world.run_file.spec.chain.chore_tariff
    assert await rewards.refunds_of(box.address) == 2 * tariff
    owed = await rewards.owed()
    assert (owed.fees, owed.refunds, owed.held(Units(0))) == (tokens(3), 2 * tariff, tokens(3))
    before = await token.balance_of(box.address)
    await world.act(box, rewards.withdraw_refunds_call(box.address))
    assert await token.balance_of(box.address) == before + 2 * tariff
    assert await token.total_minted() == await token.total_supply()
    assert await rewards.next_epoch() == 1
    assert await rewards.standing_posts() == []
    assert await rewards.post_of(Epoch(1), 1) is None
    assert await rewards.required_bond() == world.run_file.spec.chain.settlement_bond
    assert (
        await rewards.scheduled_emission(Epoch(7)) == world.run_file.spec.chain.emission_per_epoch
    )
    assert await rewards.final_root(Epoch(1)) is None
    assert await rewards.last_final_at(Epoch(0)) == 0
    assert await rewards.challenge_of(Epoch(1), attempt=1, index=0, cell=0) is None
    assert await rewards.prev_epochs_of([box.address], Epoch(1)) == {box.address: 0}
    assert await rewards.bonds_of(box.address) == 0


async def test_epochs__nothing_happened__is_none(world: World) -> None:
    epochs, scores = world.contracts.epochs, world.contracts.scores
    now = await epochs.now()
    assert (now.round, now.epoch) == (0, 0)
    assert now.time == world.anvil.time()
    assert await epochs.beacon(Round(1), Purpose.EVALUATION) is None
    assert await epochs.beacon_target(Round(1), Purpose.EVALUATION) is None
    assert await epochs.finalised_root(Round(1)) is None
    assert not await epochs.has_attested(Round(1), Slot(0), root=ZERO32, bitmap=b"")
    state = await epochs.round_state(Round(4))
    assert (state.round, state.epoch) == (4, 2)
    assert state.start == world.clock.start(Round(4))
    assert state.root is None
    assert state.assignment is None
    assert state.evaluation_target is None
    assert await scores.weights_root(Epoch(1), Slot(0)) is None
    assert await scores.commitment_of(Epoch(1), Slot(0)) is None
    assert (await scores.epoch_scores(Epoch(1))).committed == frozenset()


async def test_epochs__terms_and_pauses__show_in_the_views(world: World) -> None:
    epochs, governor = world.contracts.epochs, world.governor
    spec, now = world.run_file.spec, await epochs.now()
    assert await epochs.governor() == governor.address
    [first] = await epochs.schedule()
    assert first == terms_of(spec, from_epoch=Epoch(1), judge=world.run_file.contracts.committee)
    assert await epochs.terms_at(Epoch(9)) == first
    other = replace(spec, compute=replace(spec.compute, threads=2))
    terms = terms_of(
        other, from_epoch=Epoch(spec.chain.notice_epochs), judge=world.contracts.faults.address
    )
    refusal = await _refused(world, world.deployer, epochs.announce_terms_call(terms))
    assert "governor's key" in str(refusal)
    await world.act(governor, epochs.announce_terms_call(terms))
    assert await epochs.schedule() == [first, terms]
    assert await epochs.spec_hash_at(terms.from_epoch) == other.hash()
    await world.act(governor, epochs.withdraw_terms_call())
    await world.act(governor, epochs.pause_call())
    state = await epochs.pause_state()
    assert (state.last_start, state.total_s, state.total_blocks) == (world.anvil.time(), 0, 0)
    world.to(world.anvil.time() + 100)
    frozen = await epochs.now()
    assert frozen.paused
    assert frozen.time == state.last_start
    assert await epochs.run_block() == state.since_block
    call = epochs.commit_call(Round(1), some_hash("digest"))
    assert "the run is paused" in str(await _refused(world, world.deployer, call))
    assert "anyone can" in str(await _refused(world, world.deployer, epochs.resume_call()))
    await world.act(governor, epochs.resume_call())
    after = await epochs.pause_state()
    assert after == PauseState(
        last_start=state.last_start,
        since_block=None,
        total_s=world.anvil.time() - (state.last_start or 0),
        total_blocks=2,
    )
    assert (await epochs.now()).time == now.time + (frozen.time - now.time)
    await world.reader.poll()
    [ended] = world.reader.events(PauseEnded)
    assert (ended.total_s, ended.total_blocks) == (after.total_s, after.total_blocks)
    assert [event.terms for event in world.reader.events(TermsAnnounced)] == [first, terms]
    assert [event.spec_hash for event in world.reader.events(TermsWithdrawn)] == [terms.spec_hash]


async def test_epochs__attestations__are_counted_from_ballots(world: World) -> None:
    epochs, round_ = world.contracts.epochs, Round(1)
    one = await world.join(Role.VALIDATOR, tokens(2000))
    two = await world.join(Role.VALIDATOR, tokens(1500))
    await world.join(Role.MINER, tokens(100))
    root = some_hash("root")
    world.to(world.clock.publish_deadline(round_) + 1)
    await world.act(one.operator, epochs.attest_call(round_, root, b"\x01"))
    await world.act(two.operator, epochs.attest_call(round_, root, b""))
    assert await epochs.has_attested(round_, one.slot, root=root, bitmap=b"\x01")
    assert not await epochs.has_attested(round_, two.slot, root=root, bitmap=b"\x01")
    world.to(world.clock.attest_deadline(round_) + 1)
    ballot = Ballot(slot=one.slot, root=root, bitmap=b"\x01")
    counted = await epochs.tally(round_, miner=Slot(0), root=root, ballots=[ballot])
    assert counted == StakeTally(
        total=tokens(3500),
        for_root=tokens(2000),
        bit_set=tokens(2000),
        unopened=tokens(1500),
        setters=frozenset({one.slot}),
    )
    both = {one.slot: b"\x01", two.slot: b""}
    wrong = epochs.finalise_root_call(round_, root, {one.slot: b"", two.slot: b""})
    assert (await _refused(world, world.deployer, wrong)).name == "NotAttested"
    await world.act(world.deployer, epochs.finalise_root_call(round_, root, both))
    assert await epochs.finalised_root(round_) == root
