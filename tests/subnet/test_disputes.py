"""Games about computations, down to a committee's vote: the guilty is slashed, the innocent is not, liars pay."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from torch import Tensor

from hunter.behaviour import Behaviour
from ledger.contracts.committee import Ruling
from ledger.contracts.disputes import GameOutcome, Turn
from ledger.contracts.registry import Role
from ledger.contracts.verdicts import Fault
from ledger.event_types import (
    Convicted,
    Excluded,
    LevelEntered,
    ListPosted,
    Slashed,
    VoteClosed,
    VoteOpened,
    VoteRevealed,
    VoterFined,
)
from node.games import Disputed, Game, Part, disputed, games_of
from node.node import Node
from tests.chain import Anvil
from tests.subnet.kills import Killed, When, killed_at
from tests.subnet.stepped import FAST, FUNDS, STAKE, Member, Moment, Subnet, subnet
from tests.training.crew_member import led_crew
from training.arithmetic import Arithmetic
from training.dataset import TokenDataset
from training.inner import InnerLoop, InnerState, Loop
from training.sharded import ShardedLoop

JURY = {"validators": 3, "rogues": ("false-vote", "false-vote"), "trace_every": 3}
MOST_PASSES = 60
PATIENT = replace(FAST, finality_blocks=64, rebroadcast_s=0.1)
"""A reorganisation must not reach deeper than what an outbox holds for final."""


@dataclass(frozen=True)
class Death:
    """Where a role dies, around a call of a part of its node."""

    part: Callable[[Node], object]
    method: str
    when: When
    if_: Callable[..., bool]


JOURNAL: Callable[[Node], object] = lambda node: node.journal  # noqa: E731
OUTBOX: Callable[[Node], object] = lambda node: node.outbox  # noqa: E731


def sends(function: str) -> Callable[..., bool]:
    """Whether a call of the outbox is for a function of the games' contracts."""
    return lambda call, key: call.label in (f"Disputes.{function}", f"Committee.{function}")


def signs(kind: str) -> Callable[..., bool]:
    """Whether a call of the journal is about this kind of thing."""
    return lambda what, *_: bool(what == kind)


async def play(net: Subnet, *, only: Collection[Member] | None = None) -> list[Game]:
    """Lets everybody work until no game is open and every fine is paid; time passes where nobody moves."""
    quiet = 0
    for _ in range(MOST_PASSES):
        before = net.anvil.block_number()
        await net.work(only=only, mining=True)
        reader = await net.poll()
        games = games_of(reader)
        votes = reader.events(VoteClosed)
        if games and all(game.over for game in games):
            quiet += 1
            if quiet > 3:
                return games
        elif net.anvil.block_number() == before + 1:
            net.anvil.mine(4)
    raise AssertionError([(game.turn.name, game.last_block) for game in games] + votes)


async def stakes(net: Subnet, members: Collection[Member]) -> list[int]:
    return [await net.contracts.vault.active_of(member.owner) for member in members]


async def assert_liars_were_fined(net: Subnet, reader_ruling: Ruling) -> None:
    """Two false voters dissented and paid; nobody else did."""
    reader = await net.poll()
    liars = [member for member in net.validators if member.behaviour == "false-vote"]
    honest = [member for member in net.validators if member not in liars]
    (closed,) = reader.events(VoteClosed)
    assert closed.ruling is reader_ruling
    votes = {event.account: event.guilty for event in reader.events(VoteRevealed)}
    truth = reader_ruling is Ruling.GUILTY
    assert votes == {
        **{member.owner: truth for member in honest},
        **{member.owner: not truth for member in liars},
    }
    penalty = net.run_file.spec.chain.vote_penalty
    fines = reader.events(VoterFined)
    assert {event.account for event in fines} == {member.owner for member in liars}
    assert [(event.dissent, event.taken) for event in fines] == [(True, penalty)] * 2
    assert await stakes(net, liars) == [STAKE[Role.VALIDATOR] - penalty] * 2
    assert await stakes(net, honest) == [STAKE[Role.VALIDATOR]] * 3


