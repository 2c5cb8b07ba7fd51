"""The training world: a tiny model is really trained, with real payloads, checks, exams and outer steps.

Every peer is a `miner.behaviour.Behaviour` at a real workbench; what it hands in is decoded from its
bytes and goes through `scoring.checks.visible_faults`. The exam is the validators' own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from miner.behaviour import Behaviour
from miner.prefetch import Prefetch
from miner.work import Start, Work, Workbench
from protocol.assignment import assigned_samples
from protocol.beacon import Draw
from protocol.ids import Address, Hash32, Round
from protocol.merkle import merkle_root
from protocol.model_spec import LlamaSpec
from protocol.schedule import CONSTANT
from protocol.spec import InnerSpec, RunSpec
from scoring.checks import Delivery, Expectation, Fault, LocalOrigin, visible_faults
from scoring.evaluation import Evaluation
from scoring.sampling import own_samples, random_samples
from scoring.uniqueness import copies, overlap_threshold
from syntience.devnet.presets import Crowd, Preset, build_spec
from syntience.lab.pupils import pupil
from syntience.lab.scenario import HONEST, Scenario
from syntience.lab.world import Beacons, HandedIn
from training.aggregate import aggregate
from training.codec import Payload, decode_payload, index_overlap
from training.dataset import TokenDataset
from training.layout import chunk_layout
from training.local_state import LocalState
from training.outer import OuterStep
from training.parameters import Parameters, initial_parameters
from training.roots import local_root, state_root
from validator.evaluation import Exam, Examiner

MODEL = LlamaSpec(
    vocab_size=320,
    hidden_size=32,
    intermediate_size=96,
    layers=1,
    heads=2,
    kv_heads=2,
    context=32,
    rope_theta="10000",
    norm_eps="0.00001",
    tie_embeddings=True,
    init_seed=0,
)
TINY = Preset(
    name="lab",
    model=MODEL,
    inner=InnerSpec(
        steps=4,
        batch=16,
        learning_rate="0.004",
        beta1="0.9",
        beta2="0.95",
        epsilon="0.00000001",
        weight_decay="0.1",
        grad_clip="1",
        trace_every=4,
        schedule=CONSTANT,
    ),
    train_core_s=0.1,
)
"""23,648 parameters, 64 samples of 32 tokens a round."""
RAND_SAMPLES = 64
_RECENT = 16
_MAX_BEHIND = 3


@dataclass(slots=True, kw_only=True)
class _Desk:
    """One peer's place: what it carries from round to round."""

    behaviour: Behaviour
    bench: Workbench
    local: LocalState
    origin: LocalOrigin | None
    assigned: tuple[int, ...] = ()
    payload: Payload | None = None


def lab_spec(dataset: TokenDataset, scenario: Scenario, seed: Hash32) -> RunSpec:
    """The spec of a scenario's run; the seed chooses the model's first values."""
    model = replace(MODEL, init_seed=_init_seed(seed))
    spec = build_spec(
        replace(TINY, model=model),
        Crowd(miners=1, processes=1, cores=1),
        data=dataset.spec,
        genesis_root=state_root(initial_parameters(model)),
        genesis_time=0,
        rounds_per_epoch=scenario.rounds_per_epoch,
    )
    return replace(spec, scoring=replace(spec.scoring, rand_samples=RAND_SAMPLES))


