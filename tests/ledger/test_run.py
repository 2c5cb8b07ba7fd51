"""One whole life of a run on a real chain, through every wrapper, with the books closed at each step."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.accounting import take_books
from ledger.contracts.evidence import EquivocationEvidence
from ledger.contracts.registry import Role
from ledger.contracts.verdicts import Fault
from ledger.errors import Reverted
from ledger.event_types import (
    Attested,
    BeaconRecorded,
    BountyPaid,
    Claimed,
    Committed,
    Convicted,
    FaultProven,
    RootFinalised,
    SettlementFinalised,
    SettlementPosted,
    WeightsRevealed,
)
from ledger.runs import join
from protocol.beacon import Purpose
from protocol.ids import ZERO32, Address, Epoch, Hash32, Round, Slot, Units
from protocol.settlement import (
    SettlementLeaf,
    SettlementTree,
    cells_root,
    weights_commitment,
)
from tests.chain import Anvil
from tests.ledger.world import World, deployed
from tests.specs import tokens


async def test_run__from_deployment_to_claim__every_wrapper_agrees(
    own_anvil: Anvil, tmp_path: Path
) -> None:
    async with deployed(own_anvil, tmp_path) as world:
        await _live(world)


async def _books_balance(world: World) -> None:
    await world.reader.poll()
    books = await take_books(world.contracts, world.reader)
    assert books.balanced, books
    assert books.token_balance == books.accounted > 0


async def _live(world: World) -> None:
    contracts = world.contracts
    await join(world.run_file, world.connection)
    miner = await world.join(Role.MINER, tokens(200))
    cheat = await world.join(Role.MINER, tokens(200))
    validator = await world.join(Role.VALIDATOR, tokens(2000))
    await _books_balance(world)
    epoch, round_ = Epoch(1), Round(1)
    holders = await contracts.registry.slots(Role.MINER, epoch)
    assert [(h.slot, h.account, h.stake) for h in holders] == [
        (0, miner.account, tokens(200)),
        (1, cheat.account, tokens(200)),
    ]
    assert holders[0].operator == miner.operator.address
    assert holders[0].endpoint == "http://127.0.0.1:1"

    beacon = await world.draw(round_, Purpose.ASSIGNMENT)
    honest = world.submission(miner, round_, beacon)
    first = world.submission(cheat, round_, beacon)
    second = world.submission(cheat, round_, beacon, payload_bytes=101)
    digest = honest.submission.digest(world.run_file.domain)
    assert await contracts.faults.submission_digest(honest.submission) == digest

    with pytest.raises(Reverted) as early:
        await world.act(miner.operator, contracts.epochs.commit_call(round_, digest))
    assert early.value.name == "TooEarly"
    world.to(world.clock.put_opens(round_))
    await world.act(miner.operator, contracts.epochs.commit_call(round_, digest))
    await world.act(
        cheat.operator,
        contracts.epochs.commit_call(round_, first.submission.digest(world.run_file.domain)),
    )
    assert await contracts.epochs.is_committed(
        round_, operator=miner.operator.address, digest=digest
    )

    world.to(world.clock.publish_deadline(round_) + 1)
    root = world.run_file.spec.chain.genesis_root
    await world.act(validator.operator, contracts.epochs.attest_call(round_, root, b"\x01"))
    assert await contracts.epochs.has_attested(round_, validator.slot, root=root, bitmap=b"\x01")
    await world.draw(round_, Purpose.EVALUATION)
    world.to(world.clock.attest_deadline(round_) + 1)
    await world.act(
        validator.operator,
        contracts.epochs.finalise_root_call(round_, root, {validator.slot: b"\x01"}),
    )

    await world.reader.poll()
    recorded = world.reader.events(BeaconRecorded, round_=round_)
    assert {event.purpose: event.value for event in recorded}[Purpose.ASSIGNMENT] == beacon
    commits = {event.operator: event.digest for event in world.reader.events(Committed)}
    assert commits[miner.operator.address] == digest
    [attested] = world.reader.events(Attested, round_=round_)
    assert (attested.slot, attested.bitmap) == (validator.slot, b"\x01")
    [final] = world.reader.events(RootFinalised, round_=round_)
    assert (final.root, final.total_stake) == (root, tokens(2000))
    state = await contracts.epochs.round_state(round_)
    assert state.assignment == beacon
    assert state.root == root
    assert state.attest_deadline == world.clock.attest_deadline(round_)
    await _books_balance(world)

    evidence = EquivocationEvidence(first=first, second=second)
    salt = Hash32(b"\x05" * 32)
    hunter = await world.outbox(world.anvil.key())
    bond = world.run_file.spec.chain.challenge_bond
    await world.act(world.deployer, contracts.token.transfer_call(hunter.address, bond))
    await world.act(hunter, contracts.token.approve_call(contracts.faults.address, bond))
    commitment = contracts.faults.commitment(hunter.address, evidence, salt)
    await world.act(hunter, contracts.faults.commit_challenge_call(commitment))
    await _books_balance(world)
    assert await contracts.faults.challenge_block(hunter.address, commitment)
    world.anvil.mine()
    await world.act(hunter, contracts.faults.prove_call(evidence, salt))
    verdict = await contracts.verdicts.verdict_of(cheat.account, round_)
    assert verdict is not None
    assert (verdict.kind, verdict.hunter) == (Fault.EQUIVOCATION, hunter.address)
    assert await contracts.faults.free_bond(hunter.address) == bond
    assert (await contracts.registry.faults_of(cheat.account)).faults == 1
    await _books_balance(world)
    assert [event.miner for event in world.reader.events(FaultProven)] == [cheat.account]
    [convicted] = world.reader.events(Convicted, round_=round_)
    assert (convicted.kind, convicted.bounty) == (Fault.EQUIVOCATION, verdict.bounty)
    await _pay_bounty(world, cheat.account, round_)

    await _settle(world, validator.account, validator.operator.address)


async def _pay_bounty(world: World, offender: Address, round_: Round) -> None:
    contracts = world.contracts
    verdict = await contracts.verdicts.verdict_of(offender, round_)
    assert verdict is not None
    assert verdict.hunter is not None
    assert await contracts.verdicts.verdict_of(offender, Round(9)) is None
    assert await contracts.verdicts.bounties_held() == verdict.bounty > 0
    assert await contracts.verdicts.credit_of(verdict.hunter) == 0
    early = contracts.verdicts.pay_bounty_call(offender, round_)
    with pytest.raises(Reverted) as refused:
        await world.act(world.deployer, early)
    assert refused.value.name == "TooEarly"
    world.anvil.mine(verdict.payable_after + 1 - await contracts.epochs.run_block())
    before = await contracts.token.balance_of(verdict.hunter)
    await world.act(world.deployer, contracts.verdicts.pay_bounty_call(offender, round_))
    assert await contracts.token.balance_of(verdict.hunter) == before + verdict.bounty
    await _books_balance(world)
    [paid] = world.reader.events(BountyPaid, round_=round_)
    assert (paid.hunter, paid.amount) == (verdict.hunter, verdict.bounty)
    with pytest.raises(Reverted) as refused:
        await world.act(world.deployer, contracts.verdicts.withdraw_credit_call())
    assert refused.value.name == "NoCredit"


async def _settle(world: World, validator: Address, operator: Address) -> None:
    contracts, epoch = world.contracts, Epoch(1)
    box = next(event for event in world.reader.events(Attested) if event.account == validator)
    assert box.slot == 0
    weights, salt = bytes.fromhex("00640000"), Hash32(b"\x06" * 32)
    world.to(world.clock.epoch_end(epoch) + 1)
    outbox = world.boxes[operator]
    commitment = weights_commitment(
        run=world.run_file.run, validator=box.account, epoch=epoch, weights=weights, salt=salt
    )
    await world.act(outbox, contracts.scores.commit_weights_call(epoch, commitment))
    world.to(world.clock.weight_commit_deadline(epoch) + 1)
    await world.act(
        outbox,
        contracts.scores.reveal_weights_call(
            epoch, slot=Slot(0), account=validator, weights=weights, salt=salt
        ),
    )
    await world.reader.poll()
    assert [event.weights for event in world.reader.events(WeightsRevealed, epoch=epoch)] == [
        weights
    ]
    scores = await contracts.scores.epoch_scores(epoch)
    assert scores.revealed == {Slot(0)}
    assert await contracts.scores.has_quorum(epoch)

    world.to(world.clock.weight_reveal_deadline(epoch) + 1)
    pot = await contracts.rewards.pot_of(epoch)
    share = pot * world.run_file.spec.chain.miners_bps // 10_000
    miners = await contracts.registry.slots(Role.MINER, epoch)
    leaves = {
        0: _leaf(0, miners[0].account, 100, Units(share)),
        1: _leaf(1, miners[1].account, 0, Units(0)),
        4096: SettlementLeaf(
            index=4096,
            account=box.account,
            w=tokens(2000) * 100,
            amount=Units(pot - share),
            cumulative=Units(pot - share),
            prev_epoch=Epoch(0),
            cells=cells_root({Slot(0): 100}),
        ),
    }
    tree = SettlementTree(epoch, leaves)
    bond = await contracts.rewards.required_bond()
    await world.act(world.deployer, contracts.token.approve_call(contracts.rewards.address, bond))
    call = contracts.rewards.post_settlement_call(
        epoch, miners=tree.miners, validators=tree.validators
    )
    await world.act(world.deployer, call)
    [post] = await contracts.rewards.standing_posts()
    assert post.root == tree.root.hash
    await _books_balance(world)
    world.to(post.window_ends + 1)
    await world.act(world.deployer, contracts.rewards.finalise_settlement_call(epoch, post.attempt))
    await world.reader.poll()
    assert len(world.reader.events(SettlementFinalised, epoch=epoch)) == 1
    posted = world.reader.events(SettlementPosted, epoch=epoch)
    assert [each.miners for each in posted] == [tree.miners]
    await _books_balance(world)
    for index, leaf in leaves.items():
        if leaf.amount:
            claim = contracts.rewards.claim_call(epoch, leaf, tree.proof(index))
            await world.act(world.deployer, claim)
            assert await contracts.rewards.claimed_of(leaf.account) == leaf.amount
            await _books_balance(world)
    assert len(world.reader.events(Claimed, epoch=epoch)) == 2


def _leaf(index: int, account: Address, weight: int, amount: Units) -> SettlementLeaf:
    return SettlementLeaf(
        index=index,
        account=account,
        w=weight,
        amount=amount,
        cumulative=amount,
        prev_epoch=Epoch(0),
        cells=ZERO32,
    )
