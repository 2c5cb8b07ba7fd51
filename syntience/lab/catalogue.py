"""The scenarios: the six targets of the Gauntlet, one for each attack, and those of validators.

To add one, add a `Scenario` here; a new kind of peer goes into `kinds` or `pupils`, a new kind of
validator into `judges`, and a new kind of promise into `claims`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from protocol.errors import OperatorError
from syntience.lab.claims import (
    Claim,
    ComputationAtMost,
    EarnsLess,
    LossStays,
    NobodyExcluded,
    PaidAlike,
    PayAtMost,
    PayMovedAtMost,
    PayRaisedAtMost,
    Ranked,
    ScoreFalls,
    TogetherAtMost,
)
from syntience.lab.scenario import HONEST, MECHANISM, TRAINING, Group, Scenario

_TWELVE = Group(name=HONEST, kind=HONEST, count=12)
_SIX = Group(name=HONEST, kind=HONEST, count=6)
_FAIR: tuple[Claim, ...] = (NobodyExcluded(), PaidAlike())
_UNPAID = 0.05
_TRAINED = Scenario(
    name="", text="", world=TRAINING, peers=(_SIX,), claims=(),
    validators=(Group(name="validator", kind=HONEST),),
    rounds=60, rounds_per_epoch=5,
)  # fmt: skip
_MODELLED = Scenario(
    name="", text="", world=MECHANISM, peers=(_TWELVE,), claims=(), rounds=2000, rounds_per_epoch=40
)


def _attack(
    kind: str, text: str, *, most: float = _UNPAID, count: int = 2, **options: float
) -> Scenario:
    """Twelve honest peers and some that attack, who must not be paid."""
    bad = Group(name=kind, kind=kind, count=count, options=options)
    claims = (PayAtMost(group=kind, most=most), *_FAIR)
    return replace(_MODELLED, name=kind, text=text, peers=(_TWELVE, bad), claims=claims)


def _trained_attack(
    kind: str, text: str, *, most: float = _UNPAID, count: int = 2, **options: float
) -> Scenario:
    """The same with peers that train."""
    bad = Group(name=kind, kind=kind, count=count, options=options)
    claims = (PayAtMost(group=kind, most=most), NobodyExcluded())
    return replace(_TRAINED, name=f"trained-{kind}", text=text, peers=(_SIX, bad), claims=claims)


def _scaled(factor: int) -> Scenario:
    """An honest peer that multiplies its update, against the same peer when it does not."""
    loud = Group(name="loud", kind=f"scaled{factor}")
    quiet = replace(loud, kind=HONEST)
    return replace(
        _TRAINED,
        name=f"trained-scaled{factor}",
        text=f"Honest work times {factor} earns no more than it would unscaled.",
        peers=(_SIX, loud),
        claims=(PayRaisedAtMost(group="loud", most=0.0), NobodyExcluded()),
        twin=replace(_TRAINED, name="quiet", peers=(_SIX, quiet)),
    )


_THREE = (
    Group(name="more data", kind=HONEST, strength=2.0),
    Group(name="baseline", kind=HONEST),
    Group(name="behind", kind="behind"),
)
_WORTHLESS = ("zero", "noise", "sign-flip", "stale")
_THOUSAND = replace(
    _TRAINED,
    peers=(_SIX, Group(name="scaled1000", kind="scaled1000")),
    twin=replace(_TRAINED, name="without"),
)
_TARGETS: Sequence[Scenario] = (
    replace(
        _TRAINED,
        name="target-1",
        text="Raw scores are noisy, yet ratings order twice the data > baseline > desynchronised.",
        peers=_THREE,
        claims=(Ranked(order=("more data", "baseline", "behind"), by_round=60),),
    ),
    replace(
        _MODELLED,
        name="target-2",
        text="A peer that falls more than three steps behind loses 90 % of its score in 8 rounds.",
        peers=(_TWELVE, Group(name="late riser", kind="falls-behind", options={"turn_round": 40})),
        claims=(ScoreFalls(group="late riser", start=40, end=48, most=0.10),),
        rounds=80,
        rounds_per_epoch=4,
    ),
    replace(
        _THOUSAND,
        name="target-3",
        text="One peer sends 1000 times its norm: with normalisation the loss curve stays.",
        claims=(LossStays(most=0.1),),
    ),
    replace(
        _THOUSAND,
        name="target-3-plain",
        text="The same with a plain mean of the updates: the loss curve breaks.",
        claims=(LossStays(least=0.5),),
        normalise=False,
        rounds=20,
        twin=replace(_TRAINED, name="without", rounds=20),
    ),
    replace(
        _MODELLED,
        name="target-4",
        text="A copier's proof of computation tends to 0 and it earns nothing.",
        peers=(_TWELVE, Group(name="copier", kind="recomputer", count=2)),
        claims=(
            ComputationAtMost(group="copier", most=0.1),
            PayAtMost(group="copier", most=_UNPAID),
            *_FAIR,
        ),
    ),
    replace(
        _MODELLED,
        name="target-5",
        text="Where a round's data takes ten machines, ten as one peer out-earn ten peers of one.",
        peers=(
            Group(name="one of ten", kind=HONEST),
            Group(name="ten of one", kind=HONEST, count=10, strength=0.1),
        ),
        claims=(TogetherAtMost(group="ten of one", than="one of ten"),),
    ),
    replace(
        _MODELLED,
        name="target-6",
        text="Zero, random, sign-flipped and stale updates earn nothing, nor do two negatives.",
        peers=(_TWELVE, *(Group(name=kind, kind=kind) for kind in _WORTHLESS)),
        claims=(*(PayAtMost(group=kind, most=0.0) for kind in _WORTHLESS), *_FAIR),
    ),
)
_ATTACKS: Sequence[Scenario] = (
    _attack("copier", "Hands in a payload of the round before."),
    _attack("near-copier", "Hands in another's update of the round before, changed a little."),
    _attack("recomputer", "Recomputes another's work of this round and commits it first."),
    _attack("lazy", "Trains on a quarter of its data, over and over, and signs all of it."),
    _attack("lazy-elsewhere", "Trains on the same few samples in every round."),
    _attack("zero", "Changes nothing."),
    _attack("noise", "Random values."),
    _attack("sign-flip", "The opposite of honest work."),
    _attack("stale", "Trains from a state of its own."),
    _attack("late", "Commits after the deadline."),
    _attack("exam-peeker", "Sees the exam, and publishes random values when it suits them."),
    _attack("intermittent", "Serves half of the rounds.", most=0.5, part=0.5),
    _attack("over-fitter", "Three passes over its assigned data.", most=1.0),
    _attack("poisoner", "Trains on false labels.", most=0.10),
    _attack("on-off", "Builds a rating for a quarter of the run, then random values.", turn=0.25),
    _attack("alternating", "Honest and random by turns of 20 rounds.", most=0.5, period=20),
    replace(
        _MODELLED,
        name="sybil-split",
        text="One machine as ten peers that each train a tenth earns less than as one.",
        peers=(
            replace(_TWELVE, count=11),
            Group(name="one", kind=HONEST),
            Group(name="ten", kind=HONEST, count=10, strength=0.1),
        ),
        claims=(TogetherAtMost(group="ten", than="one"), *_FAIR),
        peers_per_round=32,
    ),
    replace(
        _MODELLED,
        name="sybil-copies",
        text="One machine as ten peers that all hand in the work of one, recomputed.",
        peers=(_TWELVE, Group(name="ten", kind="recomputer", count=9)),
        claims=(TogetherAtMost(group="ten", than=HONEST, most=1 / 12), *_FAIR),
        peers_per_round=32,
    ),
)  # fmt: skip
_TRAINED_ATTACKS: Sequence[Scenario] = (
    *(_scaled(factor) for factor in (2, 5, 1000)),
    _trained_attack("copier", "Hands in a payload of the round before."),
    _trained_attack("recomputer", "Hands in another's payload of this round."),
    _trained_attack("near-copier", "Another's payload of this round, rescaled and with noise."),
    _trained_attack("merger", "The mean of two payloads of this round."),
    _trained_attack("lazy", "Trains on its first batch, over and over, and signs all."),
    _trained_attack("lazy-elsewhere", "Trains on the same few samples in every round."),
    _trained_attack("zero", "Changes nothing."),
    _trained_attack("noise", "Random values."),
    _trained_attack("sign-flip", "The opposite of honest work."),
    _trained_attack("stale", "Trains from a state of its own."),
    _trained_attack("late", "Commits after the deadline."),
    _trained_attack("over-fitter", "Three passes over its assigned data.", most=1.0),
    _trained_attack("poisoner", "Trains on false labels.", most=0.10),
    _trained_attack("alie", "The honest mean less 1.5 deviations, with all updates known."),
    _trained_attack("ipm", "Minus half the honest mean, with all updates known."),
    _trained_attack("on-off", "Honest for a quarter of the run, then random values.", turn=0.25),
)
_ZOO = (
    "noise",
    "zero",
    "sign-flip",
    "stale",
    "late",
    "poisoner",
    "alie",
    "ipm",
    "recomputer",
    "merger",
)
_WORTH = {"poisoner": 0.10}
_CROWDS: Sequence[Scenario] = (
    replace(
        _TRAINED,
        name="trained-zoo",
        text="Ten kinds of useless peers at once, against eight honest ones.",
        peers=(
            replace(_SIX, count=8),
            *(Group(name=kind, kind=kind) for kind in _ZOO),
        ),
        claims=(
            *(PayAtMost(group=kind, most=_WORTH.get(kind, _UNPAID)) for kind in _ZOO),
            NobodyExcluded(),
        ),
        peers_per_round=32,
    ),
    replace(
        _MODELLED,
        name="crowd",
        text="256 honest peers, one validator that evaluates them all.",
        peers=(replace(_TWELVE, count=256),),
        claims=(NobodyExcluded(),),
        validators=(Group(name="validator", kind=HONEST),),
        peers_per_round=256,
        rounds=1000,
        rounds_per_epoch=20,
        seeds=1,
    ),
)
_JUDGES = replace(
    _MODELLED,
    peers=(_TWELVE, Group(name="friend", kind="lazy-elsewhere", options={"friend": 1})),
    rounds_per_epoch=40,
)


def _validators(name: str, text: str, bad: Group, honest: int, *claims: Claim) -> Scenario:
    """Honest validators and dishonest ones; in the twin all are honest."""
    seats = (Group(name="validator", kind=HONEST, count=honest), bad)
    fair = (seats[0], replace(bad, kind=HONEST))
    twin = replace(_JUDGES, name="all honest", validators=fair)
    return replace(
        _JUDGES, name=name, text=text, validators=seats, twin=twin, claims=(*claims, *_FAIR)
    )


_VALIDATORS: Sequence[Scenario] = (
    _validators(
        "liar",
        "One validator of five gives half of its weights to an idle friend.",
        Group(name="liar", kind="liar"),
        4,
        PayAtMost(group="friend", most=_UNPAID),
        PayMovedAtMost(groups=(HONEST,)),
    ),
    _validators(
        "clique",
        "Validators with 40 % of the stake give everything to a friend.",
        Group(name="clique", kind="clique", count=4),
        6,
        PayAtMost(group="friend", most=_UNPAID),
        PayMovedAtMost(groups=(HONEST,)),
        EarnsLess(group="clique", than="validator"),
    ),
    _validators(
        "weight-copier",
        "A validator that evaluates nobody reveals the last consensus.",
        Group(name="copier", kind="weight-copier"),
        4,
        EarnsLess(group="copier", than="validator"),
    ),
)
SCENARIOS: Mapping[str, Scenario] = {
    scenario.name: scenario
    for scenario in (*_TARGETS, *_ATTACKS, *_TRAINED_ATTACKS, *_CROWDS, *_VALIDATORS)
}


def scenario_named(name: str) -> Scenario:
    """Raises `OperatorError` for an unknown one."""
    try:
        return SCENARIOS[name]
    except KeyError:
        raise OperatorError(
            f"there is no scenario {name!r}", "`syntience lab list` names them all"
        ) from None
