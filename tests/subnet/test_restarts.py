"""A role dies at each step of its work and comes back from its folder: it carries on, and contradicts itself nowhere."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest

from ledger.event_types import (
    Attested,
    BountyPaid,
    ChallengeCommitted,
    Committed,
    Convicted,
    MissingRevealPenalised,
    Slashed,
    WeightsCommitted,
    WeightsRevealed,
)
from node.node import Node
from node.replayer import Replayer
from protocol.ids import Epoch, Hash32, Round
from tests.chain import Anvil
from tests.subnet.kills import Killed, When, killed_at
from tests.subnet.stepped import FUNDS, Member, Moment, Subnet, subnet
from training.dataset import TokenDataset
from training.savepoint import Progress, Savepoints


@dataclass(frozen=True)
class Death:
    """Where a role dies: at a moment of the round, around a call of a part of its node."""

    moment: Moment
    part: Callable[[Node], object]
    method: str
    when: When
    if_: Callable[..., bool] = lambda *_, **__: True


def sends(label: str) -> Callable[..., bool]:
    """Whether a call of the outbox is for the function with this name."""
    return lambda call, key: call.label.endswith(label)


def signs(kind: str) -> Callable[..., bool]:
    """Whether a call of the journal is about this kind of thing."""
    return lambda what, *_: what == kind


JOURNAL: Callable[[Node], object] = lambda node: node.journal  # noqa: E731
OUTBOX: Callable[[Node], object] = lambda node: node.outbox  # noqa: E731
PUMP: Callable[[Node], object] = lambda node: node.outbox._pump  # noqa: E731
BOARD: Callable[[Node], object] = lambda node: node.board  # noqa: E731
STORE: Callable[[Node], object] = lambda node: node.store  # noqa: E731
CHECKPOINTS: Callable[[Node], object] = lambda node: node.follower._checkpoints  # noqa: E731

BEFORE, AFTER = When.BEFORE, When.AFTER
LONG = 12
"""Rounds of an epoch that no test here outlives."""
MINER_DEATHS = {
    "amid its blobs": Death(Moment.TRAIN, STORE, "put", AFTER),
    "before the journal": Death(Moment.TRAIN, JOURNAL, "sign_once", BEFORE),
    "after the journal": Death(Moment.TRAIN, JOURNAL, "sign_once", AFTER),
    "before the commit": Death(Moment.COMMIT, OUTBOX, "send", BEFORE),
    "commit signed, not sent": Death(Moment.COMMIT, PUMP, "offer", BEFORE),
    "after the commit": Death(Moment.COMMIT, OUTBOX, "send", AFTER),
    "before publishing": Death(Moment.PUBLISH, BOARD, "put", BEFORE),
    "after publishing": Death(Moment.PUBLISH, BOARD, "put", AFTER),
    "before the new model": Death(Moment.APPLY, CHECKPOINTS, "save", BEFORE),
    "after the new model": Death(Moment.APPLY, CHECKPOINTS, "save", AFTER),
}
VALIDATOR_DEATHS = {
    "amid the intake": Death(Moment.PUBLISH, BOARD, "put", AFTER),
    "before signing": Death(Moment.ATTEST, JOURNAL, "sign_once", BEFORE, signs("attestation")),
    "after signing": Death(Moment.ATTEST, JOURNAL, "sign_once", AFTER, signs("attestation")),
    "before attesting": Death(Moment.ATTEST, OUTBOX, "send", BEFORE, sends("attest")),
    "attestation signed, not sent": Death(Moment.ATTEST, PUMP, "offer", BEFORE),
    "after attesting": Death(Moment.ATTEST, OUTBOX, "send", AFTER, sends("attest")),
    "before the new model": Death(Moment.APPLY, CHECKPOINTS, "save", BEFORE),
    "after the new model": Death(Moment.APPLY, CHECKPOINTS, "save", AFTER),
    "before the scores": Death(Moment.APPLY, JOURNAL, "note", BEFORE, signs("score book")),
    "after the scores": Death(Moment.APPLY, JOURNAL, "note", AFTER, signs("score book")),
}
EPOCH_DEATHS = {
    "before fixing weights": Death(Moment.TRAIN, JOURNAL, "sign_once", BEFORE, signs("weights")),
    "after fixing weights": Death(Moment.TRAIN, JOURNAL, "sign_once", AFTER, signs("weights")),
    "before committing": Death(Moment.TRAIN, OUTBOX, "send", BEFORE, sends("commitWeights")),
    "after committing": Death(Moment.TRAIN, OUTBOX, "send", AFTER, sends("commitWeights")),
    "before revealing": Death(Moment.REVEAL, OUTBOX, "send", BEFORE, sends("revealWeights")),
    "after revealing": Death(Moment.REVEAL, OUTBOX, "send", AFTER, sends("revealWeights")),
}


async def run_round_with_death(net: Subnet, victim: Member, death: Death) -> Round:
    """Leads everybody through a round in which one dies and is back before anybody goes on."""
    round_ = net.round
    async for moment in net.moments():
        if moment is death.moment:
            node = victim.open_node
            with (
                killed_at(death.part(node), death.method, death.when, if_=death.if_),
                pytest.raises(Killed),
            ):
                await net.work(3, mining=True)
            await net.reopen(victim)
        # Once at the end, or the next round's beacon would be there and its training over before it begins.
        await net.work(1 if moment is Moment.APPLY else 2)
    return round_


def sent_by(net: Subnet, member: Member) -> list[str]:
    """Call data of every transaction that a member's operator key got into a block."""
    found = []
    for number in range(net.run_file.deploy_block, net.anvil.block_number() + 1):
        block = net.anvil.rpc("eth_getBlockByNumber", hex(number), True)
        found += [
            each["input"]
            for each in block["transactions"]
            if each["from"].lower() == member.key.address.lower()
        ]
    return found


