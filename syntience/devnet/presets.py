"""The runs that a devnet can start: a model, its training, and windows that fit a small machine.

The windows are what the slowest part of a round needs with all processes on a few shared cores. The
constraints between them are the contracts' and the nodes': a beacon takes up to seven blocks from
its opening to its record, weights are committed after the epoch's last round was scored, and an
epoch settles before the next one can.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from protocol.errors import OperatorError
from protocol.ids import UNITS_PER_TOKEN, Hash32, Units
from protocol.merkle import depth_of
from protocol.model_spec import LlamaSpec, ModelSpec
from protocol.schedule import CONSTANT
from protocol.spec import (
    SPEC_VERSION,
    ChainParams,
    CodecSpec,
    ComputeSpec,
    DataSpec,
    InnerSpec,
    OuterSpec,
    RunSpec,
    ScoringSpec,
)

TOKEN_CAP = Units(1_000_000_000 * UNITS_PER_TOKEN)
GENESIS_ALLOCATION = Units(100_000_000 * UNITS_PER_TOKEN)
STAKE_FACTOR = 2
CODEC = CodecSpec(version=2, chunk=4096, k=64, bits=2, feedback="0.95", transform="none")
"""Everybody stakes so many minimums: a fixed penalty must not cost an honest node its slot."""
MOST_MINERS = 64
_VOID_MOST_S = 40
_BLOCK_S = 1
_MOST_TURNS = 64
"""So many turns of a game the vault counts with where it bounds how long one lasts."""
_LATEST_START_S = 2
"""From a round's start to the moment at which every miner has its beacon, and as much to commit."""
_CONTENTION = 1.3
_SPARSE = 4
_FEW_SAMPLES = 64
_MANY_SAMPLES = 192


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """The windows of a run in seconds; see `protocol.spec.ChainParams`."""

    train: int = 6
    put: int = 3
    publish: int = 4
    attest: int = 5
    apply: int = 5
    weight_commit: int = 12
    weight_reveal: int = 8
    settlement_turn: int = 4
    settlement: int = 6

    @property
    def round(self) -> int:
        """Length of a round."""
        return self.train + self.put + self.publish + self.attest + self.apply


BRISK = Windows(train=4, publish=3, apply=4, weight_commit=8, weight_reveal=6, settlement=6)
"""For a machine that has cores to spare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A choice of `--model`.

    Attributes:
        start: see `RunSpec`.
        train_core_s: what one miner's training of a round takes of one core, measured.
        windows: for a crowded machine.
        brisk: for one with few processes to a core.
    """

    name: str
    model: ModelSpec
    inner: InnerSpec
    train_core_s: float
    start: str = "seed"
    windows: Windows = Windows()
    brisk: Windows = BRISK

    @property
    def vocab_size(self) -> int:
        """Size of the tokenizer's vocabulary."""
        return self.model.vocab_size


_INNER = InnerSpec(
    steps=10,
    batch=8,
    learning_rate="0.003",
    beta1="0.9",
    beta2="0.95",
    epsilon="0.00000001",
    weight_decay="0.1",
    grad_clip="1",
    trace_every=5,
    schedule=CONSTANT,
)
DEFAULT_MODEL = LlamaSpec(
    vocab_size=1024,
    hidden_size=96,
    intermediate_size=256,
    layers=3,
    heads=4,
    kv_heads=4,
    context=128,
    rope_theta="10000",
    norm_eps="0.00001",
    tie_embeddings=True,
    init_seed=0,
)
_PRESETS: Mapping[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            name="tiny",
            model=replace(
                DEFAULT_MODEL,
                vocab_size=512,
                hidden_size=64,
                intermediate_size=160,
                layers=2,
                context=64,
            ),
            inner=_INNER,
            train_core_s=0.3,
        ),
        Preset(name="default", model=DEFAULT_MODEL, inner=_INNER, train_core_s=0.8),
        Preset(
            name="small",
            model=replace(
                DEFAULT_MODEL,
                vocab_size=2048,
                hidden_size=192,
                intermediate_size=512,
                layers=4,
                heads=6,
                kv_heads=6,
            ),
            inner=_INNER,
            train_core_s=3.0,
            windows=Windows(publish=6, attest=8, apply=6, weight_commit=24),
            brisk=Windows(weight_commit=20),
        ),
    )
}
PRESET_NAMES = tuple(_PRESETS)


