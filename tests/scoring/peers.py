"""Addresses, rules and rounds for the scoring tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from protocol.ids import Address, Epoch, Hash32, Round, Slot, to_address
from scoring.book import RoundObservation, ScoreBook
from scoring.checks import Fault
from scoring.evaluation import Evaluation
from scoring.rules import Rules
from tests.specs import some_hash

RULES = Rules(
    mu_gamma=0.95,
    mu_margin=1.25,
    phi=0.75,
    rating_mu=25.0,
    rating_sigma=25 / 3,
    rating_beta=7.0,
    rating_tau=0.1,
)
ROUNDS_PER_EPOCH = 3
LOSS = 5.0


def peer(number: int) -> Address:
    """The address of a numbered peer."""
    return to_address((number + 1).to_bytes(20, "big"))


def slots_of(count: int) -> dict[Slot, Address]:
    """Peer i in slot i."""
    return {Slot(i): peer(i) for i in range(count)}


def evaluated(miner: Address, *, rand: float, own: float | None = None) -> Evaluation:
    """An evaluation with these LossScores; by default the own batch wins clearly."""
    own = rand + 0.01 if own is None else own
    return Evaluation(
        miner=miner,
        rand_before=LOSS,
        rand_after=LOSS - rand,
        own_before=LOSS,
        own_after=LOSS - own,
    )


def seen_round(
    round_: int,
    evaluations: Iterable[Evaluation] = (),
    *,
    accepted: Iterable[Address] | None = None,
    faults: Mapping[Address, tuple[Fault, ...]] | None = None,
    roots: Mapping[Address, Hash32] | None = None,
    void: bool = False,
) -> RoundObservation:
    """A round in which whoever was evaluated was accepted, each with a payload of its own."""
    evaluations = tuple(evaluations)
    named = tuple(e.miner for e in evaluations) if accepted is None else tuple(accepted)
    fresh = {miner: some_hash(f"{miner} {round_}") for miner in named}
    return RoundObservation(
        round=Round(round_),
        epoch=Epoch((round_ - 1) // ROUNDS_PER_EPOCH + 1),
        void=void,
        accepted=named,
        faults=faults or {},
        payload_roots=fresh if roots is None else roots,
        evaluations=evaluations,
    )


def observed(*rounds: RoundObservation, rules: Rules = RULES) -> ScoreBook:
    """The book after these rounds."""
    book = ScoreBook.empty(rules)
    for seen in rounds:
        book = book.observe_round(seen)
    return book
