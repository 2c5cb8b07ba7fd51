"""The rows that real nodes leave of their rounds: each round once, whatever dies in between, and true."""

from __future__ import annotations

from pathlib import Path

import pytest

from node.curves import FILE
from node.node import Node
from protocol.ids import Round
from syntience.cli.app import run
from syntience.curves.homes import HomeCurves, read_report
from syntience.curves.mirror import Mirror
from tests.chain import Anvil
from tests.subnet.kills import Killed, When, killed_at
from tests.subnet.stepped import CODEC, INNER, MODEL_SPEC, Member, Moment, Subnet, subnet
from tests.syntience.curves.events import scalars_in
from training.dataset import TokenDataset
from training.parameters import parameter_count


def home_of(net: Subnet, member: Member) -> HomeCurves:
    (home,) = read_report([net.folder / member.name]).homes
    return home


async def run_round_with_deaths(net: Subnet, miner: Member, validator: Member) -> None:
    """A round in which one dies before it signs its work, and the other before its book has the round."""
    async for moment in net.moments():
        victim, method = {
            Moment.TRAIN: (miner, "sign_once"),
            Moment.APPLY: (validator, "note"),
        }.get(moment, (None, ""))
        if victim is not None:
            node: Node = victim.open_node
            with killed_at(node.journal, method, When.BEFORE), pytest.raises(Killed):
                await net.work(3, mining=True)
            await net.reopen(victim)
        await net.work(1 if moment is Moment.APPLY else 2)


async def test_curves__rounds_with_deaths__are_there_once_and_true(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    miners = ["honest", "late", "noise"]
    async with subnet(stepped_anvil, tmp_path, text, miners=miners, rounds_per_epoch=12) as net:
        honest, late, noise = net.miners
        await net.run_round()
        with net.asleep(*net.miners):
            await net.run_round()
        await run_round_with_deaths(net, honest, net.validators[0])
        await net.run_round()

        trained = home_of(net, honest).training
        assert [row.round for row in trained] == [1, 3, 4], "the second was slept through"
        assert [row.accepted for row in trained] == [True, True, True]
        for row in trained:
            versions = net.validators[1].open_node.exchange.versions(row.round)[honest.owner]
            (publication,) = versions.values()
            assert row.payload_bytes == publication.signed.submission.payload_bytes
            assert row.dense_bytes == 4 * parameter_count(MODEL_SPEC)
            assert row.tokens == INNER.steps * INNER.batch * MODEL_SPEC.context
            assert row.learning_rate == float(INNER.learning_rate)
            assert row.mean_loss == pytest.approx(sum(row.losses) / INNER.steps, rel=1e-6)
            assert 0 < row.compression_error < 1 - CODEC.k / CODEC.chunk / 2
            assert row.tokens_per_s > 0
        assert trained[-1].mean_loss < trained[0].mean_loss
        assert [row.accepted for row in home_of(net, late).training] == [False, False, False]

        for member in net.validators:
            rows = home_of(net, member).evaluation
            assert [row.round for row in rows] == [1, 2, 3, 4]
            assert [row.heldout_loss for row in rows] == [
                net.heldout_loss(Round(round_)) for round_ in (1, 2, 3, 4)
            ]
            assert [row.accepted for row in rows] == [2, 0, 2, 2]
            assert [row.selected for row in rows] == [2, 0, 2, 2]
            assert [row.void for row in rows] == ["", "no accepted miner", "", ""]
            assert {row.alpha for row in rows} == {1.0}
            assert rows[3].fetched_bytes > rows[3].accepted * 12 * parameter_count(MODEL_SPEC)
            assert rows[1].fetched_bytes == 0

        report = read_report([tmp_path])
        assert [home.name for home in report.homes] == ["honest1", "late", "v1", "v2"]
        assert (net.folder / noise.name / FILE).exists(), "it has no rows: it never trained"
        assert report.run == net.run_file.run
        assert {home.spec_hash for home in report.homes} == {net.run_file.spec.hash()}


async def test_curves__while_nodes_run__can_be_drawn_and_mirrored(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path / "net", text, validators=1) as net:
        mirrors = [
            Mirror(member.open_node.curves, tmp_path / member.name) for member in net.members
        ]
        for _ in range(2):
            await net.run_round()
            for mirror in mirrors:
                mirror.catch_up()
        picture = tmp_path / "training.png"
        assert run(["report", "training", str(net.folder), "--out", str(picture)]) == 0
        assert picture.stat().st_size > 10_000
        shown = scalars_in(tmp_path / net.miners[0].name)
        assert [step for step, _ in shown["loss/training"]] == [1, 2]
        assert [step for step, _ in shown["loss/step"]] == list(range(1, 2 * INNER.steps + 1))
        assert [value for _, value in shown["round/was_accepted"]] == [1, 1]
        heldout = scalars_in(tmp_path / net.validators[0].name)["loss/heldout"]
        assert heldout == [
            (round_, pytest.approx(net.heldout_loss(Round(round_)))) for round_ in (1, 2)
        ]