async def test_game__work_that_was_not_done__is_voted_guilty_and_slashed(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    miners = ("honest", "noise")
    async with subnet(
        stepped_anvil, tmp_path, text, miners=miners, hunters=1, disputes=True, **JURY
    ) as net:
        cheat, hunter = net.named("noise"), net.named("h1")
        await net.run_round()
        (game,) = await play(net)
        assert (game.defendant, game.challenger) == (cheat.owner, hunter.owner)
        assert game.over is not None
        assert game.over.outcome is GameOutcome.CHALLENGER_WON
        reader = await net.poll()
        assert len(reader.events(ListPosted)) == 2, "the trace, then the states of one interval"
        assert len(reader.events(LevelEntered)) == 1
        (convicted,) = reader.events(Convicted)
        assert (convicted.kind, convicted.offender) == (Fault.NATIVE_COMPUTATION, cheat.owner)
        stake, spec = STAKE[Role.MINER], net.run_file.spec.chain
        assert convicted.taken == stake * spec.native_slash_bps // 10_000
        assert convicted.bounty == spec.native_bounty
        assert [event.account for event in reader.events(Excluded)] == [cheat.owner]
        assert await net.contracts.vault.active_of(cheat.owner) == stake - convicted.taken
        assert game.over.to_challenger == spec.game_bond
        assert await net.contracts.disputes.free_bond(hunter.owner) == 0
        net.anvil.mine(spec.challenge_reveal_blocks)
        await net.work(2, only=net.hunters)
        assert await net.contracts.token.balances_of([hunter.owner]) == [FUNDS + convicted.bounty]
        await assert_liars_were_fined(net, Ruling.GUILTY)
        await net.run_rounds(2)
        assert await net.slot(cheat) is None
        net.assert_agreement()
        await net.assert_balanced()


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        # It can say honest states between two leaves of its trace, but the last is what it committed to.
        ("lazy", Disputed(part=Part.STEP, step=3)),
        ("scaled2", Disputed(part=Part.ENCODE)),
    ],
)
async def test_game__work_that_was_done_in_part__comes_down_to_where_it_was_not(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset, kind: str, what: Disputed
) -> None:
    async with subnet(
        stepped_anvil, tmp_path, text, miners=("honest", kind), hunters=1, disputes=True,
        validators=1, trace_every=3,
    ) as net:  # fmt: skip
        await net.run_round()
        (game,) = await play(net)
        assert game.over is not None
        assert game.over.outcome is GameOutcome.CHALLENGER_WON
        assert game.defendant == net.named(kind).owner
        assert disputed(game.position, net.run_file.spec.inner) == what
        await net.assert_balanced()


