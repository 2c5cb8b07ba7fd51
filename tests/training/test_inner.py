"""A miner's round: the same bits twice, AdamW as torch's, a trace that ends in what is sent, and an unbroken local chain."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from protocol.ids import Round
from protocol.merkle import leaf_hash, merkle_root
from protocol.spec import CodecSpec, InnerSpec
from tests.specs import MODEL, SPEC
from tests.training.samples import DCT, MEAN, SMALL, round_samples, same_bits
from training.aggregate import aggregate
from training.arithmetic import Arithmetic
from training.codec import decode_payload
from training.errors import TrainingDiverged
from training.flat_model import FlatModel
from training.inner import InnerState, RoundStart, RoundWork, train_round
from training.layout import flat_layout
from training.local_state import LocalState
from training.parameters import Parameters, initial_parameters
from training.roots import local_root, state_root, zero_local_root

THETA = initial_parameters(MODEL)
LONG = replace(SPEC.inner, steps=5, trace_every=2)


def start_of(
    params: Parameters = THETA, local: LocalState | None = None, *, seed: int = 1, steps: int = 2
) -> RoundStart:
    samples = round_samples(seed)
    return RoundStart(
        round=Round(1),
        state=InnerState(params=params, local=local or LocalState.zeros(MODEL)),
        root=state_root(params),
        samples=np.concatenate([samples] * -(-steps // len(samples)))[:steps],
    )


def arithmetic(inner: InnerSpec = SPEC.inner, **compute: object) -> Arithmetic:
    changed = replace(SPEC.compute, **compute)  # type: ignore[arg-type]  # fields of any type, by name
    return Arithmetic(model=MODEL, inner=inner, codec=SMALL, compute=changed)


def work(
    params: Parameters = THETA,
    local: LocalState | None = None,
    *,
    seed: int = 1,
    inner: InnerSpec = SPEC.inner,
    codec: CodecSpec = SMALL,
    **compute: object,
) -> RoundWork:
    """A round of some steps, with fields of the compute spec changed."""
    start = start_of(params, local, seed=seed, steps=inner.steps)
    return train_round(start, replace(arithmetic(inner, **compute), codec=codec))


def same_work(a: RoundWork, b: RoundWork) -> bool:
    return (
        a.payload == b.payload
        and a.trace_leaves == b.trace_leaves
        and a.mean_loss == b.mean_loss
        and a.local_out.step == b.local_out.step
        and same_bits(a.local_out.m, b.local_out.m)
        and same_bits(a.local_out.v, b.local_out.v)
        and same_bits(a.local_out.e, b.local_out.e)
    )


def test_train_round__twice__gives_the_same_bits() -> None:
    assert same_work(work(), work())


def test_train_round__inputs__are_left_alone() -> None:
    before = {name: array.copy() for name, array in THETA.items()}
    local = work().local_out
    blob = local.to_blob()
    work(THETA, local, seed=2)
    assert same_bits(before, THETA)
    assert local.to_blob() == blob


def test_train_round__roots__are_those_of_its_parts() -> None:
    found = work()
    assert found.payload_root == found.payload.root()
    assert found.local_in_root == zero_local_root(MODEL)
    assert found.local_out_root == local_root(found.local_out)
    assert decode_payload(found.payload.to_bytes(), MODEL, SMALL) == found.payload


def test_train_round__trace__has_start_intervals_and_end() -> None:
    found = work(inner=LONG)
    leaves = found.trace_leaves
    assert len(leaves) == 1 + 3 + 1  # start, after steps 2, 4 and 5, end
    assert leaves[0] == state_root(THETA) + found.local_in_root
    assert leaves[-1] == found.payload_root + found.local_out_root
    assert found.trace_root == merkle_root([leaf_hash(leaf) for leaf in leaves])
    shorter = work(inner=replace(LONG, steps=2))
    assert (
        shorter.trace_leaves[1] == leaves[1]
    )  # the state after two steps is the state after two steps


def test_train_round__local_chain__continues_identically_from_its_blob() -> None:
    theta, kept, restored = THETA, LocalState.zeros(MODEL), LocalState.zeros(MODEL)
    for round_ in range(4):
        a, b = work(theta, kept, seed=round_), work(theta, restored, seed=round_)
        assert same_work(a, b)
        kept = a.local_out
        restored = LocalState.from_blob(b.local_out.to_blob(), MODEL)
        assert local_root(restored) == b.local_out_root
        theta = aggregate(theta, [a.payload], MEAN)
    assert kept.step == 4 * SPEC.inner.steps


@pytest.mark.parametrize("codec", [SMALL, DCT])
def test_train_round__feedback__holds_what_was_not_sent(codec: CodecSpec) -> None:
    """a = feedback * e + (start - end) = sent + e', whatever start and end were."""
    first = work(codec=codec)
    second = work(THETA, first.local_out, seed=2, codec=codec)
    no_feedback = replace(first.local_out, e=LocalState.zeros(MODEL).e)
    without = work(THETA, no_feedback, seed=2, codec=codec)
    for name, e in first.local_out.e.items():
        moved = without.payload.dense()[name] + without.local_out.e[name]
        accumulated = second.payload.dense()[name] + second.local_out.e[name]
        assert np.allclose(accumulated, 0.95 * e + moved, atol=1e-7)


