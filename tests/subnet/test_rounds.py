"""Rounds as they should be, and every way in which one comes to nothing: the model stays, nobody is punished, it goes on."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from ledger.event_types import Attested, Claimed, Committed, Slashed
from protocol.beacon import Purpose
from protocol.ids import Round
from tests.chain import Anvil
from tests.specs import SPEC, some_hash
from tests.subnet.stepped import CODEC, STAKE, Moment, Subnet, subnet
from training.dataset import TokenDataset


async def assert_nobody_penalised(net: Subnet) -> None:
    """All stakes are whole, nothing was slashed, and no validator holds a strike against anybody."""
    reader = await net.poll()
    assert reader.events(Slashed) == []
    for member in [*net.miners, *net.validators]:
        assert await net.contracts.vault.active_of(member.owner) == STAKE[member.kind]
    for member in net.validators:
        for miner, record in net.book(member).miners.items():
            assert (record.strikes, record.barred) == (0, None), miner


async def local_from(net: Subnet, round_: Round) -> set[int]:
    """The rounds whose local states the submissions of a round continue from, as a validator holds them."""
    versions = net.validators[0].open_node.exchange.versions(round_)
    return {
        each.signed.submission.local_from_round
        for found in versions.values()
        for each in found.values()
    }


async def test_subnet__two_epochs__pays_everybody_and_balances(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text, miners=["honest"] * 3, hunters=1) as net:
        roots = [net.assert_agreement()]
        for _ in range(5):
            await net.run_round()
            roots.append(net.assert_agreement())
        reader = await net.poll()
        assert len(set(roots)) == 6, "every round moves the model"
        assert [await net.final_root(Round(r)) for r in range(1, 6)] == roots[:5]
        for round_ in range(1, 6):
            assert len(reader.events(Committed, round_=Round(round_))) == 3
            assert len(reader.events(Attested, round_=Round(round_))) == 2
        assert {event.epoch for event in reader.events(Claimed)} == {1, 2}
        await net.assert_paid(*net.miners)
        await net.assert_paid(*net.validators)
        assert net.failed_transactions() == []
        await assert_nobody_penalised(net)
        await net.assert_balanced()


async def test_subnet__signs_of_cosine_coefficients__everybody_agrees_on_every_root(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    codec = replace(CODEC, transform="dct", feedback="0.999")
    outer = replace(SPEC.outer, rule="demo", alpha="0.0078125")
    kinds = ["honest", "honest", "zero"]
    async with subnet(
        stepped_anvil, tmp_path, text, miners=kinds, hunters=1, codec=codec, outer=outer
    ) as net:
        follower = net.validators[0].open_node.follower
        models, roots = [follower.params], [net.assert_agreement()]
        for _ in range(3):
            await net.run_round()
            models.append(follower.params)
            roots.append(net.assert_agreement())
        assert len(set(roots)) == 4, "every round moves the model"
        assert [await net.final_root(Round(r)) for r in range(1, 4)] == roots[:3]
        for before, after in pairwise(models):
            for name, tensor in before.items():
                steps = np.abs(after[name] - tensor) / np.float32(0.0078125)
                assert np.allclose(steps, np.rint(steps), atol=1e-4), name
                assert steps.max() <= 1 + 1e-4, "a weight moves by alpha or not at all"
        book = net.book(net.validators[0])
        scores = {member.name: book.score(member.owner).rating for member in net.miners}
        assert min(scores["honest1"], scores["honest2"]) > scores["zero"]
        assert net.heldout_loss(Round(3)) < net.heldout_loss(Round(1))
        assert net.failed_transactions() == []
        assert (await net.poll()).events(Slashed) == []
        await net.assert_balanced()


async def test_round__no_accepted_miner__keeps_the_root_and_goes_on(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text) as net:
        await net.run_round()
        before = net.assert_agreement()
        with net.asleep(*net.miners):
            empty = await net.run_round()
        assert net.assert_agreement(*net.validators) == before
        moving = await net.run_round()
        after = net.assert_agreement()
        assert await net.final_root(empty) == before, "for the chain it was a round like others"
        assert await net.final_root(moving) == before
        assert after != before
        assert await local_from(net, moving) == {1}
        await assert_nobody_penalised(net)
        await net.assert_balanced()


async def test_round__validators_disagree_on_the_root__is_void_and_the_next_goes_on(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text, validators=3) as net:
        await net.run_round()
        before = net.assert_agreement()
        void = net.round
        async for moment in net.moments():
            if moment is Moment.ATTEST:
                for number, member in enumerate(net.validators[1:]):
                    member.open_node.follower.root = some_hash(f"wrong {number}")
            await net.work()
        assert len((await net.poll()).events(Attested, round_=void)) == 3
        assert net.assert_agreement() == before, "who was wrong alone finds back by itself"
        moving = await net.run_round()
        assert net.assert_agreement() != before
        assert await net.final_root(void) is None
        assert await net.final_root(moving) == before
        assert await local_from(net, moving) == {1}, "work of a void round is never accepted"
        assert net.failed_transactions() == []
        await assert_nobody_penalised(net)
        await net.assert_balanced()


async def test_round__too_few_attest__is_void_and_the_next_goes_on(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text, validators=3) as net:
        await net.run_round()
        before = net.assert_agreement()
        void = net.round
        async for moment in net.moments():
            late = moment in (Moment.ATTEST, Moment.EVALUATE)
            sleepers = net.validators[1:] if late else []
            with net.asleep(*sleepers):
                await net.work()
        assert len((await net.poll()).events(Attested, round_=void)) == 1
        assert net.assert_agreement() == before
        assert await net.final_root(void) is None
        moving = await net.run_round()
        assert net.assert_agreement() != before
        assert await net.final_root(moving) == before
        assert await local_from(net, moving) == {1}
        await assert_nobody_penalised(net)
        await net.assert_balanced()


async def test_round__evaluation_beacon_missed__keeps_the_model_but_the_work_is_accepted(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text) as net:
        await net.run_round()
        before = net.assert_agreement()
        blind = net.round
        async for moment in net.moments():
            with net.no_chores(moment in (Moment.ATTEST, Moment.EVALUATE, Moment.APPLY)):
                await net.work()
        net.go_to(net.clock.beacon_cut_off(blind, Purpose.EVALUATION) + 1)
        await net.work()
        assert await net.contracts.epochs.beacon(blind, Purpose.EVALUATION) is None
        moving = await net.run_round()
        assert [v.open_node.follower.roots[moving] for v in net.validators] == [before] * 2
        assert net.assert_agreement() != before
        assert await net.final_root(blind) == await net.final_root(moving) == before
        assert await local_from(net, moving) == {blind}, "accepted, though the model did not move"
        await assert_nobody_penalised(net)
        await net.assert_balanced()


async def test_round__assignment_beacon_missed__nobody_trains_and_the_next_goes_on(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text) as net:
        async for moment in net.moments():
            with net.no_chores(moment is Moment.APPLY):
                await net.work()
        idle = net.round
        async for moment in net.moments():
            with net.no_chores(moment in (Moment.TRAIN, Moment.COMMIT)):
                await net.work()
        reader = await net.poll()
        assert await net.contracts.epochs.beacon(idle, Purpose.ASSIGNMENT) is None
        assert reader.events(Committed, round_=idle) == []
        before = net.assert_agreement()
        assert await net.final_root(idle) == before
        moving = await net.run_round()
        assert await net.final_root(moving) == before
        assert net.assert_agreement() != before
        assert await local_from(net, moving) == {1}
        assert net.failed_transactions() == []
        await assert_nobody_penalised(net)
        await net.assert_balanced()
