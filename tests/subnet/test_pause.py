"""A pause stops every window, and nobody sends anything in it; then each goes on for as long as it had left."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ledger.event_types import Attested, Claimed, Committed, PauseEnded, Slashed
from node.errors import OtherTerms
from protocol.ids import Epoch
from protocol.terms import terms_of
from tests.chain import Anvil
from tests.subnet.stepped import Moment, Subnet, subnet
from training.dataset import TokenDataset


def sent(net: Subnet) -> int:
    """Transactions of all operators and hunters."""
    return sum(net.anvil.nonce(member.key.address) for member in net.members)


async def sit_out(net: Subnet, seconds: int) -> None:
    """A pause from here on, in which everybody may work and nobody sends anything."""
    net.pause()
    start, before = net.time, sent(net)
    for _ in range(3):
        net.anvil.advance_to(net.anvil.time() + seconds // 3)
        await net.work(2)
    for member in net.members:
        chain = member.open_node.chain
        assert chain.paused
        assert chain.time == start, "the run's clock stands still"
        assert chain.block_time == net.anvil.time()
    assert sent(net) == before
    net.resume()
    assert net.time == start


@pytest.mark.parametrize("moment", [Moment.COMMIT, Moment.ATTEST])
async def test_pause__longer_than_a_round_in_the_middle_of_one__the_round_completes(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset, moment: Moment
) -> None:
    async with subnet(stepped_anvil, tmp_path, text, hunters=1, pause_most_s=2_000) as net:
        await net.run_round()
        before, broken = net.assert_agreement(), net.round
        async for now in net.moments():
            if now is moment:
                await sit_out(net, 3 * net.run_file.spec.chain.round_s)
            await net.work(2 if now is Moment.PUBLISH else 1)
        reader = await net.poll()
        assert len(reader.events(Committed, round_=broken)) == 2
        assert len(reader.events(Attested, round_=broken)) == 2
        assert await net.final_root(broken) == before
        assert net.assert_agreement() != before, "the model moved"
        for _ in range(3):
            await net.run_round()
        assert {event.epoch for event in (await net.poll()).events(Claimed)} == {1, 2}
        assert reader.events(Slashed) == []
        assert net.failed_transactions() == []
        await net.assert_paid(*net.miners)
        await net.assert_balanced()


async def test_pause__nobody_ends_it__a_validator_does_when_it_may(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text) as net:
        most_s = net.run_file.spec.chain.pause_most_s
        async for now in net.moments():
            if now is Moment.TRAIN:
                net.pause()
                started = net.anvil.time()
                net.anvil.advance_to(started + most_s)
                await net.work()
                assert (await net.poll()).events(PauseEnded) == []
                while not (await net.poll()).events(PauseEnded):
                    assert net.anvil.time() < started + most_s + 10
                    await net.work(only=net.validators)
                    net.anvil.mine()
                net.paused_s = (await net.poll()).events(PauseEnded)[0].total_s
                assert net.paused_s > most_s
            await net.work()
        before = net.run_file.spec.chain.genesis_root
        assert net.assert_agreement() != before
        assert net.failed_transactions() == []
        await net.assert_balanced()


async def test_pause__comes_before_a_commit_in_its_block__the_commit_is_sent_again(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text) as net:
        first, caught = net.round, net.miners[0]
        async for now in net.moments():
            if now is Moment.COMMIT:
                net.anvil.rpc("evm_setAutomine", False)
                await caught.miner().step()
                call = net.contracts.epochs.pause_call()
                net.anvil.rpc(
                    "eth_sendTransaction",
                    {
                        "from": net.governor,
                        "to": call.to,
                        "data": "0x" + call.data.hex(),
                        "gas": hex(200_000),
                        "maxFeePerGas": hex(10**12),
                        "maxPriorityFeePerGas": hex(10**12),
                    },
                )
                net.anvil.mine()
                net.note_paused()
                net.anvil.rpc("evm_setAutomine", True)
                assert len(net.failed_transactions()) == 1
                # The outbox finds out in a pass of its own.
                assert caught.node is not None
                async with asyncio.timeout(10):
                    while caught.node.outbox.waiting():
                        await asyncio.sleep(0.02)
                net.anvil.advance_to(net.anvil.time() + 500)
                await net.work()
                net.resume()
            await net.work(2 if now is Moment.PUBLISH else 1)
        committed = {event.operator for event in (await net.poll()).events(Committed, round_=first)}
        assert committed == {member.key.address for member in net.miners}
        assert len(net.failed_transactions()) == 1
        net.assert_agreement()
        await net.assert_balanced()


async def test_terms__another_spec_applies__the_nodes_stop_before_they_sign_anything(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset, caplog: pytest.LogCaptureFixture
) -> None:
    async with subnet(stepped_anvil, tmp_path, text, rounds_per_epoch=1) as net:
        spec = net.run_file.spec
        first = Epoch(spec.chain.notice_epochs + 1)
        [present] = await net.contracts.epochs.schedule()
        changed = terms_of(spec, from_epoch=first, judge=present.judge)
        changed = type(changed)(
            **{
                name: getattr(changed, name)
                for name in changed.__dataclass_fields__
                if name != "spec_hash"
            },
            spec_hash=spec.chain.genesis_root,
        )
        await net.run_round()
        net.send(net.governor, net.contracts.epochs.announce_terms_call(changed))
        while net.clock.epoch_of(net.round) < first - 1:
            await net.run_round()
        assert "the next epoch" not in caplog.text
        await net.run_round()
        assert caplog.text.count("that is the next epoch") == len(net.members)
        net.go_to(net.clock.start(net.round))
        before = sent(net)
        for member in net.members:
            assert member.role is not None
            with pytest.raises(OtherTerms, match="new run file"):
                await member.role.step()
        assert sent(net) == before
