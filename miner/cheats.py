"""Miners that cheat, each a real alternative miner, for devnets and tests.

They run the same process as an honest miner, against real contracts; only what they compute, sign
or show differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from miner.behaviour import Behaviour
from miner.work import Start, Trained, Work, Workbench
from protocol.beacon import seed_from
from protocol.errors import OperatorError
from protocol.ids import Hash32, Round
from training.codec import Payload, encode, scaled
from training.local_state import LocalState
from training.parameters import Parameters, zeros
from training.roots import local_root, state_root
from transport.server import Provider, Requester


class Copier(Behaviour):
    """Hands in the payload that another published in the round before, as its own."""

    name = "copier"

    def work(self, bench: Workbench, start: Start) -> Sequence[Work]:
        """The first payload seen; in a round with none to copy it has only zeros to offer."""
        stolen = start.others[0] if start.others else zero_payload(bench)
        return [bench.submit(start, without_training(bench, start, stolen), start.assigned)]


class Noise(Behaviour):
    """Hands in random values in the right format."""

    name = "noise"

    def work(self, bench: Workbench, start: Start) -> Sequence[Work]:
        """Gaussian noise of about the size of an honest update."""
        seed = int.from_bytes(seed_from(start.beacon, "noise", bench.miner)[:8], "big")
        generator = np.random.default_rng(seed)
        values = {
            name: (generator.standard_normal(tensor.shape) * 0.01).astype(np.float32)
            for name, tensor in zeros(bench.spec.model).items()
        }
        payload = encode(values, bench.spec.model, bench.spec.codec)
        return [bench.submit(start, without_training(bench, start, payload), start.assigned)]


class Zero(Behaviour):
    """Hands in an update that changes nothing."""

    name = "zero"

    def work(self, bench: Workbench, start: Start) -> Sequence[Work]:
        """All values zero."""
        trained = without_training(bench, start, zero_payload(bench))
        return [bench.submit(start, trained, start.assigned)]


class Equivocator(Behaviour):
    """Signs two submissions for one round and shows each to other validators."""

    name = "equivocator"

    def __init__(self) -> None:
        self._shown: dict[str, Sequence[bytes]] = {}
        self._peers: dict[str, int] = {}

    def providers(self) -> Mapping[str, Provider]:
        """Answers for the submissions itself: every second peer sees the other version."""
        return {"submissions": self._show}

    def published(self, topic: str, records: Sequence[bytes]) -> None:
        """Keeps what there is to show."""
        self._shown[topic] = records

    def _show(self, topic: str, requester: Requester) -> list[bytes] | None:
        versions = self._shown.get(topic, ())
        number = self._peers.setdefault(requester.name, len(self._peers))
        return [versions[number % len(versions)]] if versions else []

    def work(self, bench: Workbench, start: Start) -> Sequence[Work]:
        """Honest work, and a second version of it with another payload."""
        trained = bench.train(start, start.assigned)
        other = replace(trained, payload=scaled(trained.payload, 0.5))
        other = with_true_ends(start, other)
        return [
            bench.submit(start, trained, start.assigned),
            bench.submit(start, other, start.assigned),
        ]


class WrongData(Behaviour):
    """Trains on samples of its own choice, and signs those."""

    name = "wrong-data"

    def work(self, bench: Workbench, start: Start) -> Sequence[Work]:
        """The same few samples every time: the easiest to fit."""
        chosen = [index % 4 for index in range(len(start.assigned))]
        return [bench.submit(start, bench.train(start, chosen), chosen)]


class WrongSpec(Behaviour):
    """Does the assigned work, and signs that another spec is the run's."""

    name = "wrong-spec"

    def work(self, bench: Workbench, start: Start) -> Sequence[Work]:
        """The right work under a spec that nobody registered."""
        compute = replace(bench.spec.compute, threads=bench.spec.compute.threads + 1)
        other = replace(bench, spec_hash=replace(bench.spec, compute=compute).hash())
        return [other.submit(start, bench.train(start, start.assigned), start.assigned)]


