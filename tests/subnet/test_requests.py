"""Withheld data: a hunter that can't fetch what was vouched for asks on chain, and somebody serves or everybody pays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

from hunter.withheld import PATIENCE_ROUNDS
from ledger.contracts.requests import ItemKind
from ledger.event_types import (
    BalanceWithdrawn,
    Fined,
    ItemAnswered,
    ItemRequested,
    ItemWithheld,
)
from node.answers import Answerer
from protocol.ids import Hash32, Round
from tests.chain import Anvil
from tests.subnet.stepped import FUNDS, STAKE, Member, Subnet, subnet
from training.dataset import TokenDataset
from transport.store import FolderStore


@contextmanager
def hidden(members: list[Member], blobs: set[Hash32]) -> Iterator[None]:
    """These members' servers know nothing of these blobs meanwhile."""
    with ExitStack() as stack:
        for member in members:
            blind = _Blind(member.open_node.store, blobs)
            stack.enter_context(patch.object(member.open_node.server, "_store", blind))
        yield


class _Blind:
    """A store as a server sees it, without some blobs."""

    def __init__(self, store: FolderStore, blobs: set[Hash32]) -> None:
        self._store, self._blobs = store, blobs

    def size(self, digest: Hash32) -> int | None:
        return None if digest in self._blobs else self._store.size(digest)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


def blobs_of(net: Subnet, miner: Member, round_: Round, kind: str) -> set[Hash32]:
    """The blobs of a kind that a miner handed in."""
    versions = net.validators[0].open_node.exchange.versions(round_)[miner.owner]
    return {publication.blobs[kind].digest for publication in versions.values()}


async def withhold(net: Subnet, kind: str) -> Round:
    """A round in which everybody but the hunter gets what `honest1` handed in, and from then on nobody shows its `kind`."""
    hunter, miner = net.hunters[0], net.named("honest1")
    with net.asleep(hunter):
        round_ = await net.run_round()
    blobs = blobs_of(net, miner, round_, kind)
    with hidden([*net.validators, *net.miners], blobs):
        for _ in range(PATIENCE_ROUNDS + 1):
            await net.run_round()
        for _ in range(12):
            await net.work(mining=True)
    return round_


async def test_trace__not_served_off_chain__is_asked_for_and_shown_on_chain(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text, hunters=1) as net:
        round_ = await withhold(net, "trace")
        reader = await net.poll()
        [asked] = reader.events(ItemRequested)
        [shown] = reader.events(ItemAnswered)
        hunter = net.hunters[0]
        assert asked.requester == hunter.owner
        assert (asked.item.round, asked.item.kind) == (round_, ItemKind.TRACE)
        assert asked.item == shown.item
        chain = net.run_file.spec.chain
        fee = chain.answer_tariff + chain.answer_tariff_per_kib
        assert shown.fee == fee
        assert shown.paid in {member.owner for member in net.validators}
        withdrawn = {event.account: event.amount for event in reader.events(BalanceWithdrawn)}
        assert withdrawn == {hunter.owner: chain.request_bond - fee, shown.paid: fee}
        assert await net.contracts.token.balances_of([hunter.owner]) == [FUNDS - fee]
        assert (reader.events(ItemWithheld), reader.events(Fined)) == ([], [])
        for member in net.validators:
            assert await net.contracts.vault.active_of(member.owner) == STAKE[member.kind]
        assert net.failed_transactions() == []
        net.assert_agreement()
        await net.assert_balanced()


async def test_trace__not_served_at_all__costs_each_validator_the_same(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async def nothing(self: Answerer) -> None: ...

    async with subnet(stepped_anvil, tmp_path, text, hunters=1) as net:
        with patch.object(Answerer, "work", nothing):
            await withhold(net, "trace")
            await net.work(30, mining=True)
        reader = await net.poll()
        [asked] = reader.events(ItemRequested)
        [withheld] = reader.events(ItemWithheld)
        assert asked.item == withheld.item
        chain = net.run_file.spec.chain
        fine = chain.min_validator_stake * chain.withheld_slash_bps // 10_000
        share = fine * chain.bounty_bps // 10_000
        assert {(each.account, each.taken, each.bounty) for each in reader.events(Fined)} == {
            (member.owner, fine, share) for member in net.validators
        }
        for member in net.validators:
            stake = await net.contracts.vault.active_of(member.owner)
            assert stake == STAKE[member.kind] - fine
        hunter = net.hunters[0]
        assert await net.contracts.token.balances_of([hunter.owner]) == [FUNDS + 2 * share]
        assert net.failed_transactions() == []
        await net.assert_balanced()


async def test_answer__validator_is_killed_before_and_after_it_is_sent__is_given_once(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text, hunters=1) as net:
        await withhold_and_restart(net)
        reader = await net.poll()
        assert len(reader.events(ItemAnswered)) == 1
        assert net.failed_transactions() == []
        await net.assert_balanced()


async def withhold_and_restart(net: Subnet) -> None:
    """As `withhold`, with every validator reopened between the request and its answer."""

    async def nothing(self: Answerer) -> None: ...

    with patch.object(Answerer, "work", nothing):
        hunter, miner = net.hunters[0], net.named("honest1")
        with net.asleep(hunter):
            round_ = await net.run_round()
        blobs = blobs_of(net, miner, round_, "trace")
        with hidden([*net.validators, *net.miners], blobs):
            for _ in range(PATIENCE_ROUNDS):
                await net.run_round()
            while not (await net.poll()).events(ItemRequested):
                await net.run_round()
    await net.reopen(*net.validators)
    for _ in range(12):
        await net.work(only=net.validators, mining=True)
    await net.reopen(*net.validators)
    for _ in range(3):
        await net.work(only=net.validators, mining=True)


async def test_trace__not_served_and_nothing_left_to_spend__is_not_asked_for(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text, hunters=1) as net:
        with patch("hunter.withheld.REQUESTS_PER_EPOCH", 0):
            await withhold(net, "trace")
        reader = await net.poll()
        assert reader.events(ItemRequested) == []
        assert await net.contracts.token.balances_of([net.hunters[0].owner]) == [FUNDS]
