from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.ids import Address, Epoch, Hash32, Round, Slot
from scoring.book import RoundObservation, ScoreBook
from scoring.checks import Fault
from scoring.errors import Contradiction
from scoring.evaluation import Evaluation
from scoring.rating import prior
from scoring.rules import MAX_STRIKES
from scoring.weights import FULL_WEIGHT
from tests.scoring.peers import RULES, evaluated, observed, peer, seen_round, slots_of
from tests.specs import some_hash

GAINS = [0.05, 0.048, 0.052, 0.047, 0.051]


def honest(*numbers: int) -> list[Evaluation]:
    """Peers that improve the loss, and their own batch more."""
    return [evaluated(peer(i), rand=GAINS[i]) for i in numbers]


def weights_of(book: ScoreBook, *, slashed: tuple[Address, ...] = ()) -> tuple[int, ...]:
    """Weights of peers 0 to 4 in slots 0 to 4."""
    return book.weights(book.epoch, slots=slots_of(5), slot_count=5, slashed=slashed)


def epoch_of(
    *last: Evaluation, faults: dict[Address, tuple[Fault, ...]] | None = None
) -> ScoreBook:
    """An epoch of four honest peers and these ones."""
    rounds = [seen_round(r, [*honest(0, 1, 2, 3), *last], faults=faults) for r in (1, 2, 3)]
    return observed(*rounds)


def test_weights__first_epoch__pays_every_honest_peer() -> None:
    weights = weights_of(epoch_of(*honest(4)))
    assert min(weights) > 0
    assert sum(weights) == FULL_WEIGHT


def test_weights__two_rounds_of_three__are_paid_already() -> None:
    rounds = [
        seen_round(1, honest(0, 1, 2, 3)),
        *(seen_round(r, honest(0, 1, 2, 3, 4)) for r in (2, 3)),
    ]
    weights = weights_of(observed(*rounds))
    assert 0 < weights[4] < min(weights[:4])


@pytest.mark.parametrize(
    "cheat",
    [
        evaluated(peer(4), rand=0.0, own=0.0),
        evaluated(peer(4), rand=-0.002, own=0.001),
        evaluated(peer(4), rand=0.002, own=0.003),
        evaluated(peer(4), rand=-0.05, own=-0.04),
        evaluated(peer(4), rand=-0.05, own=-0.06),
        evaluated(peer(4), rand=0.05, own=0.05),
        evaluated(peer(4), rand=0.05, own=0.049),
        evaluated(peer(4), rand=float("inf")),
        evaluated(peer(4), rand=float("nan")),
    ],
    ids=["zero", "noise", "lucky noise", "flipped", "twice negative", "tie", "copy", "inf", "nan"],
)
def test_weights__useless_work__gets_nothing(cheat: Evaluation) -> None:
    weights = weights_of(epoch_of(cheat))
    assert weights[4] == 0
    assert min(weights[:4]) > 0
    assert sum(weights) == FULL_WEIGHT


@pytest.mark.parametrize("fault", [Fault.WRONG_DATA, Fault.EQUIVOCATION, Fault.OVERSIZE])
def test_weights__one_barring_fault__costs_the_epoch_and_no_more(fault: Fault) -> None:
    book = observed(
        seen_round(1, honest(0, 1, 2, 3), faults={peer(4): (fault,)}),
        *(seen_round(r, honest(0, 1, 2, 3, 4)) for r in (2, 3)),
    )
    assert weights_of(book)[4] == 0
    for round_ in (4, 5, 6):
        book = book.observe_round(seen_round(round_, honest(0, 1, 2, 3, 4)))
    assert weights_of(book)[4] > 0


def test_weights__barred_even_if_accepted_and_well_rated() -> None:
    book = epoch_of(*honest(4), faults={peer(4): (Fault.LOCAL_STATE,)})
    assert weights_of(book)[4] == 0
    assert book.record(peer(4)).rating.ordinal < book.null.ordinal


def test_weights__payload_of_an_earlier_round__is_found_without_being_told() -> None:
    stolen = some_hash(f"{peer(0)} 1")
    roots = {peer(i): some_hash(f"{peer(i)} 3") for i in range(4)} | {peer(4): stolen}
    book = observed(
        seen_round(1, honest(0, 1, 2, 3, 4)),
        seen_round(2, honest(0, 1, 2, 3, 4)),
        seen_round(3, honest(0, 1, 2, 3, 4), roots=roots),
    )
    assert book.record(peer(4)).barred is Fault.REUSED_PAYLOAD
    assert book.record(peer(0)).barred is None
    weights = weights_of(book)
    assert weights[4] == 0
    assert min(weights[:4]) > 0


