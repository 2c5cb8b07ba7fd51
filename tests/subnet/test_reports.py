"""What validators of a real subnet publish: replayed to equal bits, losses and all, and the same after a kill anywhere."""

from __future__ import annotations

import asyncio
import inspect
import json
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from ledger.event_types import WeightsRevealed
from ledger.runs import write_run_file
from node.node import Node, NodeConfig
from protocol.ids import Address, Epoch, Round
from scoring.book_json import dump_book
from scoring.report import RoundReport, bits, value_of
from scoring.weights import encode_weights
from syntience.cli.app import run
from syntience.published import HomeSource, read_epoch, read_round
from syntience.score_replay import Chain
from syntience.score_session import ReplayWish, replay_wished
from tests.chain import Anvil
from tests.ports import free_port
from tests.subnet.kills import When
from tests.subnet.stepped import FAST, Member, Subnet, start_stepped_anvil, subnet
from tests.subnet.test_restarts import VALIDATOR_DEATHS, Death
from training.dataset import TokenDataset
from validator.validator import Validator

ROUNDS = 5


@dataclass(frozen=True, kw_only=True)
class Past:
    """What a run left behind: its nodes are closed."""

    run_file: Path
    home: Path
    data: Path
    honest: Address
    cheat: Address
    over_http: list[Chain]
    published: list[RoundReport]
    revealed: bytes


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory, text: TokenDataset) -> Iterator[Past]:
    folder = tmp_path_factory.mktemp("past")
    with start_stepped_anvil() as anvil:
        yield asyncio.run(live(anvil, folder, text))


async def live(anvil: Anvil, folder: Path, text: TokenDataset) -> Past:
    run_file = folder / "run.json"
    async with subnet(
        anvil, folder, text, miners=["honest", "honest", "wrong-data"], validators=1
    ) as net:
        write_run_file(run_file, net.run_file)
        await net.run_rounds(ROUNDS)
        (validator,) = net.validators
        (revealed,) = (await net.poll()).events(WeightsRevealed, epoch=Epoch(1))
        wish = ReplayWish(
            places=(validator.url,),
            rounds=tuple(map(Round, range(1, ROUNDS + 1))),
            run_file=run_file,
            losses=True,
            data=text.folder,
            allow_private=True,
        )
        source = HomeSource(validator.folder)
        return Past(
            run_file=run_file,
            home=validator.folder,
            data=text.folder,
            honest=net.named("honest1").owner,
            cheat=net.named("wrong-data").owner,
            over_http=await replay_wished(wish),
            published=[report for r in source.rounds() for report in await read_round(source, r)],
            revealed=revealed.weights,
        )


def test_replay__from_a_server__ratings_weights_and_losses_have_equal_bits(past: Past) -> None:
    (chain,) = past.over_http
    assert chain.differences == ()
    assert chain.replay.rounds == tuple(range(1, ROUNDS + 1))
    assert chain.replay.epochs == (1, 2)
    assert sum(check.compared for check in chain.losses.values()) == ROUNDS * (2 * 4 + 1)
    assert all(check.unequal == () for check in chain.losses.values())
    assert chain.without_model == ()


async def test_reports__weights__are_what_was_revealed_on_chain(past: Past) -> None:
    report = await read_epoch(HomeSource(past.home), Epoch(1))
    assert report is not None
    assert encode_weights(report.weights) == past.revealed
    assert report.round == 2
    assert report.book == past.published[1].book_after