def preset_named(name: str) -> Preset:
    """The preset with this name; raises `OperatorError` for an unknown one."""
    try:
        return _PRESETS[name]
    except KeyError:
        raise OperatorError(
            f"there is no model {name!r}", f"choose one of {', '.join(_PRESETS)}"
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """How many share the machine: miners that train at once, processes in all, cores."""

    miners: int
    processes: int
    cores: int

    @property
    def is_sparse(self) -> bool:
        """Whether everybody gets a turn soon enough for brisk windows."""
        return self.processes <= _SPARSE * self.cores


def fitted_windows(preset: Preset, crowd: Crowd, *, rounds_per_epoch: int) -> Windows:
    """The preset's windows, with time for all miners to train on the machine's cores.

    Longer where an epoch would else end before the weights of the one before it are revealed.
    """
    windows = preset.brisk if crowd.is_sparse else preset.windows
    training_s = math.ceil(crowd.miners * preset.train_core_s * _CONTENTION / crowd.cores)
    train = max(windows.train, training_s + 2 * _LATEST_START_S - windows.put)
    rest = windows.round - windows.train
    least_epoch = windows.weight_commit + windows.weight_reveal + 1
    train = max(train, math.ceil(least_epoch / rounds_per_epoch) - rest)
    return replace(windows, train=train)


def build_spec(
    preset: Preset,
    crowd: Crowd,
    *,
    data: DataSpec,
    genesis_root: Hash32,
    genesis_time: int,
    rounds_per_epoch: int,
) -> RunSpec:
    """The spec of a devnet's run. `preset.model` has its seed already."""
    inner = preset.inner
    windows = fitted_windows(preset, crowd, rounds_per_epoch=rounds_per_epoch)
    return RunSpec(
        version=SPEC_VERSION,
        chain=with_bounds(
            _chain_params(
                inner,
                data,
                genesis_root,
                genesis_time,
                rounds_per_epoch=rounds_per_epoch,
                windows=windows,
            )
        ),
        model=preset.model,
        start=preset.start,
        data=data,
        inner=inner,
        codec=CODEC,
        outer=OuterSpec(
            rule="sparseloco", alpha="1.25", top_g=15, newcomer_slots=3, schedule=CONSTANT
        ),
        scoring=ScoringSpec(
            beta_fraction="0.2",
            # A run is short, and its first rounds are noisy: a model that only learns which words are frequent
            # gains about the same on any data. So they count less later on, and a single win pays nobody.
            mu_gamma="0.8",
            mu_margin="1.05",
            phi="0.75",
            rand_samples=_MANY_SAMPLES if crowd.is_sparse else _FEW_SAMPLES,
            peers_per_round=MOST_MINERS,
            max_steps_behind=3,
            rating_mu="25",
            rating_sigma="8.333333333333334",
            rating_beta="7",
            rating_tau="0.1",
        ),
        compute=ComputeSpec(
            mode="native", dtype="float32", threads=1, micro_batch=inner.batch, tolerance="0.05"
        ),
        local_state="deposit",
    )


def _chain_params(
    inner: InnerSpec,
    data: DataSpec,
    genesis_root: Hash32,
    genesis_time: int,
    *,
    rounds_per_epoch: int,
    windows: Windows,
) -> ChainParams:
    """All but what `with_bounds` fills in."""
    return ChainParams(
        genesis_time=genesis_time,
        rounds_per_epoch=rounds_per_epoch,
        train_s=windows.train,
        put_s=windows.put,
        publish_s=windows.publish,
        attest_s=windows.attest,
        apply_s=windows.apply,
        weight_commit_s=windows.weight_commit,
        weight_reveal_s=windows.weight_reveal,
        settlement_turn_s=windows.settlement_turn,
        settlement_window_s=windows.settlement,
        settlement_void_s=0,
        fraud_window_epochs=4,
        unbonding_s=0,
        beacon_delay_blocks=1,
        min_miner_stake=_tokens(100),
        min_validator_stake=_tokens(1_000),
        max_miners=MOST_MINERS,
        samples_per_round=inner.steps * inner.batch,
        train_samples=data.train_samples,
        dataset_depth=depth_of(data.total_samples),
        dataset_root=data.dataset_root,
        genesis_root=genesis_root,
        steps=inner.steps,
        challenge_bond=_tokens(5),
        equivocation_slash_bps=2_000,
        equivocation_bounty=_tokens(5),
        wrong_data_slash_bps=5_000,
        bounty_bps=4_000,
        challenge_reveal_blocks=50,
        suspension_epochs=4,
        missing_reveal_penalty=_tokens(10),
        emission_per_epoch=_tokens(1_000),
        miners_bps=6_000,
        settlement_bond=_tokens(50),
        chore_tariff=Units(UNITS_PER_TOKEN // 10),
        chore_cap_per_epoch=_tokens(10),
        emission_halving_epochs=0,
        notice_epochs=0,
        pause_most_s=0,
        pause_every_s=0,
        block_s=_BLOCK_S,
        computation_slash_bps=10_000,
        native_slash_bps=2_000,
        native_bounty=_tokens(5),
        withheld_slash_bps=500,
        requests_per_submission=4,
        request_bond=_tokens(2),
        answer_tariff=Units(UNITS_PER_TOKEN // 10),
        answer_tariff_per_kib=Units(UNITS_PER_TOKEN // 10),
        answer_turn_blocks=3,
        answer_blocks=20,
        trace_every=inner.trace_every,
        codec_chunk=CODEC.chunk,
        codec_bits=CODEC.bits,
        game_bond=_tokens(10),
        move_tariff=Units(UNITS_PER_TOKEN // 10),
        clock_blocks=60,
        turn_blocks=10,
        vote_commit_blocks=25,
        vote_reveal_blocks=15,
        vote_penalty=_tokens(20),
    )


def with_bounds(chain: ChainParams, *, chosen: Collection[str] = ()) -> ChainParams:
    """The parameters with those that an epoch's length and a game's bound; `chosen`: names of some that are left alone."""
    epoch_s = chain.rounds_per_epoch * chain.round_s
    longest_game_s = chain.block_s * (
        2 * chain.clock_blocks
        + _MOST_TURNS * chain.turn_blocks
        + chain.vote_commit_blocks
        + chain.vote_reveal_blocks
    )
    bounds = {
        "settlement_void_s": min(_VOID_MOST_S, epoch_s - chain.settlement_window_s),
        "unbonding_s": (chain.fraud_window_epochs + 1) * epoch_s + longest_game_s,
        "notice_epochs": chain.fraud_window_epochs + 1,
        "pause_most_s": 10 * epoch_s,
        "pause_every_s": 100 * epoch_s,
    }
    left = {name: bound for name, bound in bounds.items() if name not in chosen}
    return replace(chain, **left)  # type: ignore[arg-type]  # seconds and epochs, which are numbers


def _tokens(amount: int) -> Units:
    return Units(amount * UNITS_PER_TOKEN)
