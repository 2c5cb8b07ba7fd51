"""All of it together on real text that every clone has: miners learn the licence, and a loud one can't spoil it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from protocol.ids import Round
from protocol.model_spec import ModelSpec
from protocol.spec import CodecSpec, InnerSpec
from tests.specs import MODEL, SPEC
from tests.training.samples import MEAN
from training import aggregate as rules
from training.aggregate import aggregate
from training.arithmetic import Arithmetic
from training.codec import Payload, decode_payload, encode
from training.dataset import TokenDataset
from training.evaluate import Evaluator
from training.inner import InnerState, RoundStart, train_round
from training.local_state import LocalState
from training.outer import OuterStep
from training.parameters import initial_parameters, shapes
from training.prepare import prepare_dataset
from training.roots import state_root

LICENCE = Path(__file__).parents[2] / "LICENSE"
LLAMA: ModelSpec = replace(
    MODEL, vocab_size=384, hidden_size=32, intermediate_size=80, layers=1, context=32
)
INNER: InnerSpec = replace(SPEC.inner, steps=5, batch=4, learning_rate="0.01")
ARITHMETIC = Arithmetic(model=LLAMA, inner=INNER, codec=SPEC.codec, compute=SPEC.compute)
MINERS, ROUNDS = 3, 12


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> TokenDataset:
    folder = tmp_path_factory.mktemp("licence") / "set"
    text = LICENCE.read_text(encoding="utf-8")
    prepare_dataset([text], folder, vocab_size=384, context=32, heldout_fraction=0.2)
    return TokenDataset.open(folder)


def noise(seed: int, loudness: float) -> Payload:
    rng = np.random.default_rng(seed)
    values = {
        name: (rng.standard_normal(shape) * loudness).astype(np.float32)
        for name, shape in shapes(LLAMA).items()
    }
    return encode(values, LLAMA, SPEC.codec)


def heldout_losses(
    dataset: TokenDataset,
    *,
    codec: CodecSpec = SPEC.codec,
    step: OuterStep = MEAN,
    loud: float = 0.0,
    rounds: int = ROUNDS,
) -> list[float]:
    """Held-out loss before the first and after each round; `loud` adds a peer that sends noise."""
    rng, evaluator = np.random.default_rng(0), Evaluator(LLAMA)
    theta = initial_parameters(LLAMA)
    local = [LocalState.zeros(LLAMA) for _ in range(MINERS)]
    losses = [evaluator.heldout_loss(theta, dataset)]
    for round_ in range(rounds):
        payloads: list[Payload] = []
        for miner in range(MINERS):
            chosen = rng.integers(0, dataset.train_samples, INNER.steps * INNER.batch)
            samples = dataset.samples(chosen.tolist())
            start = RoundStart(
                round=Round(round_ + 1),
                state=InnerState(params=theta, local=local[miner]),
                root=state_root(theta),
                samples=samples.reshape(INNER.steps, INNER.batch, -1),
            )
            work = train_round(start, replace(ARITHMETIC, codec=codec))
            local[miner] = work.local_out
            payloads.append(decode_payload(work.payload.to_bytes(), LLAMA, codec))
        if loud:
            payloads.append(noise(round_, loud))
        theta = aggregate(theta, payloads, step)
        losses.append(evaluator.heldout_loss(theta, dataset))
    return losses


def test_rounds__honest_miners__heldout_loss_falls(dataset: TokenDataset) -> None:
    losses = heldout_losses(dataset)
    assert losses[0] == pytest.approx(np.log(LLAMA.vocab_size), abs=0.05)
    assert losses[-1] < 0.87 * losses[0]


def test_rounds__signs_of_cosine_coefficients__heldout_loss_falls(dataset: TokenDataset) -> None:
    codec = replace(SPEC.codec, transform="dct", feedback="0.999")
    losses = heldout_losses(dataset, codec=codec, step=OuterStep(rule="demo", size=0.01))
    assert losses[-1] < 0.87 * losses[0]


def test_rounds__cosine_transform_and_mean__heldout_loss_falls(dataset: TokenDataset) -> None:
    losses = heldout_losses(dataset, codec=replace(SPEC.codec, transform="dct"))
    assert losses[-1] < 0.87 * losses[0]


def test_rounds__one_sends_noise_a_thousand_times_too_loud__loss_still_falls(
    dataset: TokenDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_rule = heldout_losses(dataset, loud=1000.0)
    assert with_rule[-1] < 0.9 * with_rule[0]


def test_rounds__the_same_noise_without_the_median_rule__ruins_the_model(
    dataset: TokenDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = dict.fromkeys(shapes(LLAMA), np.float32(1.0))
    monkeypatch.setattr(rules, "tensor_scales", lambda payloads: [one] * len(payloads))
    losses = heldout_losses(dataset, loud=1000.0, rounds=1)
    assert losses[-1] > losses[0]
