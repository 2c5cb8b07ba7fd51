"""The peers of the mechanism world: what a strategy's update is worth, round by round.

An update is three numbers, each in units of an honest peer's: what it gains on unseen data, what it
gains beyond that on the data its miner was assigned, and how much of it is another's. A kind is a
function from the moment to an update, or to what is wrong instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from protocol.errors import OperatorError
from protocol.ids import Round
from scoring.checks import Fault

LESS_DATA, MORE_DATA = 0.5, 0.2
"""An update from f times the data gains f to this power as much: with the laboratory's model 0.35, 0.53,
0.82 and 1.14 for an eighth, a quarter, half and twice the data."""
_BEHIND = 0.6
"""What an update of the round before still gains on this round's model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What a strategy decides on.

    Attributes:
        rounds: of the whole run.
        chance: three numbers in [0, 1), drawn for this peer and round.
        luck: what this round's exam would say of an update without substance, from -1 to 1. Only a
            peer that sees the exam before it publishes can know; nobody can, while beacons hold.
        strength, options: of the peer's group.
    """

    round: Round
    rounds: int
    chance: float
    luck: float
    strength: float
    options: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a peer hands in.

    Attributes:
        gain: LossScore on unseen data over an honest one's.
        own: further LossScore on its own assigned data over an honest one's.
        noise: deviation of an update without direction, over an honest gain.
        overlap: part of the indices shared with the first honest peer's update of this round.
        reuses: hands in the very payload of the first honest peer's last round.
        fault: what is visibly wrong; then it is not accepted, unless nothing is.
    """

    gain: float = 1.0
    own: float = 1.0
    noise: float = 0.0
    overlap: float = 0.0
    reuses: bool = False
    fault: Fault | None = None


Kind = Callable[[Moment], Offer]
NOISE = Offer(gain=-0.04, own=0.0, noise=0.06)
"""Random values in the right format: as measured on a small model."""
ABSENT = Offer(fault=Fault.NOT_COMMITTED)


def honest(moment: Moment) -> Offer:
    """Trains on as much of its data as it can; beyond, on data of others, which dilutes its own."""
    strength = moment.strength
    gain = strength ** (LESS_DATA if strength < 1 else MORE_DATA)
    return Offer(gain=gain, own=min(strength, 1 / strength))


def constant(offer: Offer) -> Kind:
    """The same every round."""
    return lambda moment: offer


def intermittent(moment: Moment) -> Offer:
    """Honest in a part of the rounds, drawn; absent in the others."""
    return honest(moment) if moment.chance < moment.options.get("part", 0.5) else ABSENT


def on_off(moment: Moment) -> Offer:
    """Honest up to its turn, then random values."""
    turn = moment.options.get("turn", 0.25) * moment.rounds
    return honest(moment) if moment.round <= turn else NOISE


def falls_behind(moment: Moment) -> Offer:
    """Honest up to its turn, then on a model of more than three rounds ago."""
    turn = moment.options.get("turn_round", 1)
    return honest(moment) if moment.round <= turn else Offer(fault=Fault.WRONG_ROOT)


def alternating(moment: Moment) -> Offer:
    """Honest and idle by turns, so many rounds each."""
    period = int(moment.options.get("period", 20))
    return honest(moment) if (moment.round - 1) // period % 2 == 0 else NOISE


def exam_peeker(moment: Moment) -> Offer:
    """Commits random values and publishes them only if they would do well in this round's exam."""
    if moment.luck <= 0:
        return replace(NOISE, fault=Fault.MISSING)
    return replace(NOISE, gain=moment.luck * NOISE.noise, own=moment.luck)


_KINDS: Mapping[str, Kind] = {
    "honest": honest,
    "behind": constant(Offer(gain=_BEHIND)),
    "falls-behind": falls_behind,
    "copier": constant(Offer(gain=_BEHIND, own=0.0, reuses=True)),
    "near-copier": constant(Offer(gain=_BEHIND, own=0.0)),
    "recomputer": constant(Offer(own=0.0, overlap=0.95)),
    "lazy": constant(Offer(gain=0.85, own=0.68)),
    "lazy-elsewhere": constant(Offer(gain=0.4, own=0.0)),
    "zero": constant(Offer(gain=0.0, own=0.0)),
    "noise": constant(NOISE),
    "sign-flip": constant(Offer(gain=-1.0, own=-1.0)),
    "stale": constant(Offer(gain=0.3, fault=Fault.WRONG_ROOT)),
    "late": constant(ABSENT),
    "over-fitter": constant(Offer(gain=0.67, own=0.72)),
    "poisoner": constant(Offer(gain=-0.5, own=-0.2)),
    "intermittent": intermittent,
    "on-off": on_off,
    "alternating": alternating,
    "exam-peeker": exam_peeker,
}


def kind_named(name: str) -> Kind:
    """Raises `OperatorError` for an unknown one."""
    try:
        return _KINDS[name]
    except KeyError:
        raise OperatorError(
            f"unknown peer {name!r}", f"choose one of {', '.join(_KINDS)}"
        ) from None
