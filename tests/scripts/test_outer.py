"""Each outer rule against a slow, obvious version of itself, and the dealing of samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.ids import Round
from scripts.bench.outer import Progress, Trial, advance, begin, deal
from tests.scripts.trials import prepared, trial
from training.arithmetic import Arithmetic
from training.dataset import TokenDataset
from training.inner import InnerLoop, InnerState
from training.layout import flat_layout
from training.model import Llama, token_losses
from training.parameters import Parameters


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> TokenDataset:
    return prepared(tmp_path_factory.mktemp("outer") / "set")


def after(wanted: Trial, rounds: int, dataset: TokenDataset) -> Progress:
    progress = begin(wanted)
    for _ in range(rounds):
        progress = advance(wanted, progress, dataset)
    return progress


def pseudo_gradients(wanted: Trial, before: Progress, dataset: TokenDataset) -> list[Parameters]:
    """Of each worker in the next round: where it began less where it ended."""
    found = []
    for worker, local in enumerate(before.locals):
        loop = InnerLoop(
            InnerState(params=before.params, local=local),
            Arithmetic(
                model=wanted.model, inner=wanted.inner, codec=wanted.codec, compute=wanted.compute
            ),
            taken=wanted.inner.taken_before(Round(before.round + 1)),
        )
        for batch in deal(wanted, before.round, dataset)[:, worker]:
            loop.step(torch.from_numpy(batch))
        end = loop.state().params
        found.append({name: before.params[name] - end[name] for name in end})
    return found


def close(found: Parameters, expected: Parameters, tolerance: float) -> bool:
    return all(np.abs(found[name] - expected[name]).max() <= tolerance for name in expected)


@pytest.mark.parametrize(("alpha", "momentum"), [("1", "0"), ("0.7", "0.9")])
def test_advance__dense__is_torchs_sgd_with_nesterov_momentum(
    dataset: TokenDataset, alpha: str, momentum: str
) -> None:
    wanted = trial(dataset, rule="dense", alpha=alpha, momentum=momentum)
    progress = begin(wanted)
    theta = {name: torch.tensor(array) for name, array in progress.params.items()}
    sgd = torch.optim.SGD(
        theta.values(), lr=float(alpha), momentum=float(momentum), nesterov=momentum != "0"
    )
    for _ in range(3):
        moved = pseudo_gradients(wanted, progress, dataset)
        for name, tensor in theta.items():
            tensor.grad = torch.from_numpy(np.mean([each[name] for each in moved], axis=0))
        sgd.step()
        progress = advance(wanted, progress, dataset)
        expected = {name: tensor.numpy() for name, tensor in theta.items()}
        assert close(progress.params, expected, 1e-6)


def test_advance__synchronous__is_adamw_on_the_mean_of_the_workers_gradients(
    dataset: TokenDataset,
) -> None:
    wanted = trial(dataset, rule="synchronous")
    wanted = replace(wanted, inner=replace(wanted.inner, grad_clip="0", weight_decay="0"))
    start, inner = begin(wanted), wanted.inner
    llama = Llama(wanted.model)
    llama.load_state_dict({name: torch.tensor(array) for name, array in start.params.items()})
    adam = torch.optim.AdamW(
        llama.parameters(),
        betas=(float(inner.beta1), float(inner.beta2)),
        eps=float(inner.epsilon),
        weight_decay=0.0,
    )
    for round_ in range(2):
        for step, workers in enumerate(deal(wanted, round_, dataset), start=round_ * 2 + 1):
            adam.zero_grad()
            for batch in torch.from_numpy(workers):
                (token_losses(llama, batch).mean() / wanted.workers).backward()
            adam.param_groups[0]["lr"] = inner.learning_rate_at(step)
            adam.step()
    found = after(wanted, 2, dataset).params
    assert close(found, {n: p.detach().numpy() for n, p in llama.named_parameters()}, 1e-4)


def test_advance__payloads_that_keep_everything__are_nearly_the_dense_rule(
    dataset: TokenDataset,
) -> None:
    """With all values at 8 bits nothing is lost but rounding, and the scaling of loud workers."""
    plain = trial(dataset)
    fine = replace(plain, codec=replace(plain.codec, k=64, bits=8))
    sparse, dense = (after(each, 1, dataset) for each in (fine, replace(plain, rule="dense")))
    flat = flat_layout(plain.model).flatten
    start = flat(begin(plain).params)
    moved, expected = flat(sparse.params) - start, flat(dense.params) - start
    assert np.linalg.norm(moved - expected) < 0.1 * np.linalg.norm(expected)


def test_advance__payloads__keeps_what_was_not_sent_unless_the_feedback_is_0(
    dataset: TokenDataset,
) -> None:
    plain = trial(dataset)
    without = replace(plain, codec=replace(plain.codec, feedback="0"))
    first, other = after(plain, 1, dataset), after(without, 1, dataset)
    # In the first round there is nothing yet to remember.
    assert all(np.array_equal(first.params[name], other.params[name]) for name in first.params)
    forgotten = replace(
        other,
        locals=tuple(
            replace(local, e={name: 0 * array for name, array in local.e.items()})
            for local in other.locals
        ),
    )
    blind, seeing = (advance(without, each, dataset) for each in (forgotten, other))
    assert all(np.array_equal(blind.params[name], seeing.params[name]) for name in blind.params)
    remembering = advance(plain, first, dataset)
    assert any((remembering.params[name] != blind.params[name]).any() for name in blind.params)


@settings(max_examples=20)
@given(steps=st.integers(1, 5), workers=st.integers(1, 4), seed=st.integers(0, 9))
def test_deal__any_rounds__no_sample_twice_in_a_shuffle_and_the_same_whatever_h_is(
    dataset: TokenDataset, steps: int, workers: int, seed: int
) -> None:
    wanted = trial(dataset, workers=workers, seed=seed)
    in_one = replace(wanted, inner=replace(wanted.inner, steps=2 * steps))
    in_two = replace(wanted, inner=replace(wanted.inner, steps=steps))
    dealt = deal(in_one, 0, dataset)
    assert dealt.shape == (2 * steps, workers, 4, 17)
    halves = [deal(in_two, round_, dataset) for round_ in (0, 1)]
    assert np.array_equal(dealt, np.concatenate(halves))
    most = dataset.train_samples // (workers * 4)
    shuffle = dealt[:most].reshape(-1, 17)
    assert len(np.unique(shuffle, axis=0)) == len(shuffle)


def test_trial__rule_that_is_none__raises(dataset: TokenDataset) -> None:
    with pytest.raises(ValueError, match="'other'"):
        trial(dataset, rule="other")
