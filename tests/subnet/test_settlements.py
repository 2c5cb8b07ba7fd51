"""Epochs that don't settle by themselves: silent validators, absent posters, wrong posts, false challenges."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ledger.event_types import (
    BondReleased,
    BondsWithdrawn,
    EpochVoided,
    LeafChallenged,
    LeafOpened,
    MissingRevealPenalised,
    PostClosed,
    RefundsWithdrawn,
    SettlementFinalised,
    SettlementPosted,
    SettlementStruck,
    WeightsRevealed,
)
from node.chores import Chore, ChoreKind, my_turn
from protocol.ids import Epoch, Units
from protocol.settlement import SettlementLeaf, SettlementTree
from tests.chain import Anvil
from tests.specs import tokens
from tests.subnet.stepped import FUNDS, STAKE, Member, Moment, Subnet, subnet
from training.dataset import TokenDataset

FIRST = Epoch(1)


async def run_to_post(net: Subnet, moment: Moment = Moment.POST) -> None:
    """Leads everybody through the first epoch and up to where it can be posted; nobody posts."""
    await net.run_rounds(2)
    async for reached in net.moments():
        if reached is moment:
            return
        await net.work()


async def settle(net: Subnet, *, until: int) -> None:
    """Lets everybody work again and again, up to a time."""
    while net.time < until:
        net.go_to(net.time + 11)
        await net.work()


async def true_tree(net: Subnet, epoch: Epoch = FIRST) -> SettlementTree:
    """The settlement that a validator's node computes for the epoch next in line."""
    node = net.validators[-1].open_node
    await node.tick()
    tree = await node.settlements.build(epoch, await net.contracts.rewards.pot_of(epoch))
    assert tree is not None
    return tree


def with_moved_amount(tree: SettlementTree, *, to: SettlementLeaf, by: int) -> SettlementTree:
    """The tree with more for one leaf, taken from the richest other one of its half."""
    half = [leaf for leaf in tree.leaves.values() if (leaf.index < 4096) == (to.index < 4096)]
    loser = max((leaf for leaf in half if leaf.index != to.index), key=lambda leaf: leaf.amount)
    changed = {
        leaf.index: replace(
            leaf,
            amount=Units(leaf.amount + change),
            cumulative=Units(leaf.cumulative + change),
        )
        for leaf, change in ((to, by), (loser, -by))
    }
    return SettlementTree(tree.epoch, {**tree.leaves, **changed})


def post(net: Subnet, poster: Member, tree: SettlementTree) -> None:
    """Posts any tree with a member's operator key."""
    rewards = net.contracts.rewards
    sender = poster.key.address
    net.send(sender, net.contracts.token.approve_call(rewards.address, Units(2**255)))
    net.send(
        sender,
        rewards.post_settlement_call(tree.epoch, miners=tree.miners, validators=tree.validators),
    )


async def tokens_of(net: Subnet, member: Member) -> int:
    return (await net.contracts.token.balances_of([member.key.address]))[0]


async def test_reveal__one_validator_never_reveals__pays_a_penalty_and_others_are_paid(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text, validators=3) as net:
        silent, *others = net.validators
        await net.run_rounds(2)
        async for moment in net.moments():
            with net.asleep(*([silent] if moment is Moment.REVEAL else [])):
                await net.work()
        await net.run_round()
        reader = await net.poll()
        assert len(reader.events(WeightsRevealed, epoch=FIRST)) == 2
        penalty = net.run_file.spec.chain.missing_reveal_penalty
        events = reader.events(MissingRevealPenalised)
        assert [(event.account, event.taken) for event in events] == [(silent.owner, penalty)]
        vault, rewards = net.contracts.vault, net.contracts.rewards
        assert await vault.active_of(silent.owner) == STAKE[silent.kind] - penalty
        assert await rewards.claimed_of(silent.owner) == 0
        await net.assert_paid(*others)
        await net.assert_paid(*net.miners)
        assert await net.slot(silent) is not None, "a penalty does not cost the slot"
        net.assert_agreement()
        assert net.failed_transactions() == []
        await net.assert_balanced()


