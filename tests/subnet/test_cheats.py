"""Every way to cheat, in a real subnet: what it earns, what it loses, and what it costs the honest (nothing)."""

from __future__ import annotations

import statistics
from pathlib import Path

from hunter.audit import Finding
from ledger.contracts.verdicts import Fault
from ledger.event_types import ChallengeCommitted, Committed, Convicted, Slashed
from protocol import canonical, record
from protocol.ids import Round
from tests.chain import Anvil
from tests.subnet.stepped import FUNDS, STAKE, Member, Subnet, subnet
from training.dataset import TokenDataset

HONEST = ("honest", "honest", "honest")


async def claims(net: Subnet) -> dict[str, int]:
    """What each miner has claimed."""
    return {m.name: await net.contracts.rewards.claimed_of(m.owner) for m in net.miners}


async def assert_cheats_earn_little(net: Subnet) -> None:
    claimed = await claims(net)
    honest = [amount for name, amount in claimed.items() if name.startswith("honest")]
    # Two epochs are too short for each honest miner to be rated above doing nothing in every draw of keys.
    mean = statistics.mean(honest)
    assert mean > 0
    for name, amount in claimed.items():
        assert name.startswith("honest") or 20 * amount <= mean, claimed


async def assert_honest_lost_nothing(net: Subnet) -> None:
    members = [*net.validators, *(m for m in net.miners if m.behaviour == "honest")]
    for member in members:
        assert await net.contracts.vault.active_of(member.owner) == STAKE[member.kind], member.name


def findings(net: Subnet, hunter: Member, round_: Round) -> list[Finding]:
    """What a hunter's audits of a round found."""
    records = hunter.open_node.board.records(f"audits/{round_}")
    return [record.from_json(Finding, canonical.loads(each)) for each in records]


async def test_default_cheats__two_epochs__earn_nothing_and_two_of_them_are_slashed(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    cheats = ("copier", "noise", "equivocator", "wrong-data")
    async with subnet(stepped_anvil, tmp_path, text, miners=[*HONEST, *cheats], hunters=1) as net:
        equivocator, liar, hunter = (net.named(n) for n in ("equivocator", "wrong-data", "h1"))
        first = await net.run_round()
        for member in net.validators:
            seen = member.open_node.exchange.versions(first)[equivocator.owner]
            assert len(seen) == 2, "each was shown another one, and they told each other"
        await net.run_rounds(4)
        reader = await net.poll()

        proven = reader.events(Convicted)
        guilty = {equivocator.owner: Fault.EQUIVOCATION, liar.owner: Fault.WRONG_DATA}
        assert {event.offender: event.kind for event in proven} == guilty
        assert {(event.offender, event.round) for event in proven} == {
            (miner, round_) for miner in guilty for round_ in (1, 2)
        }, "each round is judged once, until the slot ends with the epoch"
        assert {event.account for event in reader.events(Slashed)} == set(guilty)
        spec = net.run_file.spec.chain
        stakes: dict[str, int] = {
            equivocator.owner: STAKE[equivocator.kind],
            liar.owner: STAKE[liar.kind],
        }
        for event in proven:
            small = event.kind is Fault.EQUIVOCATION
            bps = spec.equivocation_slash_bps if small else spec.wrong_data_slash_bps
            assert event.taken == stakes[event.offender] * bps // 10_000
            stakes[event.offender] -= event.taken
            bounty = event.taken * spec.bounty_bps // 10_000
            assert event.bounty == (min(bounty, spec.equivocation_bounty) if small else bounty)
        bounties = sum(event.bounty for event in proven)
        assert await net.wealth_of(hunter) == FUNDS + bounties, "all bonds are back"
        for member in (equivocator, liar):
            assert await net.slot(member) is None

        await assert_cheats_earn_little(net)
        await assert_honest_lost_nothing(net)
        net.assert_agreement()
        assert net.failed_transactions() == []
        await net.assert_balanced()


async def test_useless_cheats__two_epochs__earn_nothing_and_are_never_slashed(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    cheats = ("stale", "late", "zero")
    async with subnet(stepped_anvil, tmp_path, text, miners=[*HONEST, *cheats], hunters=1) as net:
        await net.run_rounds(5)
        reader = await net.poll()
        late = net.named("late")
        committed = {event.operator for event in reader.events(Committed)}
        assert late.key.address not in committed
        for kind in (Slashed, Convicted, ChallengeCommitted):
            assert reader.events(kind) == []
        for member in net.miners:
            assert await net.contracts.vault.active_of(member.owner) == STAKE[member.kind]
            assert await net.slot(member) is not None
        await assert_cheats_earn_little(net)
        await assert_honest_lost_nothing(net)
        net.assert_agreement()
        await net.assert_balanced()


async def test_lazy__audited__is_found_and_reported_but_not_slashed(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text, miners=["lazy"], hunters=1) as net:
        for _ in range(2):
            round_ = await net.run_round()
            found = findings(net, net.hunters[0], round_)
            assert [each.matches for each in found] == [False]
            assert found[0].miner == net.miners[0].owner
        assert (await net.poll()).events(Slashed) == [], "without a judge for it, nobody decides it"
        await net.assert_balanced()


async def test_honest__audited_every_round__is_recomputed_to_the_bit(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text, miners=["honest"], hunters=1) as net:
        for _ in range(3):
            round_ = await net.run_round()
            found = findings(net, net.hunters[0], round_)
            assert [(each.matches, each.miner) for each in found] == [(True, net.miners[0].owner)]


async def test_scaled__any_factor__gets_no_more_into_the_model_than_the_honest(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    loud = ("scaled2", "scaled5", "scaled1000")
    async with subnet(
        stepped_anvil, tmp_path, text, miners=[*HONEST, "honest", *loud], validators=1
    ) as net:
        await net.run_rounds(3)
        net.assert_agreement()
        await assert_honest_lost_nothing(net)
        assert (await net.poll()).events(Slashed) == []
        claimed = await claims(net)
        honest = [amount for name, amount in claimed.items() if name.startswith("honest")]
        assert sum(honest) > 0
        assert net.heldout_loss(Round(3)) < net.heldout_loss(Round(1)), "it learns all the same"
        await net.assert_balanced()
