"""A hunter in a real subnet: what it proves, whom it spares, how it is paid, and what a restart changes (nothing)."""

from __future__ import annotations

from pathlib import Path

from ledger.contracts.verdicts import Fault
from ledger.event_types import (
    BondWithdrawn,
    BountyPaid,
    ChallengeCommitted,
    Convicted,
    FaultProven,
    Slashed,
)
from protocol.ids import Round
from tests.chain import Anvil
from tests.subnet.stepped import FUNDS, STAKE, Moment, Subnet, subnet
from training.dataset import TokenDataset

EPOCH = 3
"""Rounds: in the second, local state is carried over for the first time, in the third what the second one left."""


async def proven(net: Subnet) -> dict[tuple[str, int], Fault]:
    """Whom a fault was proven against, by name and round."""
    names = {member.owner: member.name for member in net.members}
    reader = await net.poll()
    return {(names[event.miner], event.round): event.kind for event in reader.events(FaultProven)}


async def test_hunter__wrong_spec_and_local_state__are_convicted_and_nobody_else(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    miners = ["honest", "honest", "wrong-spec", "local-out-of-line"]
    async with subnet(
        stepped_anvil, tmp_path, text, miners=miners, hunters=1, rounds_per_epoch=EPOCH
    ) as net:
        hunter = net.hunters[0]
        await net.run_rounds(EPOCH + 1)
        assert await proven(net) == {
            ("wrong-spec", 1): Fault.WRONG_SPEC,
            ("wrong-spec", 2): Fault.WRONG_SPEC,
            ("wrong-spec", 3): Fault.WRONG_SPEC,
            ("local-out-of-line", 2): Fault.LOCAL_STATE,
            ("local-out-of-line", 3): Fault.LOCAL_STATE,
        }
        reader = await net.poll()
        guilty = {net.named(name).owner for name in ("wrong-spec", "local-out-of-line")}
        assert {event.account for event in reader.events(Slashed)} == guilty
        assert {event.offender for event in reader.events(Convicted)} == guilty
        for member in net.miners:
            if member.owner in guilty:
                assert await net.slot(member) is None
            else:
                stake = await net.contracts.vault.active_of(member.owner)
                assert stake == STAKE[member.kind], member.name

        for _ in range(net.run_file.spec.chain.challenge_reveal_blocks):
            stepped_anvil.mine()
        await net.work(2, only=[hunter])
        reader = await net.poll()
        bounties = sum(event.bounty for event in reader.events(Convicted))
        assert sum(event.amount for event in reader.events(BountyPaid)) == bounties > 0
        assert await net.contracts.verdicts.bounties_held() == 0
        await hunter.hunter()._bounties.withdraw_bonds()
        reader = await net.poll()
        assert len(reader.events(BondWithdrawn)) == 1
        assert await net.contracts.faults.bonds_held() == 0
        assert await net.contracts.token.balance_of(hunter.owner) == FUNDS + bounties
        net.assert_agreement()
        assert net.failed_transactions() == []
        await net.assert_balanced()


async def test_hunter__closed_while_it_matters__still_proves_the_local_state(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    miners = ["honest", "local-out-of-line"]
    async with subnet(
        stepped_anvil, tmp_path, text, miners=miners, hunters=1, rounds_per_epoch=EPOCH
    ) as net:
        hunter = net.hunters[0]
        await net.run_round()
        await net.reopen(hunter)
        killed = 0
        async for moment in net.moments():
            for _ in range(2 if moment is Moment.PUBLISH else 1):
                await net.work()
                reader = await net.poll()
                if reader.events(ChallengeCommitted) and not reader.events(FaultProven):
                    await net.reopen(hunter)
                    killed += 1
        assert killed
        assert await proven(net) == {("local-out-of-line", Round(2)): Fault.LOCAL_STATE}
        reader = await net.poll()
        assert len(reader.events(ChallengeCommitted)) == 1, "it went on with the one before"
