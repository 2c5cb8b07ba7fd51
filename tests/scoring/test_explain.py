"""Explanations: every factor is the book's, and what is said to help does, when the round is lived through once more with it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.ids import Address, Round
from scoring.advice import FACTOR_ADVICE, FAULT_ADVICE
from scoring.checks import Fault
from scoring.evaluation import Evaluation
from scoring.explain import Settled, explain
from scoring.report import RoundReport, value_of
from scoring.wording import in_words
from tests.scoring.peers import evaluated, peer
from tests.scoring.reports import Teller, by_rank, told

MINE = peer(1)


def epoch_of(teller: Teller, epoch: int) -> tuple[list[RoundReport], RoundReport | None]:
    reports = [report for report in teller.reports if report.epoch == epoch]
    earlier = [report for report in teller.reports if report.epoch < epoch]
    return reports, (earlier[-1] if earlier else None)


def test_explain__ordinary_miner__product_of_the_factors_is_the_score() -> None:
    teller = told(6)
    reports, before = epoch_of(teller, 2)
    for miner in teller.slots.values():
        found = explain(miner, reports, before=before, weights=teller.weigh())
        score = teller.book.score(miner)
        factors = (found.computation, found.rating, found.standing, found.presence)
        assert factors == (
            teller.book.record(miner).computation.above_luck(
                gamma=teller.book.rules.mu_gamma, z=teller.book.rules.mu_margin
            ),
            *factors[1:],
        )
        if score.total:
            assert factors == (score.computation, score.rating, score.standing, score.presence)
        assert found.score == score.total
        assert (found.evaluations, found.won) == (3, 3)
        assert found.rounds == found.accepted == (4, 5, 6)
        assert found.weight == teller.weigh().weight_of(miner)
    shares = [explain(miner, reports).share for miner in teller.slots.values()]
    assert sum(shares) == pytest.approx(1)


def test_explain__missed_rounds__would_have_gained_what_presence_says() -> None:
    teller = told(3)
    for round_ in (4, 5, 6):
        teller.tell(round_, missing=[MINE] if round_ == 5 else ())
    reports, before = epoch_of(teller, 2)
    found = explain(MINE, reports, before=before)
    assert found.missed == (5,)
    assert found.presence == pytest.approx(2 / 3)
    change = next(each for each in found.changes if each.factor == "presence")
    assert change.score == pytest.approx(found.score * 3 / 2)


def lost_once(miner: Address, round_: Round) -> Evaluation:
    loses = miner == MINE and round_ == 5
    return evaluated(miner, rand=0.4, own=0.1) if loses else by_rank(miner, round_)


def test_explain__an_evaluation_lost__computation_names_what_all_won_would_give() -> None:
    played, better = told(3), told(3)
    for round_ in (4, 5, 6):
        played.tell(round_, lost_once)
        better.tell(
            round_,
            lambda miner, number: replace(
                lost_once(miner, number), own_after=by_rank(miner, number).own_after
            ),
        )
    reports, before = epoch_of(played, 2)
    found = explain(MINE, reports, before=before)
    assert (found.evaluations, found.won) == (3, 2)
    change = next(each for each in found.changes if each.factor == "computation")
    assert change.score == pytest.approx(better.book.score(MINE).total)
    assert change.score > found.score


def test_explain__fault__costs_standing_and_is_named_with_advice() -> None:
    teller = told(3)
    for round_ in (4, 5, 6):
        teller.tell(round_, faults={MINE: [Fault.MISSING]} if round_ == 6 else None)
    reports, before = epoch_of(teller, 2)
    found = explain(MINE, reports, before=before)
    assert [(each.round, each.fault) for each in found.faults] == [(6, "missing")]
    assert (found.strikes, found.standing) == (1, 0.75)
    words = "\n".join(in_words(found))
    assert "fault        round 6: missing" in words
    assert FAULT_ADVICE[Fault.MISSING] in words


def test_explain__barred__comes_first_and_says_what_it_cost() -> None:
    teller = told(3)
    teller.tell(4, faults={MINE: [Fault.REUSED_PAYLOAD]})
    reports, before = epoch_of(teller, 2)
    found = explain(MINE, reports, before=before)
    assert (found.score, found.barred) == (0, "reused-payload")
    assert (found.evaluations, found.won) == (1, 0), "it played and lost"
    assert found.changes[0].factor == "barred"
    assert "no pay in this epoch: reused-payload" in "\n".join(in_words(found))


def test_explain__useless_updates__names_what_is_zero_in_the_order_of_mending() -> None:
    teller = Teller()
    for round_ in (1, 2):
        teller.tell(
            round_,
            lambda miner, number: (
                evaluated(miner, rand=-0.1, own=-0.2) if miner == MINE else by_rank(miner, number)
            ),
        )
    found = explain(MINE, teller.reports)
    assert found.score == 0
    assert [each.factor for each in found.changes][:3] == ["improvement", "rating", "computation"]
    assert found.mean_gain == pytest.approx(-0.1)


def test_explain__never_evaluated__says_so() -> None:
    teller = told(1, miners=20)
    unseen = next(each for each in teller.reports[0].peers if not each.computation.count)
    found = explain(unseen.miner, teller.reports)
    assert found.mean_gain is None
    assert [each.factor for each in found.changes] == ["evaluations"]


def test_explain__settled__is_told() -> None:
    found = explain(MINE, told(2).reports, settled=Settled(consensus_weight=7, amount=9))
    assert "settled      consensus weight 7, pay 9 base units" in in_words(found)


def test_explain__unknown_miner__raises_value_error() -> None:
    with pytest.raises(ValueError):
        explain(peer(77), told(1).reports)


def test_advice__every_fault_and_factor__has_some() -> None:
    assert set(FAULT_ADVICE) == set(Fault)
    assert all(FACTOR_ADVICE.values())


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.dictionaries(st.integers(0, 3), st.sampled_from(list(Fault))), min_size=1, max_size=3
    )
)
def test_explain__any_epoch__no_change_alone_lowers_the_score(
    rounds: list[dict[int, Fault]],
) -> None:
    teller = Teller(miners=4)
    for number, faults in enumerate(rounds, start=1):
        teller.tell(number, faults={peer(miner): [fault] for miner, fault in faults.items()})
    for miner in teller.book.miners:
        found = explain(miner, teller.reports)
        assert found.score == value_of(teller.reports[-1].peer(miner).score)  # type: ignore[union-attr]
        assert all(change.score >= found.score for change in found.changes)
        assert [change.score for change in found.changes] == sorted(
            (change.score for change in found.changes), reverse=True
        )
        assert in_words(found)
