"""The runs that a devnet can start: every one must be a run that contracts and nodes accept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ledger.connection import Connection
from ledger.deploy import deploy
from ledger.outbox import Outbox
from ledger.runs import join
from protocol.errors import OperatorError
from protocol.merkle import depth_of
from protocol.spec import DataSpec, RunSpec
from scoring.computation import SignAverage
from scoring.rules import Rules
from syntience.devnet.presets import (
    GENESIS_ALLOCATION,
    PRESET_NAMES,
    TOKEN_CAP,
    Crowd,
    build_spec,
    fitted_windows,
    preset_named,
)
from tests.chain import Anvil
from tests.ledger.world import FAST
from tests.specs import SPEC, some_hash
from training.layout import chunk_layout
from training.parameters import shapes

CROWDED = Crowd(miners=8, processes=12, cores=2)
SPARSE = Crowd(miners=4, processes=7, cores=2)


def spec_of(
    name: str,
    *,
    crowd: Crowd = CROWDED,
    rounds_per_epoch: int = 3,
    genesis_time: int = 1_000_000,
) -> RunSpec:
    preset = preset_named(name)
    data: DataSpec = replace(
        SPEC.data,
        train_samples=1_000,
        total_samples=1_100,
        sample_tokens=preset.model.context + 1,
    )
    return build_spec(
        preset,
        crowd,
        data=data,
        genesis_root=some_hash("genesis"),
        genesis_time=genesis_time,
        rounds_per_epoch=rounds_per_epoch,
    )


def test_preset_named__unknown__says_which_there_are() -> None:
    with pytest.raises(OperatorError, match="tiny, default, small"):
        preset_named("huge")


@pytest.mark.parametrize("name", PRESET_NAMES)
@pytest.mark.parametrize("rounds_per_epoch", [1, 3])
async def test_build_spec__every_preset__is_accepted_by_the_contracts(
    anvil: Anvil, tmp_path: Path, name: str, rounds_per_epoch: int
) -> None:
    spec = spec_of(name, rounds_per_epoch=rounds_per_epoch, genesis_time=anvil.time() + 10_000)
    async with (
        await Connection.open(anvil.url) as connection,
        await Outbox.open(tmp_path / "box.db", connection, anvil.key(), settings=FAST) as outbox,
    ):
        run_file = await deploy(
            connection, outbox, spec, cap=TOKEN_CAP, genesis_allocation=GENESIS_ALLOCATION
        )
        await join(run_file, connection)


@pytest.mark.parametrize("name", PRESET_NAMES)
@pytest.mark.parametrize("crowd", [CROWDED, SPARSE])
@pytest.mark.parametrize("rounds_per_epoch", [1, 2, 3])
def test_build_spec__every_preset__leaves_time_for_what_must_happen(
    name: str, crowd: Crowd, rounds_per_epoch: int
) -> None:
    chain = spec_of(name, crowd=crowd, rounds_per_epoch=rounds_per_epoch).chain
    epoch_s = rounds_per_epoch * chain.round_s
    # From the publish deadline: seen, fixed, drawn and recorded, each a block or two after the other.
    assert chain.attest_s + chain.apply_s // 2 >= 6 + chain.beacon_delay_blocks
    assert chain.weight_commit_s + chain.weight_reveal_s < epoch_s
    assert 0 < chain.settlement_void_s <= epoch_s - chain.settlement_window_s
    assert chain.dataset_depth == depth_of(1_100)


@pytest.mark.parametrize("name", PRESET_NAMES)
def test_build_spec__every_preset__publishes_a_hundredth_of_the_model(name: str) -> None:
    spec = spec_of(name)
    size = chunk_layout(spec.model, spec.codec).canonical_bytes  # coded, it is smaller still
    parameters = 0
    for shape in shapes(spec.model).values():
        count = 1
        for extent in shape:
            count *= extent
        parameters += count
    assert 100 * size <= 4 * parameters


def test_fitted_windows__the_default_run_on_two_cores__keeps_the_round_short() -> None:
    preset = preset_named("default")
    assert fitted_windows(preset, CROWDED, rounds_per_epoch=3) == preset.windows
    assert preset.windows.round == 23


def test_fitted_windows__cores_to_spare__are_brisk() -> None:
    preset = preset_named("default")
    assert fitted_windows(preset, SPARSE, rounds_per_epoch=3) == preset.brisk
    assert fitted_windows(preset, replace(CROWDED, cores=4), rounds_per_epoch=3) == preset.brisk
    assert preset.brisk.round == 19


def test_fitted_windows__more_miners_than_the_cores_can_train__train_longer() -> None:
    preset = preset_named("default")
    few = fitted_windows(preset, CROWDED, rounds_per_epoch=3)
    many = fitted_windows(preset, replace(CROWDED, miners=32, processes=36), rounds_per_epoch=3)
    assert many.train >= few.train + 10
    assert replace(many, train=few.train) == few


def test_build_spec__the_luck_margin__pays_for_three_wins_and_not_for_one() -> None:
    rules = Rules.of(spec_of("default").scoring)
    wins = SignAverage()
    paid = []
    for _ in range(3):
        wins = wins.after(True, gamma=rules.mu_gamma)
        paid.append(wins.above_luck(gamma=rules.mu_gamma, z=rules.mu_margin) > 0)
    assert paid == [False, True, True]