def test_weights__own_old_payload__is_reuse_as_well() -> None:
    roots = {peer(0): some_hash("same")}
    book = observed(seen_round(1, honest(0), roots=roots), seen_round(2, honest(0), roots=roots))
    assert book.record(peer(0)).barred is Fault.REUSED_PAYLOAD


def test_weights__slashed__gets_nothing() -> None:
    weights = weights_of(epoch_of(*honest(4)), slashed=(peer(4), peer(1)))
    assert weights[4] == weights[1] == 0
    assert sum(weights) == FULL_WEIGHT


def test_weights__accepted_and_never_evaluated__gets_nothing() -> None:
    rounds = [seen_round(r, honest(0, 1), accepted=[peer(0), peer(1), peer(2)]) for r in (1, 2, 3)]
    assert weights_of(observed(*rounds))[2:] == (0, 0, 0)


def test_weights__absent_for_an_epoch__gets_nothing_for_its_past() -> None:
    book = epoch_of(*honest(4))
    for round_ in (4, 5, 6):
        book = book.observe_round(seen_round(round_, honest(0, 1, 2, 3)))
    assert weights_of(book)[4] == 0


def test_weights__epoch_without_rounds__is_all_zero() -> None:
    book = epoch_of()
    assert book.weights(Epoch(2), slots=slots_of(5), slot_count=6) == (0,) * 6
    void = observed(*(seen_round(r, void=True) for r in (1, 2, 3)))
    assert weights_of(void) == (0,) * 5


def test_weights__asked_for_too_late__is_our_bug() -> None:
    book = epoch_of().observe_round(seen_round(4, honest(0)))
    with pytest.raises(Contradiction):
        book.weights(Epoch(1), slots=slots_of(5), slot_count=5)


def test_weights__other_holder_of_the_slot__does_not_inherit() -> None:
    book = epoch_of(*honest(4))
    slots = {Slot(0): peer(9), Slot(1): peer(0)}
    weights = book.weights(Epoch(1), slots=slots, slot_count=2)
    assert weights == (0, FULL_WEIGHT)


def test_strikes__eight_rounds_out_of_sync__cost_nine_tenths() -> None:
    book = observed(*(seen_round(r, honest(0, 1, 2, 3, 4)) for r in range(1, 7)))
    for round_ in range(7, 15):
        faults = {peer(4): (Fault.WRONG_ROOT,)}
        book = book.observe_round(seen_round(round_, honest(0, 1, 2, 3), faults=faults))
    assert book.record(peer(4)).strikes == 8
    book = book.observe_round(seen_round(15, honest(0, 1, 2, 3, 4)))
    assert book.score(peer(4)).standing == RULES.phi**7
    for round_ in range(16, 24):
        book = book.observe_round(seen_round(round_, honest(0, 1, 2, 3, 4)))
    assert book.score(peer(4)).standing == 1.0


def test_strikes__without_end__stop_at_the_most() -> None:
    rounds = [seen_round(r, faults={peer(0): (Fault.MISSING,)}) for r in range(1, 40)]
    assert observed(*rounds).record(peer(0)).strikes == MAX_STRIKES


def test_strikes__faults_that_prove_nothing__cost_nothing() -> None:
    faults = {peer(0): (Fault.BAD_SIGNATURE, Fault.NOT_COMMITTED, Fault.BEHIND)}
    record = observed(seen_round(1, faults=faults)).record(peer(0))
    assert (record.strikes, record.barred) == (0, None)


def test_void_round__strikes_nobody_and_counts_for_nothing() -> None:
    book = observed(
        seen_round(1, honest(0, 1, 2, 3, 4)),
        seen_round(2, void=True, faults={peer(4): (Fault.MISSING,)}),
        seen_round(3, honest(0, 1, 2, 3, 4)),
    )
    assert book.rounds == 2
    assert book.score(peer(4)).standing == book.score(peer(4)).presence == 1.0


def test_void_round__proof_of_equivocation__bars_all_the_same() -> None:
    book = observed(
        seen_round(1, honest(0, 1, 2, 3, 4)),
        seen_round(2, void=True, faults={peer(4): (Fault.EQUIVOCATION,)}),
        seen_round(3, honest(0, 1, 2, 3, 4)),
    )
    assert weights_of(book)[4] == 0
    assert book.record(peer(4)).rating.ordinal > book.null.ordinal


def test_presence__is_the_part_of_the_epochs_rounds() -> None:
    book = observed(
        seen_round(1, honest(0, 1, 2, 3, 4)),
        seen_round(2, honest(0, 1, 2, 3, 4)),
        seen_round(3, honest(0, 1, 2, 3)),
    )
    assert book.score(peer(4)).presence == pytest.approx(2 / 3)
    assert book.score(peer(0)).presence == 1.0


def test_observe__round_again_or_earlier__is_refused() -> None:
    book = observed(seen_round(2, honest(0)))
    for round_ in (1, 2):
        with pytest.raises(Contradiction):
            book.observe_round(seen_round(round_, honest(0)))


