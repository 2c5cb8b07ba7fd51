"""The Gauntlet's targets on simulated peers, and the defaults of the rules on a short run.

A simulated peer has a LossScore on D_rand of a mean and a spread per round, and a probability q that
its own batch beats random. No model is trained here; the figures are those of a small one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from protocol.beacon import Draw
from protocol.ids import Epoch
from scoring.book import ScoreBook
from scoring.checks import Fault
from scoring.evaluation import Evaluation
from tests.scoring.peers import ROUNDS_PER_EPOCH, RULES, evaluated, peer, seen_round, slots_of
from tests.specs import some_hash


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of peer."""

    mean: float
    spread: float
    q: float
    out_of_sync: bool = False


HONEST = Kind(mean=0.05, spread=0.012, q=1.0)
COPIER = Kind(mean=0.05, spread=0.012, q=0.5)
NOISE = Kind(mean=-0.002, spread=0.003, q=0.5)
COIN_NOISE = Kind(mean=0.0, spread=0.002, q=0.5)
ZERO = Kind(mean=0.0, spread=0.0, q=0.0)
FLIPPED = Kind(mean=-0.05, spread=0.012, q=0.0)


def bell(draw: Draw) -> float:
    """A nearly normal number: the sum of twelve uniform ones, less six."""
    return sum(draw.unit() for _ in range(12)) - 6


def evaluation_of(number: int, kind: Kind, draw: Draw) -> Evaluation:
    rand = kind.mean + kind.spread * bell(draw)
    own = rand + (0.005 if draw.unit() < kind.q else -0.005) if kind.q else rand
    return evaluated(peer(number), rand=rand, own=own)


def simulate(kinds: Sequence[Kind], rounds: int, label: str) -> list[ScoreBook]:
    """The book after each round, all peers evaluated in each."""
    draw, book, books = Draw(some_hash(label)), ScoreBook.empty(RULES), []
    for round_ in range(1, rounds + 1):
        evaluations = [
            evaluation_of(i, kind, draw) for i, kind in enumerate(kinds) if not kind.out_of_sync
        ]
        faults = {peer(i): (Fault.WRONG_ROOT,) for i, kind in enumerate(kinds) if kind.out_of_sync}
        book = book.observe_round(seen_round(round_, evaluations, faults=faults))
        books.append(book)
    return books


def weights_after(kinds: Sequence[Kind], rounds: int, label: str) -> tuple[int, ...]:
    book = simulate(kinds, rounds, label)[-1]
    epoch = Epoch((rounds - 1) // ROUNDS_PER_EPOCH + 1)
    return book.weights(epoch, slots=slots_of(len(kinds)), slot_count=len(kinds))


@pytest.mark.parametrize(
    "cheat", [NOISE, COIN_NOISE, ZERO, FLIPPED], ids=["noise", "coin", "zero", "flip"]
)
@pytest.mark.parametrize("honest", [3, 4, 7])
def test_short_run__one_useless_peer__honest_are_paid_in_the_first_epoch_and_it_is_not(
    cheat: Kind, honest: int
) -> None:
    for trial in range(12):
        weights = weights_after([HONEST] * honest + [cheat], ROUNDS_PER_EPOCH, f"short {trial}")
        assert weights[-1] == 0
        assert min(weights[:-1]) > 0


def test_short_run__honest_in_a_strict_order__are_all_paid_in_every_epoch() -> None:
    order = [Kind(mean=0.05 - 0.008 * i, spread=0.0005, q=1.0) for i in range(5)]
    for rounds in (3, 6, 9):
        weights = weights_after([*order, NOISE], rounds, "order")
        assert weights[-1] == 0
        assert min(weights[:-1]) > 0
        assert list(weights) == sorted(weights, reverse=True)


def test_target_1__more_data_baseline_desynchronised__are_ordered_within_tens_of_rounds() -> None:
    kinds = [
        Kind(mean=0.06, spread=0.03, q=1.0),
        Kind(mean=0.05, spread=0.03, q=1.0),
        Kind(mean=0.03, spread=0.03, q=1.0),
    ]
    right = 0
    for trial in range(10):
        book = simulate(kinds, 60, f"order {trial}")[-1]
        ordinals = [book.record(peer(i)).rating.ordinal for i in range(3)]
        right += ordinals == sorted(ordinals, reverse=True)
    assert right >= 8


def test_target_2__out_of_sync_for_eight_rounds__loses_nine_tenths() -> None:
    assert RULES.phi**8 < 0.11
    late = Kind(mean=0.05, spread=0.012, q=1.0, out_of_sync=True)
    book = simulate([HONEST] * 4 + [late], 8, "late")[-1]
    assert book.score(peer(4)).total == 0
    assert book.record(peer(4)).strikes == 8


def test_target_4__copier__tends_to_nothing() -> None:
    shares = []
    for trial in range(10):
        weights = weights_after([HONEST] * 4 + [COPIER], 60, f"copy {trial}")
        shares.append(weights[4] / (sum(weights[:4]) / 4))
    assert sum(shares) / len(shares) < 0.02


def test_target_5__ten_machines_as_one__out_earn_ten_of_one() -> None:
    strong = Kind(mean=0.12, spread=0.012, q=1.0)
    weights = weights_after([HONEST] * 10 + [strong], 45, "strong")
    assert weights[10] > sum(weights[:10])


def test_target_6__useless_alone_among_themselves__are_hardly_ever_paid() -> None:
    paid = sum(
        any(weights_after([NOISE, ZERO, FLIPPED], 3, f"alone {trial}")) for trial in range(30)
    )
    assert paid <= 1


def test_newcomer__in_an_old_run__is_paid_little_at_first_and_catches_up() -> None:
    draw = Draw(some_hash("newcomer"))
    book = simulate([HONEST] * 4, 60, "old")[-1]
    shares = []
    for round_ in range(61, 121):
        evaluations = [evaluation_of(i, HONEST, draw) for i in range(5)]
        book = book.observe_round(seen_round(round_, evaluations))
        if round_ % ROUNDS_PER_EPOCH == 0:
            weights = book.weights(book.epoch, slots=slots_of(5), slot_count=5)
            shares.append(weights[4] / (sum(weights[:4]) / 4))
    assert 0 < shares[0] < 0.1
    assert shares[-1] > 0.25