async def test_reveal__nobody_reveals__voids_the_epoch_and_carries_pot_and_weights_over(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text) as net:
        await net.run_rounds(4)
        async for moment in net.moments():
            with net.asleep(*(net.validators if moment is Moment.REVEAL else [])):
                await net.work()
        reader = await net.poll()
        void = Epoch(2)
        assert reader.events(WeightsRevealed, epoch=void) == []
        voided = reader.events(EpochVoided)
        assert [event.epoch for event in voided] == [void]
        assert voided[0].rollover >= net.run_file.spec.chain.emission_per_epoch * 9 // 10
        assert len(reader.events(MissingRevealPenalised, epoch=void)) == 2
        await net.run_rounds(2)
        posted = (await net.poll()).events(SettlementPosted, epoch=Epoch(3))[0]
        assert (
            posted.pot > voided[0].rollover + net.run_file.spec.chain.emission_per_epoch * 9 // 10
        )
        for member in net.members:
            chain = member.open_node.chain
            carried = await chain.selection_weights(Epoch(4))
            assert carried == await chain.selection_weights(Epoch(3))
            assert sum(carried.values()) > 0
        net.assert_agreement()
        assert net.failed_transactions() == []
        await net.assert_balanced()


async def test_post__first_in_turn_is_absent__the_next_posts_in_its_turn(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text, validators=3) as net:
        await net.run_rounds(2)
        opened = net.clock.weight_reveal_deadline(FIRST)
        turn = net.run_file.spec.chain.settlement_turn_s
        chore = Chore(kind=ChoreKind.POST_SETTLEMENT, number=FIRST, opened=opened)

        def on_turn(time: int) -> list[Member]:
            return [
                member
                for member in net.validators
                if my_turn(
                    chore,
                    time=time,
                    me=member.owner,
                    validators=[each.owner for each in net.validators],
                    seed=net.run_file.run,
                    turn_s=turn,
                )
            ]

        first = on_turn(opened + 1)[0]
        async for moment in net.moments():
            if moment is Moment.POST:
                break
            await net.work()
        with net.asleep(first):
            while not (posts := (await net.poll()).events(SettlementPosted)):
                assert net.time <= opened + turn + 10
                await net.work(only=net.validators)
                stepped_anvil.mine(1)
        second = next(member for member in on_turn(opened + turn + 1) if member is not first)
        assert [event.poster for event in posts] == [second.key.address]
        await settle(net, until=posts[0].window_ends + 8)
        reader = await net.poll()
        assert len(reader.events(SettlementPosted)) == 1, "who comes late does not post again"
        assert [event.epoch for event in reader.events(SettlementFinalised)] == [FIRST]
        assert net.failed_transactions() == []
        await net.assert_balanced()


