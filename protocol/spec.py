"""The spec of a run: everything that its participants must agree on, hashed and registered on chain.

Decimals are strings, so that the canonical bytes have one form. What the contracts enforce
(`ChainParams`) is part of the spec too; a node refuses a run whose contracts say otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from protocol import canonical, record
from protocol.errors import Rejected
from protocol.hashing import keccak256
from protocol.ids import Hash32, Round, Units
from protocol.merkle import depth_of
from protocol.model_spec import LlamaSpec, ModelSpec
from protocol.schedule import ScheduleSpec

SPEC_VERSION = 1
OUTER_RULES = ("sparseloco", "demo")
TRANSFORMS = ("none", "dct")
_NAMES = ("rule", "transform")
"""Fields that are text and no decimal."""
STARTS = ("seed", "checkpoint")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainParams:
    """What the contracts know of the spec. Suffix ``_s``: seconds. Amounts: base units.

    Attributes:
        genesis_time: unix time at which round 1 starts.
        beacon_delay_blocks: a beacon's target lies so many blocks after the call that fixes it.
        samples_per_round: samples that a miner trains on in a round, steps times batch.
        dataset_depth: depth of the data set's Merkle tree.
        genesis_root: state root of the model at the start of round 1.
        bounty_bps: a hunter's share of what a computed verdict takes, at most 40 %.
        miners_bps: the miners' share of a pot; validators get the rest.
        chore_tariff: paid for each chore that everybody needs, up to `chore_cap_per_epoch`.
        emission_halving_epochs: the emission halves every so many epochs; 0 never.
        notice_epochs: epochs between the announcement of new terms and their start.
        pause_most_s, pause_every_s: bounds of a pause, and from one's start to the next one's.
        block_s: seconds that a block takes at most.
        withheld_slash_bps: of the least validator stake, for withholding what was vouched for.
        answer_turn_blocks: blocks that each validator in turn has to answer a request for data.
        codec_chunk, codec_bits: values in a full chunk of a payload, bits of a value's code.
        clock_blocks, turn_blocks: a game's clock per side, and the least time for one move.
        vote_penalty: lost by a committee member that votes against the verdict, or not at all.
    """

    genesis_time: int
    rounds_per_epoch: int
    train_s: int
    put_s: int
    publish_s: int
    attest_s: int
    apply_s: int
    weight_commit_s: int
    weight_reveal_s: int
    settlement_turn_s: int
    settlement_window_s: int
    settlement_void_s: int
    fraud_window_epochs: int
    unbonding_s: int
    beacon_delay_blocks: int
    min_miner_stake: Units
    min_validator_stake: Units
    max_miners: int
    samples_per_round: int
    train_samples: int
    dataset_depth: int
    dataset_root: Hash32
    genesis_root: Hash32
    steps: int
    challenge_bond: Units
    equivocation_slash_bps: int
    equivocation_bounty: Units
    wrong_data_slash_bps: int
    bounty_bps: int
    challenge_reveal_blocks: int
    suspension_epochs: int
    missing_reveal_penalty: Units
    emission_per_epoch: Units
    miners_bps: int
    settlement_bond: Units
    chore_tariff: Units
    chore_cap_per_epoch: Units
    emission_halving_epochs: int
    notice_epochs: int
    pause_most_s: int
    pause_every_s: int
    block_s: int
    computation_slash_bps: int
    native_slash_bps: int
    native_bounty: Units
    withheld_slash_bps: int
    requests_per_submission: int
    request_bond: Units
    answer_tariff: Units
    answer_tariff_per_kib: Units
    answer_turn_blocks: int
    answer_blocks: int
    trace_every: int
    codec_chunk: int
    codec_bits: int
    game_bond: Units
    move_tariff: Units
    clock_blocks: int
    turn_blocks: int
    vote_commit_blocks: int
    vote_reveal_blocks: int
    vote_penalty: Units

    @property
    def round_s(self) -> int:
        """Length of a round in seconds."""
        return self.train_s + self.put_s + self.publish_s + self.attest_s + self.apply_s


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSpec:
    """The data set: samples of fixed length; the first `train_samples` train, the rest is held out.

    Attributes:
        dataset_root: of the tree over the samples' tokens.
        sources_root: of the tree that tells in which document each sample begins, and where in it.
        documents_root: of the tree over the documents' digests.
        documents: how many there are.
        end_token: the token that ends each document.
        sample_tokens: tokens in a sample, the context and one more.
        token_bytes: bytes of a stored token, 2 or 4, little-endian.
    """

    name: str
    tokenizer_digest: Hash32
    dataset_root: Hash32
    sources_root: Hash32
    documents_root: Hash32
    documents: int
    end_token: int
    train_samples: int
    total_samples: int
    sample_tokens: int
    token_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerSpec:
    """The inner loop of a round: `steps` AdamW steps of `batch` samples.

    `trace_every`: a state root enters the trace after every so many steps. `grad_clip` 0 is off.
    `schedule`: of the learning rate, by inner step of the run: the first of round r is (r - 1) * steps + 1, whether or not
    the rounds before were void.
    """

    steps: int
    batch: int
    learning_rate: str
    beta1: str
    beta2: str
    epsilon: str
    weight_decay: str
    grad_clip: str
    trace_every: int
    schedule: ScheduleSpec

    def taken_before(self, round_: Round) -> int:
        """Inner steps of all rounds before this one."""
        return (round_ - 1) * self.steps

    def learning_rate_at(self, step: int) -> float:
        """The learning rate of an inner step of the run, counted from 1."""
        return self.schedule.apply(self.learning_rate, step)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodecSpec:
    """Top `k` of every `chunk` values at `bits` bits, error feedback decayed by `feedback`.

    `transform`: what the values are that are sent: ``none``, the tensor's own; ``dct``, of matrices the coefficients of
    each chunk's cosine transform (DeMo, arXiv 2411.19870).
    """

    version: int
    chunk: int
    k: int
    bits: int
    feedback: str
    transform: str

    def __post_init__(self) -> None:
        _check(0 < self.k <= self.chunk, "codec.k is not between 1 and chunk")
        _check_choice("codec.transform", self.transform, TRANSFORMS)


@dataclass(frozen=True, slots=True, kw_only=True)
class OuterSpec:
    """How the model moves: theta <- theta - alpha * direction; `newcomer_slots` of `top_g` need no weight.

    Attributes:
        rule: what the selected updates make of the direction: ``sparseloco``, their mean (arXiv 2508.15706); ``demo``, the
            sign of their sum, each coordinate for itself (arXiv 2411.19870), with an alpha that is a step of a weight.
        schedule: of alpha, by round.
    """

    rule: str
    alpha: str
    top_g: int
    newcomer_slots: int
    schedule: ScheduleSpec

    def __post_init__(self) -> None:
        _check_choice("outer.rule", self.rule, OUTER_RULES)

    def alpha_at(self, round_: Round) -> float:
        """The outer step of a round."""
        return self.schedule.apply(self.alpha, round_)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringSpec:
    """Parameters of the Gauntlet (arXiv 2505.21684).

    Attributes:
        beta_fraction: c of the evaluation step beta = c * alpha.
        mu_gamma: memory of the proof-of-computation average.
        mu_margin: z, how many deviations of a fair coin are taken off it.
        phi: factor for a failed fast check.
        rand_samples: samples of the shared draw that ranks the peers.
        peers_per_round: peers that a validator evaluates in a round.
        max_steps_behind: rounds out of sync before a peer fails the check.
    """

    beta_fraction: str
    mu_gamma: str
    mu_margin: str
    phi: str
    rand_samples: int
    peers_per_round: int
    max_steps_behind: int
    rating_mu: str
    rating_sigma: str
    rating_beta: str
    rating_tau: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeSpec:
    """How the numbers of the inner loop are computed. Losses that score are always fp32.

    Attributes:
        mode: ``native``, by torch's own kernels.
        dtype: of the operands of matrix products, ``float32`` or ``bfloat16``; everything that is kept is fp32.
        threads: of one process; the bits of some kernels depend on it.
        micro_batch: samples of one forward pass; gradients of a batch are summed in order over its micro batches.
        tolerance: how far a committee lets an inner step lie from its own recomputation, in parts of
            what the step changed (L2 norms over all tensors, of model and moments each).
    """

    mode: str
    dtype: str
    threads: int
    micro_batch: int
    tolerance: str

    def __post_init__(self) -> None:
        _check(self.mode == "native", f"unknown compute mode {self.mode!r}")
        _check(self.dtype in ("float32", "bfloat16"), f"unknown compute dtype {self.dtype!r}")
        _check(self.threads > 0, "compute.threads is not positive")
        _check(self.micro_batch > 0, "compute.micro_batch is not positive")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """The whole spec.

    Attributes:
        start: where the model of round 1 comes from: ``seed``, its own `init_seed`; ``checkpoint``, whoever has one with the
            genesis root.
        local_state: how local state stays checkable: ``deposit``.
    """

    version: int
    chain: ChainParams
    model: ModelSpec
    start: str
    data: DataSpec
    inner: InnerSpec
    codec: CodecSpec
    outer: OuterSpec
    scoring: ScoringSpec
    compute: ComputeSpec
    local_state: str

    def __post_init__(self) -> None:
        _check(
            self.version == SPEC_VERSION,
            f"spec version {self.version} is not {SPEC_VERSION}",
        )
        _check(self.start in STARTS, f"unknown start {self.start!r}")
        _check(
            self.start == "checkpoint" or isinstance(self.model, LlamaSpec),
            "only the project's own Llama starts from a seed",
        )
        _check(
            self.local_state == "deposit",
            f"unknown local state mode {self.local_state!r}",
        )
        _check(
            self.inner.steps > 0 and self.inner.batch > 0, "inner.steps or batch is not positive"
        )
        _check(
            self.inner.batch % self.compute.micro_batch == 0,
            "compute.micro_batch does not divide inner.batch",
        )
        samples = self.inner.steps * self.inner.batch
        _check(
            samples == self.chain.samples_per_round,
            "samples_per_round is not steps * batch",
        )
        _check(
            self.inner.steps == self.chain.steps,
            "steps differ between inner loop and chain",
        )
        _check(
            self.inner.trace_every == self.chain.trace_every,
            "trace_every differs between inner loop and chain",
        )
        _check(
            (self.codec.chunk, self.codec.bits) == (self.chain.codec_chunk, self.chain.codec_bits),
            "chunk or bits differ between codec and chain",
        )
        _check(self.data.train_samples == self.chain.train_samples, "train_samples differ")
        _check(self.data.dataset_root == self.chain.dataset_root, "dataset_root differs")
        _check(
            self.data.sample_tokens == self.model.context + 1,
            "sample_tokens != context + 1",
        )
        depth = depth_of(self.data.total_samples)
        _check(self.chain.dataset_depth == depth, f"dataset_depth is not {depth}")
        _check(
            self.data.train_samples >= self.chain.samples_per_round,
            "fewer training samples than a miner trains on in a round",
        )
        _check(
            0 < self.data.train_samples < self.data.total_samples,
            "no training or held-out split",
        )
        for part in (self.inner, self.codec, self.outer, self.scoring):
            _check_decimals(part)
        _check_tolerance(self.compute.tolerance)

    def to_bytes(self) -> bytes:
        """Canonical JSON."""
        return canonical.dumps(record.to_json(self))

    def hash(self) -> Hash32:
        """The spec hash that is registered on chain."""
        return Hash32(keccak256(self.to_bytes()))

    @classmethod
    def from_bytes(cls, data: bytes) -> RunSpec:
        """Strict inverse of `to_bytes`; raises `Rejected`."""
        return record.from_json(cls, canonical.loads(data))


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Rejected(f"run spec: {otherwise}")


def _check_choice(field: str, value: str, known: tuple[str, ...]) -> None:
    _check(value in known, f"{field} {value!r} is none of {', '.join(known)}")


def _check_tolerance(value: str) -> None:
    """A whole step is 1; who may differ by as much need not do it."""
    try:
        within = 0 <= Decimal(value) < 1
    except InvalidOperation:
        within = False
    _check(within, f"tolerance is not a decimal number from 0 to 1: {value!r}")


def _check_decimals(part: object) -> None:
    for name, value in record.to_json(part).items():
        if isinstance(value, str) and name not in _NAMES:
            try:
                finite = Decimal(value).is_finite()
            except InvalidOperation:
                finite = False
            _check(finite, f"{name} is not a decimal number: {value!r}")
