"""The mechanism world: losses from a model of them, for hundreds of peers and thousands of rounds.

LossScore on D_rand = GAIN * (gain * (1 + w * a + w * b) + noise * c), with a drawn for peer and round
(one round's batches are better than another's, and a copy shares them), b for each exam (so many samples are a sample), and
c for peer and round. On the peer's own data it is more by GAIN * OWN * (own + d / OWN_SIGNAL): the
difference of difficulty between two batches, d, hides the advantage of having trained on one.

GAIN, w and OWN_SIGNAL are those of a small model: honest LossScores 0.05 +- 0.012 nats; own beat
random in 48 of 48 evaluations on all samples that were trained and in 42 of 48 on a fifth of them,
which is a normal signal of 2.57 and of 2.57 / sqrt(5) = 1.15 deviations.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from protocol.beacon import Draw, seed_from
from protocol.ids import Address, Hash32, Round
from scoring.checks import Fault
from scoring.evaluation import Evaluation
from scoring.rules import OVERLAP_THRESHOLD
from scoring.uniqueness import copies
from syntience.lab.kinds import Kind, Moment, Offer, kind_named
from syntience.lab.scenario import HONEST, Group, Scenario
from syntience.lab.world import Beacons, HandedIn

GAIN = 0.05
WOBBLE = 0.17
"""0.17 sqrt(2) GAIN = 0.012."""
OWN = 0.5
OWN_SIGNAL = 2.57
_LOSS = 5.0
_EMPTY: NDArray[np.float64] = np.zeros(0)


class Mechanism:
    """Peers as numbers; no model is trained."""

    def __init__(self, scenario: Scenario) -> None:
        self._rounds = scenario.rounds
        self._peers: list[tuple[Address, Group, Kind]] = [
            (account, group, kind_named(group.kind))
            for group in scenario.peers
            for account in group.addresses("peer")
        ]
        self._place = {account: place for place, (account, _, _) in enumerate(self._peers)}
        self._victim = next(
            (account for account, group, _ in self._peers if group.kind == HONEST), None
        )
        self._offers: dict[Address, Offer] = {}
        self._score = _EMPTY
        self._source: NDArray[np.int64] = np.zeros(0, np.int64)
        self._roots: dict[Address, Hash32] = {}

    def work(self, beacons: Beacons) -> HandedIn:
        """Every strategy's update of the round."""
        rng, count = _generator(beacons.assignment, "work"), len(self._peers)
        chance, luck, wobble, aimless = rng.random(count), *rng.standard_normal((3, count))
        self._offers = {
            account: kind(
                Moment(
                    round=beacons.round,
                    rounds=self._rounds,
                    chance=float(chance[place]),
                    luck=float(luck[place]),
                    strength=group.strength,
                    options=group.options,
                )
            )
            for place, (account, group, kind) in enumerate(self._peers)
        }
        gains, noises = self._of("gain"), self._of("noise")
        self._source = np.array(
            [
                self._place[self._victim] if self._victim and offer.overlap else place
                for place, offer in enumerate(self._offers.values())
            ]
        )
        self._score = gains * (1 + WOBBLE * wobble[self._source]) + noises * aimless
        before, self._roots = self._roots, self._fresh_roots(beacons.round)
        for account, offer in self._offers.items():
            if offer.reuses and self._victim in before:
                self._roots[account] = before[self._victim]
        return HandedIn(
            accepted=tuple(a for a, offer in self._offers.items() if offer.fault is None),
            faults={a: (o.fault,) for a, o in self._offers.items() if o.fault is not None},
            payload_roots=self._roots,
        )

    def examine(
        self, peers: Sequence[Address], selected: Sequence[Address], draw: Draw
    ) -> tuple[Evaluation, ...]:
        """Losses under one validator's draw."""
        places = [self._place[peer] for peer in peers]
        rng = np.random.default_rng(draw.child("losses").below(1 << 64))
        sample, batch = rng.standard_normal((2, len(self._peers)))
        gains, own = self._of("gain")[places], self._of("own")[places]
        rand = GAIN * (self._score[places] + gains * WOBBLE * sample[self._source[places]])
        more = GAIN * OWN * (own + np.abs(gains) * batch[places] / OWN_SIGNAL)
        return tuple(
            Evaluation(
                miner=peer,
                rand_before=_LOSS,
                rand_after=_LOSS - on_rand,
                own_before=_LOSS,
                own_after=_LOSS - on_rand - extra,
            )
            for peer, on_rand, extra in zip(peers, rand.tolist(), more.tolist(), strict=True)
        )

    def copies(self, evaluations: Sequence[Evaluation]) -> Collection[Address]:
        """By the rule of `scoring.uniqueness`, on the pairs that share more than honest ones do."""
        gains = {evaluation.miner: evaluation.own_score for evaluation in evaluations}
        if self._victim is None or self._victim not in gains:
            return ()
        overlaps = {
            (self._victim, miner): self._offers[miner].overlap
            for miner in gains
            if self._offers[miner].overlap
        }
        return copies(overlaps, gains, threshold=OVERLAP_THRESHOLD)

    def apply(self, selected: Sequence[Address]) -> None:
        """Nothing is trained, and nothing moves."""

    def heldout(self) -> float | None:
        """There is no model."""
        return None

    def _of(self, name: str) -> NDArray[np.float64]:
        return np.array([getattr(offer, name) for offer in self._offers.values()])

    def _fresh_roots(self, round_: Round) -> dict[Address, Hash32]:
        return {
            account: Hash32(round_.to_bytes(12, "big") + bytes.fromhex(account[2:]))
            for account, offer in self._offers.items()
            if offer.fault not in (Fault.NOT_COMMITTED, Fault.MISSING)
        }


def _generator(beacon: Hash32, label: str) -> np.random.Generator:
    return np.random.default_rng(int.from_bytes(seed_from(beacon, label)[:8], "big"))


def offers_of(world: Mechanism) -> Mapping[Address, Offer]:
    """What the peers handed in last, for tests."""
    return world._offers