async def test_post__wrong_miners_half__is_challenged_struck_and_posted_again(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text, validators=3) as net:
        rogue = net.validators[0]
        await run_to_post(net)
        right = await true_tree(net)
        poorest = min(
            (leaf for leaf in right.leaves.values() if leaf.index < 4096),
            key=lambda leaf: leaf.amount,
        )
        post(net, rogue, with_moved_amount(right, to=poorest, by=tokens(50)))
        bond = net.run_file.spec.chain.settlement_bond
        with net.asleep(rogue):
            await settle(net, until=net.clock.settlement_void_at(FIRST) - 60)
        reader = await net.poll()
        struck = reader.events(SettlementStruck)
        assert len(struck) == 1
        assert (struck[0].bounty, struck[0].burned) == (bond * 4 // 10, bond * 6 // 10)
        posts = reader.events(SettlementPosted)
        assert [event.bond for event in posts] == [bond, bond], (
            "a false post bars and prices out nobody"
        )
        assert posts[1].poster != rogue.key.address
        final = reader.events(SettlementFinalised)
        assert [event.root for event in final] == [right.root.hash]
        winner = next(v for v in net.validators if v.key.address == struck[0].challenger)
        await net.work(2)
        reader = await net.poll()
        challenge = net.run_file.spec.chain.challenge_bond
        released = sum(e.amount for e in reader.events(BondReleased, account=winner.key.address))
        assert released >= struck[0].bounty + challenge
        for member in net.validators[1:]:
            assert await net.contracts.rewards.bonds_of(member.key.address) == 0
            assert await tokens_of(net, member) >= FUNDS
        assert await tokens_of(net, winner) >= FUNDS + struck[0].bounty
        refunds = sum(e.amount for e in reader.events(RefundsWithdrawn, account=rogue.key.address))
        assert await tokens_of(net, rogue) == FUNDS - bond + refunds
        await net.assert_paid(*net.miners)
        await net.assert_balanced()


async def test_post__wrong_validators_half__is_challenged_and_struck(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text) as net:
        rogue, _ = net.validators
        await run_to_post(net)
        right = await true_tree(net)
        own = next(leaf for leaf in right.leaves.values() if leaf.account == rogue.owner)
        post(net, rogue, with_moved_amount(right, to=own, by=tokens(50)))
        with net.asleep(rogue):
            await settle(net, until=net.clock.settlement_void_at(FIRST) - 60)
        reader = await net.poll()
        assert len(reader.events(SettlementStruck)) == 1
        assert [event.root for event in reader.events(SettlementFinalised)] == [right.root.hash]
        await net.assert_balanced()


async def test_overpay__posts_first__is_opened_struck_and_paid_no_more_than_the_honest_say(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text, rogues=["overpay"]) as net:
        rogue, *honest = net.named("overpay"), net.named("v1"), net.named("v2")
        await run_to_post(net)
        right = await true_tree(net)
        await net.work(only=[rogue])
        reader = await net.poll()
        posted = reader.events(SettlementPosted)[0]
        assert posted.poster == rogue.key.address
        assert posted.miners == right.miners
        assert posted.validators != right.validators
        own = next(leaf for leaf in right.leaves.values() if leaf.account == rogue.owner)
        assert posted.validators.amount == right.validators.amount, "within the budget"

        await settle(net, until=net.clock.settlement_void_at(FIRST) - 60)
        reader = await net.poll()
        challenges = reader.events(LeafChallenged)
        assert [event.index for event in challenges] == [own.index], "the poster's own leaf first"
        struck = reader.events(SettlementStruck)
        bond = net.run_file.spec.chain.settlement_bond
        assert [(event.bounty, event.burned) for event in struck] == [
            (bond * 4 // 10, bond * 6 // 10)
        ]
        assert [event.bond for event in reader.events(SettlementPosted)] == [bond, bond]
        assert [event.root for event in reader.events(SettlementFinalised)] == [right.root.hash]

        await net.work(2)
        winner = next(member for member in honest if member.key.address == struck[0].challenger)
        assert await tokens_of(net, winner) >= FUNDS + struck[0].bounty
        assert await tokens_of(net, rogue) < FUNDS - bond + tokens(10), "its bond is gone"
        assert await net.contracts.rewards.claimed_of(rogue.owner) == own.amount
        await net.assert_paid(*net.miners)
        await net.assert_paid(*net.validators)
        await net.assert_balanced()


async def test_post__right_one_is_challenged__is_opened_and_stands(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text, hunters=1) as net:
        vandal = net.hunters[0].key.address
        await run_to_post(net)
        await net.work(only=net.validators)
        reader = await net.poll()
        posted = reader.events(SettlementPosted)[0]
        rewards = net.contracts.rewards
        net.send(vandal, net.contracts.token.approve_call(rewards.address, Units(2**255)))
        for index, cell in ((0, 0), (4096, 0), (4096, 1), (4097, 1), (7, 0)):
            net.send(vandal, rewards.challenge_leaf_call(FIRST, attempt=1, index=index, cell=cell))
        await settle(net, until=posted.window_ends + 60)
        reader = await net.poll()
        assert len(reader.events(LeafOpened)) == 5
        assert reader.events(SettlementStruck) == []
        assert [event.epoch for event in reader.events(SettlementFinalised)] == [FIRST]
        spec = net.run_file.spec.chain
        withdrawn = reader.events(BondsWithdrawn, account=posted.poster)
        assert (
            sum(event.amount for event in withdrawn)
            == spec.settlement_bond + 5 * spec.challenge_bond
        )
        await net.assert_balanced()


async def test_post__right_ones_around_a_false_one__only_the_liar_loses_its_bond(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text, validators=3) as net:
        first, liar, third = net.validators
        await run_to_post(net)
        right = await true_tree(net)
        leaf = next(each for each in right.leaves.values() if each.index < 4096)
        post(net, first, right)
        post(net, liar, with_moved_amount(right, to=leaf, by=tokens(1)))
        post(net, third, right)
        with net.asleep(liar):
            await settle(net, until=net.clock.settlement_void_at(FIRST) - 60)
            await net.work(2)
        reader = await net.poll()
        assert len(reader.events(SettlementPosted)) == 3, "nobody posts beside a right one"
        [final] = reader.events(SettlementFinalised)
        assert (final.attempt, final.root) == (1, right.root.hash)
        [closed] = reader.events(PostClosed)
        assert (closed.attempt, closed.poster, closed.burned) == (3, third.key.address, 0)
        assert [event.attempt for event in reader.events(SettlementStruck)] == [2]
        for member in (first, third):
            back = await net.contracts.rewards.bonds_of(member.key.address)
            assert await tokens_of(net, member) + back >= FUNDS
        bond = net.run_file.spec.chain.settlement_bond
        refunds = sum(e.amount for e in reader.events(RefundsWithdrawn, account=liar.key.address))
        assert await tokens_of(net, liar) == FUNDS - bond + refunds
        assert net.failed_transactions() == []
        await net.assert_balanced()


async def test_challenge__post_falls_to_another_challenge__bond_comes_back(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text, validators=3) as net:
        rogue, second, third = net.validators
        await run_to_post(net)
        right = await true_tree(net)
        leaf = next(each for each in right.leaves.values() if each.index < 4096)
        post(net, rogue, with_moved_amount(right, to=leaf, by=tokens(1)))
        rewards = net.contracts.rewards
        for member, index in ((second, 0), (third, 1)):
            sender = member.key.address
            net.send(sender, net.contracts.token.approve_call(rewards.address, Units(2**255)))
            net.send(sender, rewards.challenge_leaf_call(FIRST, attempt=1, index=index))
        with net.asleep(rogue):
            await settle(net, until=net.clock.settlement_void_at(FIRST) - 60)
            await net.work(2)
        reader = await net.poll()
        assert len(reader.events(LeafChallenged)) == 2
        assert len(reader.events(SettlementStruck)) == 1
        for member in (second, third):
            assert await tokens_of(net, member) >= FUNDS, "no honest challenger loses anything"
        await net.assert_balanced()


async def test_subnet__lone_validator__does_everything_and_everybody_is_paid(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text, validators=1) as net:
        roots = {net.assert_agreement()}
        for _ in range(4):
            await net.run_round()
            roots.add(net.assert_agreement())
        assert len(roots) == 5
        reader = await net.poll()
        assert [event.epoch for event in reader.events(SettlementFinalised)] == [FIRST]
        await net.assert_paid(*net.miners)
        await net.assert_paid(*net.validators)
        assert net.failed_transactions() == []
        await net.assert_balanced()


async def test_subnet__one_of_two_validators_is_gone__rounds_are_void_and_the_other_is_paid(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text) as net:
        present, gone = net.validators
        await net.run_round()
        await net.close(gone)
        before = net.assert_agreement()
        await net.run_rounds(3)
        assert net.assert_agreement() == before, "no root has more than half of the stake"
        reader = await net.poll()
        assert [event.epoch for event in reader.events(SettlementFinalised)] == [FIRST]
        rewards, vault = net.contracts.rewards, net.contracts.vault
        await net.assert_paid(present)
        assert await rewards.claimed_of(gone.owner) == 0
        assert await vault.active_of(present.owner) == STAKE[present.kind]
        assert await vault.active_of(gone.owner) < STAKE[gone.kind]
        for member in net.miners:
            assert await vault.active_of(member.owner) == STAKE[member.kind]
        await net.open(gone)
        await net.run_round()
        assert net.assert_agreement() != before, "with both of them it goes on"
        await net.assert_balanced()