class LocalOutOfLine(Behaviour):
    """Carries over what suits it: a fresh state as if its last round had given it, then the output of work that was not accepted."""

    name = "local-out-of-line"

    def __init__(self) -> None:
        self._last: tuple[Round, Trained] | None = None

    def work(self, bench: Workbench, start: Start) -> Sequence[Work]:
        """Honest until there is something to carry over."""
        if start.local_from != 0:
            start = self._out_of_line(bench, start)
        trained = bench.train(start, start.assigned)
        self._last = start.round, trained
        return [bench.submit(start, trained, start.assigned)]

    def _out_of_line(self, bench: Workbench, start: Start) -> Start:
        if self._last is None or self._last[0] == start.local_from:
            fresh = LocalState.zeros(bench.spec.model)
            return replace(start, local=fresh, local_root=local_root(fresh))
        round_, trained = self._last
        return replace(
            start,
            local=trained.local_out,
            local_from=round_,
            local_root=trained.local_out_root,
        )


class Lazy(Behaviour):
    """Signs all assigned samples and trains on the first batch alone."""

    name = "lazy"

    def work(self, bench: Workbench, start: Start) -> Sequence[Work]:
        """Repeats the first batch in every step: only recomputation shows it."""
        batch = bench.spec.inner.batch
        repeated = [start.assigned[index % batch] for index in range(len(start.assigned))]
        return [bench.submit(start, bench.train(start, repeated), start.assigned)]


class Scaled(Behaviour):
    """Does honest work and multiplies it, hoping that more counts more."""

    def __init__(self, factor: float) -> None:
        self.name = f"scaled{factor:g}"
        self._factor = factor

    def work(self, bench: Workbench, start: Start) -> Sequence[Work]:
        """The honest update times the factor."""
        trained = bench.train(start, start.assigned)
        louder = replace(trained, payload=scaled(trained.payload, self._factor))
        return [bench.submit(start, with_true_ends(start, louder), start.assigned)]


class Stale(Behaviour):
    """Never follows the agreed model: trains for ever from one of its own, the first that it saw, halved.

    With the run's own first state it would do honest work in round 1.
    """

    name = "stale"

    def __init__(self) -> None:
        self._own: tuple[Parameters, Hash32] | None = None

    def work(self, bench: Workbench, start: Start) -> Sequence[Work]:
        """Today's samples on yesterday's model."""
        if self._own is None:
            params = {name: tensor * np.float32(0.5) for name, tensor in start.params.items()}
            self._own = params, state_root(params)
        params, root = self._own
        old = replace(start, params=params, initial_root=root)
        return [bench.submit(old, bench.train(old, old.assigned), old.assigned)]


class Late(Behaviour):
    """Does honest work and commits it when the deadline is over."""

    name = "late"
    commits_late = True


_KINDS: dict[str, Callable[[], Behaviour]] = {
    "honest": Behaviour,
    "copier": Copier,
    "noise": Noise,
    "equivocator": Equivocator,
    "wrong-data": WrongData,
    "wrong-spec": WrongSpec,
    "local-out-of-line": LocalOutOfLine,
    "stale": Stale,
    "late": Late,
    "zero": Zero,
    "lazy": Lazy,
    "scaled2": lambda: Scaled(2),
    "scaled5": lambda: Scaled(5),
    "scaled1000": lambda: Scaled(1000),
}

CHEATS = tuple(kind for kind in _KINDS if kind != "honest")
"""The names of all ways to cheat."""


def behaviour_named(kind: str) -> Behaviour:
    """The behaviour with this name; raises `OperatorError` for an unknown one."""
    try:
        return _KINDS[kind]()
    except KeyError:
        raise OperatorError(
            f"unknown behaviour {kind!r}", f"choose one of {', '.join(_KINDS)}"
        ) from None


def zero_payload(bench: Workbench) -> Payload:
    """An update of zeros."""
    return encode(zeros(bench.spec.model), bench.spec.model, bench.spec.codec)


def without_training(bench: Workbench, start: Start, payload: Payload) -> Trained:
    """A trace of the right shape around a payload that no training made.

    The local state that it hands in is a fresh one, so that what it claims to carry is at least
    well-formed.
    """
    local = LocalState.zeros(bench.spec.model)
    root = local_root(local)
    inner = bench.spec.inner
    middle = start.initial_root + start.local_root
    intervals = -(-inner.steps // inner.trace_every)
    return Trained(
        payload=payload,
        local_out=local,
        local_out_root=root,
        trace=(middle, *[middle] * intervals, payload.root() + root),
        mean_loss=0.0,
    )


def with_true_ends(start: Start, trained: Trained) -> Trained:
    """Rewrites the ends of a trace to fit a payload that was changed afterwards."""
    first = start.initial_root + start.local_root
    last = trained.payload.root() + trained.local_out_root
    return replace(trained, trace=(first, *trained.trace[1:-1], last))