def test_score_replay__a_home__says_what_was_equal(
    past: Past, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--run", str(past.run_file), "--losses", "--data", str(past.data)]
    assert run(["score", "replay", str(past.home), *flags, "--exact"]) == 0
    told = capsys.readouterr().out
    assert "5 of 5 recomputed to equal bits" in told
    assert "45 of round 1 to 5: all recomputed to equal bits" in told
    # From the middle on, with the book that the home has; and one report alone.
    assert run(["score", "replay", str(past.home), "--rounds", "3-5"]) == 0
    assert run(["score", "replay", str(past.home), "--digest", past.published[3].digest.hex()]) == 0
    assert "1 of 1 recomputed" in capsys.readouterr().out
    assert run(["score", "replay", str(past.home), "--digest", "00" * 32]) == 1


def test_score_replay__files__need_the_book_before_and_show_a_lie(
    past: Past, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = []
    for report in past.published:
        paths.append(tmp_path / f"{report.round}.json")
        paths[-1].write_bytes(report.to_bytes())
    names = list(map(str, paths))
    assert run(["score", "replay", *names]) == 0
    assert run(["score", "replay", *names[2:]]) == 1
    assert "--book" in capsys.readouterr().err
    lie = past.published[3]
    peer = replace(lie.peers[0], computation=replace(lie.peers[0].computation, mean=bits(0.9)))
    paths[3].write_bytes(replace(lie, peers=(peer, *lie.peers[1:])).to_bytes())
    assert run(["score", "replay", *names]) == 1
    told = capsys.readouterr().out
    assert f"round 4: {peer.miner} computation.mean: reported 0x1." in told
    assert "3 of 5 recomputed" in told


def test_score_replay__a_false_loss__is_found_with_the_model(
    past: Past, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = past.published[0]
    first = report.losses[0]
    better = replace(first, rand_after=bits(value_of(first.rand_after) - 1e-3))
    path = tmp_path / "report.json"
    path.write_bytes(replace(report, losses=(better, *report.losses[1:])).to_bytes())
    arguments = ["score", "replay", str(path), "--run", str(past.run_file)]
    assert run(arguments) == 0, "who gained a little more changes no rank"
    capsys.readouterr()
    flags = ["--losses", "--state", str(past.home), "--data", str(past.data)]
    assert run([*arguments, *flags]) == 1
    told = capsys.readouterr().out
    assert f"round 1: {first.miner} rand_after: reported" in told
    assert "tolerance 1e-06" in told


def test_score_explain__miners__are_told_their_factors(
    past: Past, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["score", "explain", "--from", str(past.home), "--epoch", "2", "--miner"]
    assert run([*asked, past.honest]) == 0
    told = capsys.readouterr().out
    assert "accepted     2 of 2 rounds" in told
    assert run([*asked, past.cheat, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["barred"] == "wrong-data"
    assert found["score"] == 0
    assert [each["fault"] for each in found["faults"]] == ["wrong-data", "wrong-data"]
    assert found["changes"][0]["factor"] == "barred"
    assert run([*asked, "0x" + "11" * 20]) == 1
    assert "knows" in capsys.readouterr().err


# -- after a kill


@contextmanager
def photographed(member: Member, album: Path, deaths: Mapping[str, Death]) -> Iterator[None]:
    """Copies a member's folder at each of these instants, the first time it comes to it; nothing else happens to it."""
    wanted: dict[tuple[object, str], dict[str, Death]] = defaultdict(dict)
    parts: dict[int, object] = {}
    for name, death in deaths.items():
        part = death.part(member.open_node)
        parts[id(part)] = part
        wanted[id(part), death.method][name] = death
    with ExitStack() as stack:
        for (part_id, method), here in wanted.items():
            real = getattr(parts[part_id], method)  # type: ignore[index]  # the keys are ids
            watched = watching(real, member.folder, album, here)
            stack.enter_context(patch.object(parts[part_id], method, watched))  # type: ignore[index]
        yield


def watching(
    real: Callable[..., Any], folder: Path, album: Path, deaths: Mapping[str, Death]
) -> Callable[..., Any]:
    """The method, with a copy of the folder before and after its effect where one of the deaths is meant."""

    def copy(when: When, *arguments: Any, **named: Any) -> None:
        for name, death in deaths.items():
            meant = death.when is when and death.if_(*arguments, **named)
            if meant and not (album / name).exists():
                shutil.copytree(folder, album / name)

    async def coroutine(*arguments: Any, **named: Any) -> Any:
        copy(When.BEFORE, *arguments, **named)
        result = await real(*arguments, **named)
        copy(When.AFTER, *arguments, **named)
        return result

    def function(*arguments: Any, **named: Any) -> Any:
        copy(When.BEFORE, *arguments, **named)
        result = real(*arguments, **named)
        copy(When.AFTER, *arguments, **named)
        return result

    return coroutine if inspect.iscoroutinefunction(real) else function


async def awoken(net: Subnet, member: Member, folder: Path, round_: Round) -> tuple[bytes, bytes]:
    """Report and book of a round, of a node that was killed where this copy of its folder was made, and starts only now."""
    config = NodeConfig(
        state_dir=folder,
        rpc_url=net.anvil.url,
        port=free_port(),
        data_dir=member.data_dir,
        allow_private=True,
        store_bytes=1 << 30,
        outbox=FAST,
    )
    async with Node.open(config, net.run_file, member.key) as node:
        validator = Validator(node)
        try:
            await validator.prepare()
            while validator._scorer.book.round < round_:
                for step in await node.tick():
                    await validator._enter(step)
            (report,) = await read_round(HomeSource(folder), round_)
            return report.to_bytes(), dump_book(validator._scorer.book)
        finally:
            validator.close()


async def test_report__killed_anywhere_and_back_after_the_round__is_the_undisturbed_one(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    album = tmp_path / "album"
    async with subnet(
        stepped_anvil,
        tmp_path,
        text,
        miners=["honest", "wrong-data", "zero"],
        rounds_per_epoch=12,
    ) as net:
        victim = net.validators[0]
        await net.run_rounds(2)
        round_ = net.round
        with photographed(victim, album, VALIDATOR_DEATHS):
            await net.run_round()
        (undisturbed,) = await read_round(HomeSource(victim.folder), round_)
        book = dump_book(net.book(victim))
        assert len(undisturbed.faults) == 1
        assert len(undisturbed.losses) == 2
        copies = sorted(album.iterdir())
        assert {copy.name for copy in copies} == set(VALIDATOR_DEATHS)
        for copy in copies:
            report, its_book = await awoken(net, victim, copy, round_)
            assert report == undisturbed.to_bytes(), copy.name
            assert its_book == book, copy.name