async def assert_nothing_doubled(net: Subnet, member: Member) -> None:
    rewards = net.contracts.rewards
    again_each_epoch = {
        "0x" + call.data.hex()
        for call in (
            rewards.withdraw_bonds_call(member.key.address),
            rewards.withdraw_refunds_call(member.key.address),
        )
    }
    calls = [call for call in sent_by(net, member) if call not in again_each_epoch]
    assert len(calls) == len(set(calls)), "the same call twice"
    assert net.failed_transactions() == []
    assert (await net.poll()).events(Slashed) == []


async def test_miner__dies_once_a_round__is_accepted_in_every_round(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text, validators=1, rounds_per_epoch=LONG) as net:
        victim = net.miners[0]
        await net.run_round()
        for how, death in MINER_DEATHS.items():
            round_ = await run_round_with_death(net, victim, death)
            net.assert_agreement()
            versions = net.validators[0].open_node.exchange.versions(round_)[victim.owner]
            assert len(versions) == 1, f"{how}: one submission signed a round"
            (publication,) = versions.values()
            assert publication.signed.submission.local_from_round == round_ - 1, how
            events = (await net.poll()).events(Committed, round_=round_)
            mine = [event.digest for event in events if event.operator == victim.key.address]
            assert mine == list(versions), how
            record = net.book(net.validators[0]).record(victim.owner)
            assert (record.accepted, record.strikes) == (round_, 0), how
        await assert_nothing_doubled(net, victim)
        await net.assert_balanced()


