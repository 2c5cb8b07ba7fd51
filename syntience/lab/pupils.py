"""The peers of the training world: the miners' own cheats, and those that only a laboratory needs.

All are `miner.behaviour.Behaviour`s, which turn a start into signed-to-be work. What some of them
know is more than anybody can in a real run: they are shown what honest peers hand in this round,
before anybody published it. A rule that holds against them holds against those who guess.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import gcd

import numpy as np
from numpy.typing import NDArray

from miner.behaviour import Behaviour
from miner.cheats import CHEATS, Copier, behaviour_named, with_true_ends, without_training
from miner.prefetch import Prefetch
from miner.work import Start, Trained, Work, Workbench
from protocol.beacon import Draw, seed_from
from protocol.errors import OperatorError
from protocol.ids import Round
from syntience.lab.scenario import Group
from training.codec import Payload, encode_flat
from training.dataset import TokenDataset


class Pupil(Behaviour):
    """A behaviour of the laboratory.

    Attributes:
        sees_round: it works last, and `start.others` are the honest payloads of this very round.
    """

    sees_round = False


class Paced(Pupil):
    """Honest at its own pace: each step's batch is a part of the assigned one, or a larger one."""

    name = "honest"

    def __init__(self, strength: float = 1.0) -> None:
        self._strength = strength

    def work(self, bench: Workbench, start: Start) -> Sequence[Work]:
        """Signs what was assigned, whatever it managed."""
        return [bench.submit(start, self.trained(bench, start), start.assigned)]

    def trained(self, bench: Workbench, start: Start) -> Trained:
        """The training alone. Beyond the assigned samples it takes others of its own choice."""
        inner = bench.spec.inner
        batch = max(1, round(inner.batch * self._strength))
        draw = Draw(seed_from(start.beacon, "more", bench.miner))
        samples: list[int] = []
        for first in range(0, len(start.assigned), inner.batch):
            assigned = start.assigned[first : first + inner.batch]
            samples += assigned[:batch]
            for _ in range(batch - inner.batch):
                samples.append(draw.below(bench.spec.data.train_samples))
        return bench_of(bench, batch=batch).train(start, samples)


class OverFitter(Pupil):
    """Trains three times on the data that it is assigned."""

    name = "over-fitter"

    def work(self, bench: Workbench, start: Start) -> Sequence[Work]:
        """Three passes."""
        long = bench_of(bench, steps=3 * bench.spec.inner.steps)
        return [bench.submit(start, long.train(start, 3 * start.assigned), start.assigned)]


class Elsewhere(Pupil):
    """Trains honestly, on one and the same few samples in every round, and signs the assigned ones."""

    name = "lazy-elsewhere"

    def work(self, bench: Workbench, start: Start) -> Sequence[Work]:
        """Samples that it has at hand."""
        chosen = [index % bench.spec.inner.batch for index in range(len(start.assigned))]
        return [bench.submit(start, bench.train(start, chosen), start.assigned)]


class Poisoner(Pupil):
    """Trains on its data with the labels flipped: each token's successor is another word."""

    name = "poisoner"

    def work(self, bench: Workbench, start: Start) -> Sequence[Work]:
        """Honest training on a mirror of the vocabulary."""
        text = _Flipped(bench.dataset, bench.spec.model.vocab_size)
        flipped = replace(bench, prefetch=Prefetch(text))
        return [bench.submit(start, flipped.train(start, start.assigned), start.assigned)]


class _Flipped(TokenDataset):
    """A data set whose odd places hold word V - 1 - w instead of w."""

    def __init__(self, dataset: TokenDataset, vocab_size: int) -> None:
        self._inner, self._last = dataset, vocab_size - 1

    def samples(self, indices: Iterable[int]) -> NDArray[np.int64]:
        """The samples, flipped."""
        tokens = self._inner.samples(indices).copy()
        tokens[:, 1::2] = self._last - tokens[:, 1::2]
        return tokens


class SignFlip(Paced):
    """Does honest work and hands in its opposite."""

    name = "sign-flip"

    def work(self, bench: Workbench, start: Start) -> Sequence[Work]:
        """The honest payload with every sign turned."""
        trained = self.trained(bench, start)
        payload = trained.payload
        turned = replace(payload, codes=np.where(_zeros(payload), payload.codes, payload.codes ^ 1))
        return [_changed(bench, start, trained, turned)]


class Recomputer(Copier):
    """Copies a payload of this round: whoever is fast enough can recompute it and commit first."""

    name = "recomputer"
    sees_round = True


class NearCopier(Pupil):
    """Copies a payload of this round and hides it: rescaled, with noise, encoded again."""

    name = "near-copier"
    sees_round = True

    def __init__(self, noise: float = 0.3) -> None:
        self._noise = noise

    def work(self, bench: Workbench, start: Start) -> Sequence[Work]:
        """Noise in every coordinate, of so much of the copied values' deviation."""
        stolen = start.others[0].dense_flat()
        size = np.float32(self._noise * float(np.std(stolen[stolen != 0])))
        noise = _generator(bench, start).standard_normal(stolen.size, np.float32)
        return [_made(bench, start, np.float32(0.9) * stolen + size * noise)]