def test_train_round__some_rounds__loss_falls() -> None:
    theta, local, losses = THETA, LocalState.zeros(MODEL), []
    for round_ in range(25):
        found = work(theta, local, seed=round_)
        losses.append(found.mean_loss)
        local, theta = found.local_out, aggregate(theta, [found.payload], MEAN)
    assert losses[-1] < 0.85 * losses[0]


def test_train_round__gradient__is_that_of_the_mean_loss() -> None:
    """One plain step by hand: the flat views see what autograd computes."""
    inner = replace(SPEC.inner, steps=1, learning_rate="0", weight_decay="0", grad_clip="0")
    found = work(inner=inner)
    flat = FlatModel(MODEL)
    flat.load(THETA)
    names, parameters = zip(*flat.network.named_parameters(), strict=True)
    samples = torch.from_numpy(round_samples(1)[0])
    logits = flat.network(samples[:, :-1])
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), samples[:, 1:].flatten())
    gradients = torch.autograd.grad(loss, parameters)
    for name, gradient in zip(names, gradients, strict=True):
        assert np.allclose(found.local_out.m[name], 0.1 * gradient.numpy(), rtol=1e-4, atol=1e-8)
    assert found.mean_loss == pytest.approx(loss.item(), rel=1e-6)


def test_train_round__checkpointed_activations__give_the_same_bits() -> None:
    for changes in ({}, {"dtype": "bfloat16"}, {"micro_batch": 2}):
        plain = train_round(start_of(), arithmetic(**changes))
        frugal = train_round(start_of(), arithmetic(**changes), checkpoint_activations=True)
        assert same_work(plain, frugal)


@pytest.mark.parametrize("micro_batch", [1, 2])
def test_train_round__micro_batches__come_close_to_the_whole_batch(micro_batch: int) -> None:
    whole, parts = work(), work(micro_batch=micro_batch)
    assert parts.trace_leaves[1] != whole.trace_leaves[1], "the grouping changes bits"
    assert parts.mean_loss == pytest.approx(whole.mean_loss, rel=1e-6)
    for name, m in whole.local_out.m.items():
        assert np.allclose(parts.local_out.m[name], m, rtol=1e-4, atol=1e-7)


def test_train_round__bfloat16__repeats_and_comes_close_to_fp32() -> None:
    exact, rounded = work(), work(dtype="bfloat16")
    assert same_work(rounded, work(dtype="bfloat16"))
    assert rounded.mean_loss != exact.mean_loss
    assert rounded.mean_loss == pytest.approx(exact.mean_loss, rel=1e-3)
    ours, theirs = (flat_layout(MODEL).flatten(w.local_out.m) for w in (exact, rounded))
    assert np.linalg.norm(ours - theirs) < 0.05 * np.linalg.norm(ours)
    assert all(array.dtype == np.float32 for array in rounded.local_out.m.values())


def test_train_round__state_with_undefined_loss__raises_training_diverged() -> None:
    broken = {name: array * np.float32(np.nan) for name, array in THETA.items()}
    with pytest.raises(TrainingDiverged):
        work(broken)


def test_train_round__moments_that_overflow__raise_training_diverged() -> None:
    local = LocalState.zeros(MODEL)
    huge = {name: np.full_like(array, 3e38) for name, array in local.m.items()}
    with pytest.raises(TrainingDiverged):
        work(
            THETA,
            replace(local, m=huge, v={n: array * np.float32(0.0) for n, array in huge.items()}),
        )


def test_train_round__trace_interval_of_zero__raises_value_error() -> None:
    with pytest.raises(ValueError, match="trace"):
        work(inner=replace(SPEC.inner, trace_every=0))


def test_train_round__other_processes_and_threads__give_the_same_bits() -> None:
    """What a hunter relies on: whoever recomputes a round, in any process or thread, gets its roots."""
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from training.threads import pin_threads; pin_threads(1)\n"
        "from tests.training.test_inner import work\n"
        "again = ThreadPoolExecutor(1).submit(work).result()\n"
        "print(work().trace_root.hex(), again.trace_root.hex())"
    )
    roots = set()
    for salt in ("1", "200"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": salt, "MALLOC_PERTURB_": salt, "PYTHONPATH": "."},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        )
        roots |= set(done.stdout.split())
    assert len(roots) == 1


def test_train_round__wrong_samples__raises_value_error() -> None:
    good = round_samples(1)
    for samples in (good[:1], good[:, :, :-1], good.astype(np.int32), good + MODEL.vocab_size):
        with pytest.raises(ValueError, match=r"samples|vocabulary"):
            train_round(replace(start_of(), samples=samples), arithmetic())  # type: ignore[arg-type]