@pytest.mark.parametrize("when", [BEFORE, AFTER])
async def test_miner__dies_amid_its_inner_steps__goes_on_and_signs_what_it_would_have(
    stepped_anvil: Anvil,
    tmp_path: Path,
    text: TokenDataset,
    when: When,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with subnet(stepped_anvil, tmp_path, text, validators=1, rounds_per_epoch=LONG) as net:
        victim, node = net.miners[0], net.validators[0].open_node
        await net.run_round()

        def third(saved: Savepoints, _: Hash32, progress: Progress) -> bool:
            return saved._folder.is_relative_to(victim.folder) and len(progress.losses) == 3

        with patch.object(Savepoints, "is_due", True), caplog.at_level(logging.INFO):
            death = Death(Moment.TRAIN, lambda _: Savepoints, "save", when, third)
            round_ = await run_round_with_death(net, victim, death)
        assert caplog.text.count("going on after") == 1
        assert f"going on after {2 if when is BEFORE else 3} steps" in caplog.text
        for member in net.miners:
            assert list((member.folder / "savepoints").iterdir()) == [], "gone once it is signed"
        (publication,) = node.exchange.versions(round_)[victim.owner].values()
        submission = publication.signed.submission
        replayer = Replayer(node)
        again = await replayer.replay(await replayer.start_of(submission))
        replayer.close()
        assert again.trace_root(trace_every=net.run_file.spec.inner.trace_every) == (
            submission.trace_root
        )
        assert again.encoded.payload.root() == submission.payload_root
        await assert_nothing_doubled(net, victim)


async def test_validator__dies_once_a_round__attests_once_and_scores_like_the_others(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(
        stepped_anvil, tmp_path, text, miners=["honest", "wrong-data"], rounds_per_epoch=LONG
    ) as net:
        victim, witness = net.validators
        await net.run_round()
        for how, death in VALIDATOR_DEATHS.items():
            round_ = await run_round_with_death(net, victim, death)
            net.assert_agreement()
            attested = (await net.poll()).events(Attested, round_=round_)
            assert {event.account for event in attested} == {victim.owner, witness.owner}, how
            assert len({(event.root, event.bitmap) for event in attested}) == 1, how
            mine, theirs = net.book(victim), net.book(witness)
            assert mine.round == theirs.round == round_, how
            for miner in net.miners:
                one, other = mine.record(miner.owner), theirs.record(miner.owner)
                assert (one.strikes, one.barred, one.accepted) == (
                    other.strikes,
                    other.barred,
                    other.accepted,
                ), f"{how}: {miner.name}"
        await assert_nothing_doubled(net, victim)
        await net.assert_balanced()


async def test_validator__dies_around_its_weights__reveals_what_it_committed(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text, rounds_per_epoch=1) as net:
        victim = net.validators[0]
        everybody = {member.owner for member in net.validators}
        await net.run_round()
        for how, death in EPOCH_DEATHS.items():
            ended = Epoch(await run_round_with_death(net, victim, death) - 1)
            reader = await net.poll()
            committed = reader.events(WeightsCommitted, epoch=ended)
            revealed = reader.events(WeightsRevealed, epoch=ended)
            assert {event.account for event in committed} == everybody, how
            assert {event.account for event in revealed} == everybody, how
        assert (await net.poll()).events(MissingRevealPenalised) == []
        await assert_nothing_doubled(net, victim)
        await net.assert_balanced()


HUNTER_DEATHS = {
    "before accusing": Death(Moment.PUBLISH, OUTBOX, "submit", BEFORE, sends("commitChallenge")),
    "accusation signed, not sent": Death(
        Moment.PUBLISH, PUMP, "offer", BEFORE, lambda key, _: key.startswith("accuse")
    ),
    "after accusing": Death(Moment.PUBLISH, OUTBOX, "submit", AFTER, sends("commitChallenge")),
    "before proving": Death(Moment.PUBLISH, OUTBOX, "submit", BEFORE, sends("proveWrongData")),
    "after proving": Death(Moment.PUBLISH, OUTBOX, "submit", AFTER, sends("proveWrongData")),
}


async def test_hunter__dies_amid_each_case__proves_each_once_and_has_its_bonds_back(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(
        stepped_anvil,
        tmp_path,
        text,
        miners=["honest", "wrong-data"],
        validators=1,
        hunters=1,
        rounds_per_epoch=LONG,
    ) as net:
        hunter = net.hunters[0]
        for how, death in HUNTER_DEATHS.items():
            round_ = await run_round_with_death(net, hunter, death)
            reader = await net.poll()
            proven = reader.events(Convicted)
            assert len(reader.events(ChallengeCommitted)) == len(proven) == round_, how
            assert await net.wealth_of(hunter) == FUNDS + sum(event.bounty for event in proven), how
        for when in (BEFORE, AFTER):
            net.anvil.mine(net.run_file.spec.chain.challenge_reveal_blocks)
            box = hunter.open_node.outbox
            with killed_at(box, "submit", when, if_=sends("payBounty")), pytest.raises(Killed):
                await net.work(only=[hunter])
            await net.reopen(hunter)
        await net.work(3, only=[hunter], mining=True)
        reader = await net.poll()
        paid = {event.round for event in reader.events(BountyPaid)}
        assert paid == {event.round for event in reader.events(Convicted)}
        calls = sent_by(net, hunter)
        assert len(calls) == len(set(calls)) == 1 + 3 * len(HUNTER_DEATHS), (
            "approve; commit, prove and be paid"
        )
        assert net.failed_transactions() == []
        await net.assert_balanced()