class Merger(Pupil):
    """Hands in the mean of two honest payloads of this round."""

    name = "merger"
    sees_round = True

    def work(self, bench: Workbench, start: Start) -> Sequence[Work]:
        """Half of each."""
        first, second = (payload.dense_flat() for payload in start.others[:2])
        return [_made(bench, start, (first + second) / np.float32(2))]


class Alie(Pupil):
    """A little is enough (Baruch et al., 2019): the honest mean, less z deviations in every coordinate."""

    name = "alie"
    sees_round = True

    def __init__(self, z: float = 1.5) -> None:
        self._z = z

    def work(self, bench: Workbench, start: Start) -> Sequence[Work]:
        """Within the spread of the honest, and against their direction."""
        updates = np.stack([payload.dense_flat() for payload in start.others])
        mean, spread = updates.mean(axis=0), updates.std(axis=0)
        return [_made(bench, start, mean - np.float32(self._z) * np.sign(mean) * spread)]


class Ipm(Pupil):
    """Inner-product manipulation (Xie et al., 2020): minus epsilon times the honest mean."""

    name = "ipm"
    sees_round = True

    def __init__(self, epsilon: float = 0.5) -> None:
        self._epsilon = epsilon

    def work(self, bench: Workbench, start: Start) -> Sequence[Work]:
        """The honest mean, the other way."""
        mean = np.mean([payload.dense_flat() for payload in start.others], axis=0)
        return [_made(bench, start, np.float32(-self._epsilon) * mean)]


class Behind(Paced):
    """Honest work on the model of some rounds ago, signed as if it were today's."""

    name = "behind"

    def __init__(self, rounds: int = 5) -> None:
        super().__init__()
        self._rounds, self._past = rounds, dict[Round, Start]()

    def work(self, bench: Workbench, start: Start) -> Sequence[Work]:
        """The gradient is old, the names in the submission are right."""
        self._past[start.round] = start
        old = self._past.get(Round(start.round - self._rounds), start)
        trained = self.trained(bench, replace(start, params=old.params))
        return [bench.submit(start, with_true_ends(start, trained), start.assigned)]


class OnOff(Paced):
    """Honest up to its turn, then random values."""

    name = "on-off"

    def __init__(self, turn: int) -> None:
        super().__init__()
        self._turn, self._after = turn, behaviour_named("noise")

    def work(self, bench: Workbench, start: Start) -> Sequence[Work]:
        """By the round."""
        if start.round > self._turn:
            return self._after.work(bench, start)
        return super().work(bench, start)


_OWN: Mapping[str, Callable[[Group, int], Behaviour]] = {
    "honest": lambda group, rounds: Paced(group.strength),
    "over-fitter": lambda group, rounds: OverFitter(),
    "lazy-elsewhere": lambda group, rounds: Elsewhere(),
    "poisoner": lambda group, rounds: Poisoner(),
    "sign-flip": lambda group, rounds: SignFlip(),
    "recomputer": lambda group, rounds: Recomputer(),
    "near-copier": lambda group, rounds: NearCopier(group.options.get("noise", 0.3)),
    "merger": lambda group, rounds: Merger(),
    "alie": lambda group, rounds: Alie(group.options.get("z", 1.5)),
    "ipm": lambda group, rounds: Ipm(group.options.get("epsilon", 0.5)),
    "behind": lambda group, rounds: Behind(int(group.options.get("rounds", 5))),
    "on-off": lambda group, rounds: OnOff(int(group.options.get("turn", 0.25) * rounds)),
}


def pupil(group: Group, rounds: int) -> Behaviour:
    """One peer of a group in a run of so many rounds; raises `OperatorError` for an unknown kind."""
    own = _OWN.get(group.kind)
    if own is not None:
        return own(group, rounds)
    if group.kind in CHEATS:
        return behaviour_named(group.kind)
    raise OperatorError(
        f"no peer {group.kind!r} trains", f"choose one of {', '.join((*_OWN, *CHEATS))}"
    )


def bench_of(bench: Workbench, *, steps: int | None = None, batch: int | None = None) -> Workbench:
    """The workbench of a peer that takes another number of steps, or other batches."""
    inner = bench.spec.inner
    inner = replace(inner, steps=steps or inner.steps, batch=batch or inner.batch)
    chain = replace(
        bench.spec.chain, steps=inner.steps, samples_per_round=inner.steps * inner.batch
    )
    micro_batch = gcd(bench.spec.compute.micro_batch, inner.batch)
    compute = replace(bench.spec.compute, micro_batch=micro_batch)
    spec = replace(bench.spec, inner=inner, chain=chain, compute=compute)
    return replace(bench, spec=spec)


def _made(bench: Workbench, start: Start, flat: NDArray[np.float32]) -> Work:
    payload = encode_flat(flat, bench.spec.model, bench.spec.codec)
    return bench.submit(start, without_training(bench, start, payload), start.assigned)


def _changed(bench: Workbench, start: Start, trained: Trained, payload: Payload) -> Work:
    changed = with_true_ends(start, replace(trained, payload=payload))
    return bench.submit(start, changed, start.assigned)


def _zeros(payload: Payload) -> NDArray[np.bool_]:
    zeros: NDArray[np.bool_] = (payload.scales == 0)[payload.layout.chunk_of_entry]
    return zeros


def _generator(bench: Workbench, start: Start) -> np.random.Generator:
    seed = seed_from(start.beacon, "near copy", bench.miner)
    return np.random.default_rng(int.from_bytes(seed[:8], "big"))
