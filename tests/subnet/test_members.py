"""Who comes, goes and comes back: absence, late joining, divergence, exit and exclusion."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from pathlib import Path
from unittest.mock import AsyncMock, patch

import numpy as np
import pytest
from numpy.typing import NDArray

from ledger.contracts.registry import Role
from ledger.errors import FixableRevert
from ledger.event_types import Attested, Committed, Convicted, Slashed
from node.accepted import AcceptedWork
from protocol.ids import Address, Epoch, Round, Units
from protocol.submission import Submission
from tests.chain import Anvil
from tests.subnet.stepped import STAKE, Member, Moment, Subnet, key_named, subnet
from training.dataset import TokenDataset
from training.roots import state_root


async def accepted(net: Subnet, round_: Round) -> dict[Address, Submission]:
    """The accepted submissions of a round, as a validator concludes it."""
    node = net.validators[0].open_node
    work = AcceptedWork(
        chain=node.chain, exchange=node.exchange, spec=net.run_file.spec, me=node.me
    )
    return dict(await work.of(round_))


def corrupt(member: Member) -> None:
    """Flips the model that a node holds, root and all."""
    follower = member.open_node.follower
    name = next(iter(follower.params))
    follower.params = {**follower.params, name: follower.params[name] + np.float32(1)}
    follower.root = state_root(follower.params)


async def test_miner__back_after_missed_rounds__continues_its_own_local_state(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text, rounds_per_epoch=4) as net:
        steady, absent = net.miners
        await net.run_rounds(2)
        await net.close(absent)
        await net.run_rounds(3)
        await net.open(absent)
        assert absent.head == 3, "it takes up where it stopped"
        back = await net.run_round()
        net.assert_agreement()
        found = await accepted(net, back)
        assert found[absent.owner].local_from_round == 2
        assert (
            found[absent.owner].local_in == (await accepted(net, Round(2)))[absent.owner].local_out
        )
        assert found[steady.owner].local_from_round == back - 1
        assert (await net.poll()).events(Slashed, account=absent.owner) == []
        await net.assert_balanced()


async def test_miner__away_longer_than_the_fraud_window__starts_afresh_and_is_accepted(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text, fraud_window_epochs=1) as net:
        steady, absent = net.miners
        await net.run_rounds(2)
        await net.close(absent)
        await net.run_rounds(4)
        await net.open(absent)
        back = await net.run_round()
        net.assert_agreement()
        found = await accepted(net, back)
        assert found[absent.owner].local_from_round == 0
        assert found[steady.owner].local_from_round == back - 1
        await net.assert_balanced()


async def test_miner__killed_between_rounds__continues_its_local_state(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text) as net:
        await net.run_rounds(2)
        await net.reopen(*net.members)
        again = await net.run_round()
        net.assert_agreement()
        found = await accepted(net, again)
        assert {each.local_from_round for each in found.values()} == {2}
        assert set(found) == {member.owner for member in net.miners}


@pytest.mark.parametrize("rounds_before", [1, 5])
async def test_joiner__has_only_the_run_file__mines_with_the_right_root_at_once(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset, rounds_before: int
) -> None:
    async with subnet(stepped_anvil, tmp_path, text) as net:
        await net.run_rounds(rounds_before)
        late = await net.join(Role.MINER, "late-joiner")
        late.data_dir = None
        await net.open(late)
        assert (late.folder / "dataset" / "manifest.json").exists()
        assert await net.slot(late) is None
        while await net.slot(late) is None:
            await net.run_round()
        first = await net.run_round()
        net.assert_agreement()
        assert late.owner in await accepted(net, first)
        assert late.open_node.follower.roots[first] == await net.final_root(first)


async def test_joiner__becomes_a_validator__attests_the_right_root(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text) as net:
        await net.run_rounds(1)
        late = await net.join(Role.VALIDATOR, "v3")
        late.data_dir = None
        await net.open(late)
        await net.run_round()
        first = await net.run_round()
        attested = (await net.poll()).events(Attested, round_=first)
        assert {event.account for event in attested} == {v.owner for v in net.validators}
        assert len({(event.root, event.bitmap) for event in attested}) == 1
        await net.run_rounds(2)
        await net.assert_paid(late)
        net.assert_agreement()
        await net.assert_balanced()


async def test_node__diverged__notices_in_that_round_and_finds_back(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset, caplog: pytest.LogCaptureFixture
) -> None:
    async with subnet(stepped_anvil, tmp_path, text, validators=3, hunters=1) as net:
        async for moment in net.moments():
            with net.no_chores(moment is Moment.APPLY):
                await net.work()
        broken = [net.validators[0], net.miners[0], net.hunters[0]]
        for member in broken:
            corrupt(member)
        await net.work(only=net.validators)
        with caplog.at_level(logging.ERROR, logger="node.follower"):
            wrong = await net.run_round()
        noticed = [
            each
            for each in caplog.records
            if f"diverged at the start of round {wrong}" in each.message
        ]
        assert len(noticed) == len(broken)
        net.assert_agreement()
        found = await accepted(net, wrong)
        assert net.miners[0].owner not in found
        again = await net.run_round()
        net.assert_agreement()
        assert net.miners[0].owner in await accepted(net, again)
        assert (await net.poll()).events(Slashed) == [], "being out of sync is never slashed"
        await net.assert_balanced()


async def test_miner__exits__works_to_the_end_of_the_epoch_and_gets_its_stake_back(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text) as net:
        leaver = net.miners[0]
        vault, token = net.contracts.vault, net.contracts.token
        await net.run_round()
        net.send(leaver.owner, vault.request_unbond_call(STAKE[Role.MINER]))
        last = await net.run_round()
        after = await net.run_round()
        reader = await net.poll()
        committed = {
            round_: {event.operator for event in reader.events(Committed, round_=round_)}
            for round_ in (last, after)
        }
        assert leaver.key.address in committed[last]
        assert leaver.key.address not in committed[after]
        assert net.assert_agreement(leaver, *net.validators)
        with pytest.raises(FixableRevert, match="StillLocked"):
            net.send(leaver.owner, vault.withdraw_call())
        paid = await net.contracts.rewards.claimed_of(leaver.owner)
        await net.assert_paid(*net.miners)
        net.go_to((await vault.unbonding_of(leaver.owner)).unlock_time + 1)
        net.send(leaver.owner, vault.withdraw_call())
        assert (await token.balances_of([leaver.owner]))[0] == STAKE[Role.MINER] + paid
        await net.assert_balanced()


async def test_account__excluded__registers_again_only_after_its_suspension(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(
        stepped_anvil, tmp_path, text, miners=["honest", "wrong-data"], hunters=1
    ) as net:
        cheat = net.named("wrong-data")
        await net.run_round()
        assert len((await net.poll()).events(Convicted)) == 1
        await net.run_round()
        await net.close(cheat)
        await net.run_round()
        assert await net.slot(cheat) is None, "its slot ended with the epoch"
        stake = STAKE[Role.MINER]
        token, vault = net.contracts.token, net.contracts.vault
        net.send(net.deployer, token.transfer_call(cheat.owner, stake))
        net.send(cheat.owner, vault.deposit_call(stake))
        for key in (cheat.key, key_named("fresh")):
            with pytest.raises(FixableRevert, match="Suspended"):
                net.send(cheat.owner, net.registration(cheat, key=key))
        friend = key_named("friend").address
        net.anvil.fund(friend)
        net.send(net.deployer, token.transfer_call(friend, stake))
        net.send(friend, token.approve_call(vault.address, Units(stake)))
        net.send(friend, vault.deposit_call(stake))
        suspended_until = (await net.contracts.registry.faults_of(cheat.owner)).until_epoch
        assert suspended_until > net.clock.epoch_at(net.time)
        net.go_to(net.clock.start(net.clock.first_round(Epoch(suspended_until))))
        net.send(cheat.owner, net.registration(cheat, key=cheat.key))
        await net.assert_balanced()


async def test_subnet__without_miners__goes_on_and_takes_the_first_one(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text, miners=()) as net:
        genesis = net.assert_agreement()
        await net.run_rounds(3)
        assert net.assert_agreement() == genesis
        first = await net.join(Role.MINER, "first")
        await net.open(first)
        while await net.slot(first) is None:
            await net.run_round()
        found = await accepted(net, await net.run_round())
        assert set(found) == {first.owner}
        assert net.assert_agreement() != genesis
        assert await net.contracts.rewards.claimed_of(net.validators[0].owner) == 0
        assert net.failed_transactions() == []
        await net.assert_balanced()


async def test_subnet__full__refuses_another_miner_until_one_leaves(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text, max_miners=2) as net:
        leaver, stayer = net.miners
        with pytest.raises(FixableRevert, match="SubnetFull"):
            await net.join(Role.MINER, "third")
        await net.run_round()
        net.send(leaver.owner, net.contracts.vault.request_unbond_call(STAKE[Role.MINER]))
        third = await net.join(Role.MINER, "third")
        await net.open(third)
        last = await net.run_round()
        assert set(await accepted(net, last)) == {leaver.owner, stayer.owner}
        freed = await net.slot(leaver)
        first = await net.run_round()
        assert set(await accepted(net, first)) == {stayer.owner, third.owner}
        assert await net.slot(third) == freed, "one place, two owners, an epoch each"
        await net.assert_paid(leaver, stayer)
        net.assert_agreement()
        await net.assert_balanced()


async def test_miner__waiting_for_the_outcome__reads_its_next_samples_ahead(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    read: list[bool] = []
    samples = TokenDataset.samples

    def note(dataset: TokenDataset, indices: Iterable[int]) -> NDArray[np.int64]:
        if dataset is miner.open_node.dataset:
            read.append(threading.current_thread().name.startswith("prefetch"))
        return samples(dataset, indices)

    async with subnet(stepped_anvil, tmp_path, text) as net:
        miner = net.miners[0]
        async for moment in net.moments():
            with net.asleep(*([miner] if moment is Moment.APPLY else [])):
                await net.work(2 if moment is Moment.PUBLISH else 1)
        moments = net.moments()
        assert await anext(moments) is Moment.TRAIN
        follower = miner.open_node.follower
        with patch.object(TokenDataset, "samples", note):
            with patch.object(follower, "advance", AsyncMock(return_value=None)):
                await net.work(2, mining=True)
                assert miner.head == 1
            assert read == [True], "once, and before it has the model"
            await net.work()
            assert miner.head == 2
            assert read == [True], "it trained on what it had read"
        async for moment in moments:
            await net.work(2 if moment is Moment.PUBLISH else 1)
        assert miner.owner in await accepted(net, Round(2))