@pytest.mark.parametrize(
    "change",
    [
        {"accepted": ()},
        {"void": True},
        {"accepted": (peer(0), peer(0))},
        {"evaluations": (*honest(0), *honest(0))},
    ],
)
def test_observation__contradictions__are_refused(change: dict[str, object]) -> None:
    with pytest.raises(Contradiction):
        replace(seen_round(1, honest(0)), **change)  # type: ignore[arg-type]


def test_observe__leaves_the_old_book_as_it_was() -> None:
    book = observed(seen_round(1, honest(0, 1)))
    before = replace(book, miners=dict(book.miners))
    book.observe_round(seen_round(2, honest(0, 1)))
    assert book == before


def test_sampler_views__name_who_was_evaluated_when() -> None:
    book = observed(
        seen_round(1, honest(0, 1)), seen_round(2, honest(1), accepted=[peer(1), peer(2)])
    )
    assert book.last_evaluated() == {peer(0): 1, peer(1): 2}
    assert set(book.ordinals()) == {peer(0), peer(1), peer(2)}
    assert book.reused(some_hash(f"{peer(0)} 1"), Round(2)) is not None


gains = st.floats(-0.1, 0.1)
peers_seen = st.dictionaries(st.integers(0, 4), st.tuples(gains, gains), max_size=5)


def observation(
    round_: int, case: dict[int, tuple[float, float]], bad: set[int]
) -> RoundObservation:
    return seen_round(
        round_,
        [evaluated(peer(i), rand=rand, own=own) for i, (rand, own) in case.items()],
        faults={peer(i): (Fault.MISSING,) for i in bad - set(case)},
    )


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(peers_seen, st.sets(st.integers(0, 4))), min_size=1, max_size=7))
def test_weights__any_history__never_pay_without_positive_evidence(
    history: list[tuple[dict[int, tuple[float, float]], set[int]]],
) -> None:
    book = observed(*(observation(i + 1, *case) for i, case in enumerate(history)))
    weights = weights_of(book)
    assert sum(weights) in (0, FULL_WEIGHT)
    for i, weight in enumerate(weights):
        if weight:
            evaluations = [case[i] for case, _ in history if i in case]
            assert any(rand > 0 for rand, _ in evaluations)
            assert any(own > rand for rand, own in evaluations)
            assert book.record(peer(i)).accepted > 0


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(peers_seen, st.sets(st.integers(0, 4))), min_size=1, max_size=5), st.data()
)
def test_observe__order_within_a_round__does_not_change_a_bit(
    history: list[tuple[dict[int, tuple[float, float]], set[int]]], data: st.DataObject
) -> None:
    rounds = [observation(i + 1, *case) for i, case in enumerate(history)]
    shuffled = [
        replace(
            seen,
            evaluations=tuple(data.draw(st.permutations(seen.evaluations))),
            accepted=tuple(data.draw(st.permutations(seen.accepted))),
            faults=dict(data.draw(st.permutations(list(seen.faults.items())))),
        )
        for seen in rounds
    ]
    assert observed(*rounds) == observed(*shuffled)


@settings(deadline=None, max_examples=30)
@given(st.lists(peers_seen, min_size=1, max_size=5), st.permutations(list(range(5))))
def test_weights__slots_permuted__follow_the_accounts(
    history: list[dict[int, tuple[float, float]]], order: list[int]
) -> None:
    book = observed(*(observation(i + 1, case, set()) for i, case in enumerate(history)))
    straight = weights_of(book)
    slots = {Slot(slot): peer(i) for slot, i in enumerate(order)}
    permuted = book.weights(book.epoch, slots=slots, slot_count=5)
    for slot, i in enumerate(order):
        # The unit that rounding leaves over may go to another of two equals.
        assert abs(permuted[slot] - straight[i]) <= 1


def test_observe__payloads_that_were_not_seen__are_not_remembered() -> None:
    roots: dict[Address, Hash32] = {}
    assert observed(seen_round(1, honest(0), roots=roots)).payloads.seen == {}


def test_match__a_copy__takes_no_part_and_is_still_measured() -> None:
    originals = [evaluated(peer(i), rand=0.05 - 0.01 * i) for i in range(3)]
    copy = evaluated(peer(3), rand=0.05, own=0.04)
    flagged = {peer(3): (Fault.OVERLAP,)}
    alone = observed(seen_round(1, originals))
    book = observed(seen_round(1, [*originals, copy], faults=flagged))
    for i in range(3):
        assert book.record(peer(i)).rating == alone.record(peer(i)).rating
    assert book.null == alone.null
    record = book.record(peer(3))
    assert record.rating == prior(RULES)
    assert (record.computation.count, record.strikes, record.last_evaluated) == (1, 1, 1)