async def test_game__an_honest_miner__is_acquitted_and_the_challenger_loses_its_bond(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    jury = {**JURY, "rogues": (*JURY["rogues"], "false-game")}
    async with subnet(stepped_anvil, tmp_path, text, miners=("honest",), **jury) as net:
        miner, liar = net.named("honest1"), net.named("false-game")
        await net.run_round()
        (game,) = await play(net)
        assert game.over is not None
        assert game.over.outcome is GameOutcome.DEFENDANT_WON
        spec = net.run_file.spec.chain
        assert (game.over.to_defendant, game.over.to_challenger) == (3 * spec.move_tariff, 0)
        assert await net.contracts.disputes.free_bond(miner.owner) == 3 * spec.move_tariff
        assert await net.contracts.token.balances_of([liar.owner]) == [FUNDS - spec.game_bond]
        reader = await net.poll()
        assert {event.account for event in reader.events(Slashed)}.isdisjoint({miner.owner})
        assert reader.events(Convicted) == []
        await assert_liars_were_fined(net, Ruling.NOT_GUILTY)
        await net.run_rounds(2)
        assert await net.slot(miner) is not None
        await net.assert_paid(miner)
        await net.assert_balanced()


class OtherProcessor(InnerLoop):
    """Rounds differently: every step ends a little beside where it would here."""

    def step(self, batch: Tensor) -> float:
        loss = super().step(batch)
        self._flat.theta.mul_(1 + 2.0**-20)
        return loss


async def play_first(net: Subnet, *, until: Turn) -> Game:
    """A first round, then its game."""
    await net.run_round()
    for _ in range(MOST_PASSES):
        await net.work(mining=True)
        games = games_of(await net.poll())
        if games and games[0].turn is until:
            return games[0]
        if games and games[0].turn is Turn.JUDGE_DECIDES:
            net.anvil.mine(4)
    raise AssertionError([(game.turn.name, game.last_block) for game in games])


@pytest.mark.parametrize("place", [None, 1], ids=["first difference", "later"])
async def test_game__another_processors_rounding__is_within_the_tolerance(
    stepped_anvil: Anvil,
    tmp_path: Path,
    text: TokenDataset,
    monkeypatch: pytest.MonkeyPatch,
    place: int | None,
) -> None:
    if place is not None:
        # From a state on that nobody here has: the defendant has to serve both sides of the step.
        monkeypatch.setattr(Behaviour, "pick", lambda *_: place)
    async with subnet(
        stepped_anvil, tmp_path, text, miners=["honest"], loops={"honest1": OtherProcessor},
        hunters=1, disputes=True, trace_every=3,
    ) as net:  # fmt: skip
        game = await play_first(net, until=Turn.OVER)
        assert game.over is not None
        assert game.over.outcome is GameOutcome.DEFENDANT_WON
        what = disputed(game.position, net.run_file.spec.inner)
        assert what == Disputed(part=Part.STEP, step=1 if place is None else 2)
        reader = await net.poll()
        assert [event.guilty for event in reader.events(VoteRevealed)] == [False, False]
        assert reader.events(Slashed) == []
        await net.assert_balanced()


async def test_game__a_crews_rounding__is_within_the_tolerance(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The defendant trained in two processes, whose sums are others, and has to train so once more to show its states."""
    monkeypatch.setattr(Behaviour, "pick", lambda *_: 1)
    with led_crew(tmp_path / "crew.log") as crew:

        def finely(start: InnerState, arithmetic: Arithmetic, **how: Any) -> Loop:
            compute = replace(arithmetic.compute, micro_batch=1)
            return ShardedLoop(start, replace(arithmetic, compute=compute), crew=crew, **how)

        async with subnet(
            stepped_anvil, tmp_path, text, miners=["honest"], loops={"honest1": finely},
            hunters=1, disputes=True, trace_every=3,
        ) as net:  # fmt: skip
            game = await play_first(net, until=Turn.OVER)
            assert game.over is not None
            assert game.over.outcome is GameOutcome.DEFENDANT_WON
            reader = await net.poll()
            assert [event.guilty for event in reader.events(VoteRevealed)] == [False, False]
            await net.run_round()
            assert len(reader.events(Slashed)) == 0
            await net.assert_balanced()


async def test_game__rounding_that_is_not_shown__is_guilty(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(
        stepped_anvil, tmp_path, text, miners=["honest"], loops={"honest1": OtherProcessor},
        hunters=1, disputes=True, trace_every=3,
    ) as net:  # fmt: skip
        with patch("miner.defender.offer_state"):
            game = await play_first(net, until=Turn.OVER)
        assert game.over is not None
        assert game.over.outcome is GameOutcome.CHALLENGER_WON
        await net.assert_balanced()


async def test_game__a_defendant_that_is_gone__loses_by_its_clock(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(
        stepped_anvil, tmp_path, text, miners=("honest", "noise"), hunters=1, disputes=True,
        validators=1, trace_every=3,
    ) as net:  # fmt: skip
        await net.run_round()
        await net.close(net.named("noise"))
        spec = net.run_file.spec.chain
        for _ in range(MOST_PASSES):
            await net.work(mining=True)
            games = games_of(await net.poll())
            if games and games[0].over is not None:
                break
            if games:
                net.anvil.mine(spec.clock_blocks // 4)
        assert games[0].over is not None
        assert games[0].over.outcome is GameOutcome.CHALLENGER_WON
        assert (await net.poll()).events(VoteOpened) == []
        assert net.failed_transactions() == []
        await net.assert_balanced()


DEATHS: dict[str, list[Death]] = {
    "h1": [
        Death(OUTBOX, "send", When.BEFORE, sends("commitChallenge")),
        Death(OUTBOX, "send", When.AFTER, sends("commitChallenge")),
        Death(OUTBOX, "send", When.BEFORE, sends("openGame")),
        Death(OUTBOX, "send", When.AFTER, sends("openGame")),
        Death(OUTBOX, "send", When.BEFORE, sends("pick")),
        Death(OUTBOX, "send", When.AFTER, sends("pick")),
        Death(OUTBOX, "send", When.AFTER, sends("decide")),
    ],
    "noise": [
        Death(OUTBOX, "send", When.BEFORE, sends("postList")),
        Death(JOURNAL, "sign_once", When.BEFORE, signs("inner states")),
        Death(JOURNAL, "sign_once", When.AFTER, signs("inner states")),
        Death(OUTBOX, "send", When.AFTER, sends("enterFresh")),
    ],
    "v1": [
        Death(JOURNAL, "sign_once", When.BEFORE, signs("vote")),
        Death(JOURNAL, "sign_once", When.AFTER, signs("vote")),
        Death(OUTBOX, "send", When.AFTER, sends("commitVote")),
        Death(OUTBOX, "send", When.BEFORE, sends("revealVote")),
        Death(OUTBOX, "send", When.AFTER, sends("revealVote")),
    ],
}
"""Where each of three dies in one game, one after the other."""


async def test_game__each_side_dies_at_every_step__ends_the_same(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(
        stepped_anvil, tmp_path, text, miners=("honest", "noise"), hunters=1, disputes=True,
        validators=1, trace_every=3,
    ) as net:  # fmt: skip
        pending = {name: list(deaths) for name, deaths in DEATHS.items()}
        async for moment in net.moments():
            for _ in range(2 if moment is Moment.PUBLISH else 1):
                await work_mortally(net, pending)
        for _ in range(MOST_PASSES):
            await work_mortally(net, pending)
            net.anvil.mine()
            games = games_of(await net.poll())
            if games and games[0].over is not None:
                break
            if games and games[0].turn is Turn.JUDGE_DECIDES:
                net.anvil.mine(2)
        assert list(pending.values()) == [[], [], []], "each died wherever it was to"
        assert games[0].over is not None
        assert games[0].over.outcome is GameOutcome.CHALLENGER_WON
        assert len(games) == len((await net.poll()).events(VoteRevealed)) == 1
        assert net.failed_transactions() == []
        await net.assert_balanced()


async def work_mortally(net: Subnet, pending: dict[str, list[Death]]) -> None:
    """Everybody works; whose next death has come dies, and is back before the next one works."""
    for member in (*net.validators, *net.miners, *net.hunters):
        deaths = pending.get(member.name)
        if not deaths:
            await net.work(only=[member])
            continue
        death, node = deaths[0], member.open_node
        try:
            with killed_at(death.part(node), death.method, death.when, if_=death.if_):
                await net.work(only=[member])
        except Killed:
            deaths.pop(0)
            await net.reopen(member)


async def test_game__the_chain_takes_moves_back__ends_the_same(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(
        stepped_anvil, tmp_path, text, miners=("honest", "noise"), hunters=1, disputes=True,
        validators=1, trace_every=3, outbox=PATIENT,
    ) as net:  # fmt: skip
        await net.run_round()
        undone = False
        for _ in range(MOST_PASSES):
            await net.work(mining=True)
            reader = await net.poll()
            games = games_of(reader)
            if games and games[0].over is not None:
                break
            if games and games[0].turn is Turn.CHALLENGER_PROVES and not undone:
                undone = True
                first = reader.events(ListPosted)[0].block
                stepped_anvil.rpc("anvil_reorg", stepped_anvil.block_number() - first + 1, [])
                await asyncio.sleep(0.5)
            if games and games[0].turn is Turn.JUDGE_DECIDES:
                net.anvil.mine(4)
        assert undone
        assert games[0].over is not None
        assert games[0].over.outcome is GameOutcome.CHALLENGER_WON
        await net.assert_balanced()