class School:
    """Peers that train a model together."""

    def __init__(self, scenario: Scenario, dataset: TokenDataset, seed: Hash32) -> None:
        self.spec = lab_spec(dataset, scenario, seed)
        self._run, self._dataset, self._normalise = seed, dataset, scenario.normalise
        self._params = initial_parameters(replace(MODEL, init_seed=_init_seed(seed)))
        self._examiner = Examiner(self.spec, dataset)
        self._zero_local = local_root(LocalState.zeros(self.spec.model))
        self._max_bytes = chunk_layout(self.spec.model, self.spec.codec).transport_bytes
        self._spec_hash = self.spec.hash()
        self._roots: dict[Hash32, Round] = {}
        self._round = Round(0)
        self._desks = {
            account: self._desk(pupil(group, scenario.rounds), account)
            for group in scenario.peers
            for account in group.addresses("peer")
        }
        self._honest = [
            account
            for group in scenario.peers
            if group.kind == HONEST
            for account in group.addresses("peer")
        ]
        self._last: tuple[Payload, ...] = ()

    def work(self, beacons: Beacons) -> HandedIn:
        """Everybody's real work; those who see the round work last."""
        self._round, root = beacons.round, state_root(self._params)
        self._roots[root] = beacons.round
        works = {
            account: self._work(desk, beacons, root, self._last)
            for account, desk in self._desks.items()
            if not _sees_round(desk)
        }
        known = tuple(self._decoded(works[account]) for account in self._honest)
        works |= {
            account: self._work(desk, beacons, root, known)
            for account, desk in self._desks.items()
            if _sees_round(desk)
        }
        faults = {
            account: self._receive(account, works[account], beacons, root) for account in works
        }
        accepted = tuple(account for account in self._desks if not faults[account])
        self._last = tuple(self._payload(account) for account in accepted)
        return HandedIn(
            accepted=accepted,
            faults={account: found for account, found in faults.items() if found},
            payload_roots={
                account: work.submission.payload_root
                for account, work in works.items()
                if Fault.NOT_COMMITTED not in faults[account]
            },
        )

    def examine(
        self, peers: Sequence[Address], selected: Sequence[Address], draw: Draw
    ) -> tuple[Evaluation, ...]:
        """The validators' exam."""
        assigned = {sample for desk in self._desks.values() for sample in desk.assigned}
        exam = Exam(
            round=self._round,
            params=self._params,
            payloads={account: self._payload(account) for account in {*peers, *selected}},
            selected=selected,
            peers=peers,
            random=random_samples(
                train_samples=self.spec.data.train_samples,
                assigned=assigned,
                count=self.spec.scoring.rand_samples,
                draw=draw,
            ),
            own={
                peer: own_samples(
                    self._desks[peer].assigned,
                    miner=peer,
                    count=self.spec.chain.samples_per_round,
                    draw=draw,
                )
                for peer in peers
            },
        )
        return self._examiner.examine(exam)

    def copies(self, evaluations: Sequence[Evaluation]) -> Collection[Address]:
        """By the rule of `scoring.uniqueness`, on the real indices."""
        gains = {evaluation.miner: evaluation.own_score for evaluation in evaluations}
        overlaps = {
            (first, second): index_overlap(self._payload(first), self._payload(second))
            for first, second in combinations(sorted(gains), 2)
        }
        return copies(overlaps, gains, threshold=overlap_threshold(list(overlaps.values())))

    def apply(self, selected: Sequence[Address]) -> None:
        """The aggregate; or, for comparison, the plain mean."""
        payloads = [self._payload(account) for account in selected]
        step = OuterStep.of(self.spec.outer, self._round)
        move = aggregate if self._normalise else _plain_mean
        self._params = move(self._params, payloads, step)

    def heldout(self) -> float | None:
        """In nats per token."""
        return self._examiner.heldout_loss(self._params)

    def _desk(self, behaviour: Behaviour, account: Address) -> _Desk:
        bench = Workbench(
            run=self._run,
            spec=self.spec,
            spec_hash=self._spec_hash,
            miner=account,
            dataset=self._dataset,
            prefetch=Prefetch(self._dataset),
        )
        local = LocalState.zeros(self.spec.model)
        return _Desk(behaviour=behaviour, bench=bench, local=local, origin=None)

    def _work(
        self, desk: _Desk, beacons: Beacons, root: Hash32, others: tuple[Payload, ...]
    ) -> Work:
        desk.assigned = assigned_samples(
            run=self._run,
            round_=beacons.round,
            beacon=beacons.assignment,
            miner=desk.bench.miner,
            count=self.spec.chain.samples_per_round,
            train_samples=self.spec.data.train_samples,
        )
        origin = desk.origin
        start = Start(
            round=beacons.round,
            beacon=beacons.assignment,
            params=self._params,
            initial_root=root,
            local=desk.local,
            local_from=origin.round if origin else Round(0),
            local_root=origin.local_out if origin else self._zero_local,
            assigned=desk.assigned,
            others=others,
        )
        return desk.behaviour.work(desk.bench, start)[0]

    def _receive(
        self, account: Address, work: Work, beacons: Beacons, root: Hash32
    ) -> tuple[Fault, ...]:
        """What a validator finds visibly wrong; what is in order is kept."""
        desk, submission = self._desks[account], work.submission
        payload, digest = self._decoded(work), submission.struct_hash()
        expectation = Expectation(
            run=self._run,
            spec_hash=self._spec_hash,
            round=beacons.round,
            beacon=beacons.assignment,
            miner=account,
            initial_root=root,
            recent_roots={
                each: round_
                for each, round_ in self._roots.items()
                if round_ >= beacons.round - _RECENT
            },
            steps=self.spec.inner.steps,
            data_root=merkle_root([self._dataset.leaf_hash(i) for i in desk.assigned]),
            zero_local_root=self._zero_local,
            origin=desk.origin,
            max_payload_bytes=self._max_bytes,
            max_steps_behind=_MAX_BEHIND,
        )
        local = LocalState.from_blob(work.blobs["local"], self.spec.model)
        delivery = Delivery(
            digest=digest,
            committed=None if desk.behaviour.commits_late else digest,
            signature_valid=True,
            payload_root=payload.root(),
            local_root=local_root(local),
        )
        faults = visible_faults(submission, expectation, delivery)
        desk.payload = None if faults else payload
        if not faults:
            desk.local = local
            desk.origin = LocalOrigin(round=beacons.round, local_out=submission.local_out)
        return faults

    def _decoded(self, work: Work) -> Payload:
        return decode_payload(work.blobs["payload"], self.spec.model, self.spec.codec)

    def _payload(self, account: Address) -> Payload:
        payload = self._desks[account].payload
        assert payload is not None  # it was accepted
        return payload


def _sees_round(desk: _Desk) -> bool:
    return bool(getattr(desk.behaviour, "sees_round", False))


def _init_seed(seed: Hash32) -> int:
    return int.from_bytes(seed[:4], "big")


def _plain_mean(params: Parameters, payloads: Sequence[Payload], step: OuterStep) -> Parameters:
    """The outer step on the updates as they are: what scaling to the median norm guards against."""
    total = np.sum([payload.dense_flat() for payload in payloads], axis=0)
    flat = payloads[0].layout.flat
    return flat.split(step.move(flat.flatten(params), total, len(payloads)))
