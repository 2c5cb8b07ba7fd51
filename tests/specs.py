"""A small, valid run spec for tests; each test replaces what it is about."""

from __future__ import annotations

from protocol.hashing import keccak256
from protocol.ids import UNITS_PER_TOKEN, Hash32, Units
from protocol.model_spec import LlamaSpec
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


def tokens(amount: float) -> Units:
    """An amount in base units."""
    return Units(int(amount * UNITS_PER_TOKEN))


def some_hash(label: str) -> Hash32:
    """A readable way to make distinct 32-byte values."""
    return Hash32(keccak256(label.encode()))


CHAIN = ChainParams(
    genesis_time=1_000_000,
    rounds_per_epoch=3,
    train_s=8,
    put_s=4,
    publish_s=4,
    attest_s=4,
    apply_s=4,
    weight_commit_s=12,
    weight_reveal_s=6,
    settlement_turn_s=4,
    settlement_window_s=10,
    settlement_void_s=60,
    fraud_window_epochs=4,
    unbonding_s=600_000,
    beacon_delay_blocks=1,
    min_miner_stake=tokens(100),
    min_validator_stake=tokens(1000),
    max_miners=64,
    samples_per_round=8,
    train_samples=100,
    dataset_depth=7,
    dataset_root=some_hash("dataset"),
    genesis_root=some_hash("genesis"),
    steps=2,
    challenge_bond=tokens(5),
    equivocation_slash_bps=2000,
    equivocation_bounty=tokens(1),
    wrong_data_slash_bps=5000,
    bounty_bps=4000,
    challenge_reveal_blocks=50,
    suspension_epochs=4,
    missing_reveal_penalty=tokens(10),
    emission_per_epoch=tokens(1000),
    miners_bps=6000,
    settlement_bond=tokens(50),
    chore_tariff=tokens(0.1),
    chore_cap_per_epoch=tokens(10),
    emission_halving_epochs=0,
    notice_epochs=5,
    pause_most_s=600,
    pause_every_s=6000,
    block_s=1,
    computation_slash_bps=10_000,
    native_slash_bps=2_000,
    native_bounty=tokens(5),
    withheld_slash_bps=500,
    requests_per_submission=4,
    request_bond=tokens(2),
    answer_tariff=tokens(0.1),
    answer_tariff_per_kib=tokens(0.1),
    answer_turn_blocks=3,
    answer_blocks=20,
    trace_every=1,
    codec_chunk=4096,
    codec_bits=2,
    game_bond=tokens(30),
    move_tariff=tokens(1),
    clock_blocks=60,
    turn_blocks=10,
    vote_commit_blocks=25,
    vote_reveal_blocks=15,
    vote_penalty=tokens(20),
)

MODEL = LlamaSpec(
    vocab_size=64,
    hidden_size=16,
    intermediate_size=40,
    layers=2,
    heads=4,
    kv_heads=2,
    context=16,
    rope_theta="10000",
    norm_eps="0.00001",
    tie_embeddings=True,
    init_seed=1,
)

SPEC = RunSpec(
    version=SPEC_VERSION,
    chain=CHAIN,
    model=MODEL,
    start="seed",
    data=DataSpec(
        name="test",
        tokenizer_digest=some_hash("tokenizer"),
        dataset_root=CHAIN.dataset_root,
        sources_root=some_hash("sources"),
        documents_root=some_hash("documents"),
        documents=30,
        end_token=0,
        train_samples=100,
        total_samples=120,
        sample_tokens=17,
        token_bytes=2,
    ),
    inner=InnerSpec(
        steps=2,
        batch=4,
        learning_rate="0.003",
        beta1="0.9",
        beta2="0.95",
        epsilon="0.00000001",
        weight_decay="0.1",
        grad_clip="1",
        trace_every=1,
        schedule=CONSTANT,
    ),
    codec=CodecSpec(version=2, chunk=4096, k=64, bits=2, feedback="0.95", transform="none"),
    outer=OuterSpec(rule="sparseloco", alpha="1", top_g=15, newcomer_slots=3, schedule=CONSTANT),
    scoring=ScoringSpec(
        beta_fraction="0.2",
        mu_gamma="0.95",
        mu_margin="1",
        phi="0.75",
        rand_samples=16,
        peers_per_round=8,
        max_steps_behind=3,
        rating_mu="25",
        rating_sigma="8.333333333333334",
        rating_beta="7",
        rating_tau="0.1",
    ),
    compute=ComputeSpec(mode="native", dtype="float32", threads=1, micro_batch=4, tolerance="0.05"),
    local_state="deposit",
)
