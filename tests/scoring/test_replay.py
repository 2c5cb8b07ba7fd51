"""Replaying reports: right ones to equal bits, false ones with what is false and whose."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.ids import Hash32, Round
from scoring.book import MinerRecord, ScoreBook
from scoring.checks import Fault
from scoring.replay import Difference, own_batch, replay, replay_weights
from scoring.report import Bits, RoundReport, bits, book_digest, value_of
from tests.scoring.peers import RULES, peer
from tests.scoring.reports import Teller, assigned, by_rank, told
from tests.specs import some_hash


def empty(reports: list[RoundReport]) -> ScoreBook:
    return ScoreBook.empty(reports[0].rules)


def test_replay__reports_read_back__gives_the_same_book_and_weights() -> None:
    teller = told(5, miners=12)  # more than are evaluated in a round
    teller.tell(6, faults={peer(0): [Fault.MISSING], peer(1): [Fault.REUSED_PAYLOAD]})
    weights = [teller.weigh()]
    teller.tell(7, void="no evaluation beacon")
    teller.tell(9, missing=[peer(3)])  # a round that it slept through is no gap in its book
    weights.append(teller.weigh(slashed=[peer(4)]))
    read = [RoundReport.from_bytes(report.to_bytes()) for report in teller.reports]
    found = replay(read, empty(read), weights)
    assert found.differences == ()
    assert found.rounds == tuple(report.round for report in read)
    assert found.epochs == (2, 3)
    assert found.book == teller.book
    assert weights[0].weights[1] == 0, "barred"


def test_replay__from_the_middle__needs_the_book_before() -> None:
    teller = told(3)
    book, first = teller.book, len(teller.reports)
    teller.tell(4)
    late = teller.reports[first:]
    assert replay(late, book).differences == ()
    found = replay(late, empty(late))
    assert {each.factor for each in found.differences} == {"book before", "round before"}
    assert found.rounds == ()


def moved(spelling: Bits) -> Bits:
    return bits(value_of(spelling) + 1e-9)


def false_loss(report: RoundReport) -> RoundReport:
    """The best now looks like the worst; only ranks enter a rating, so a smaller lie shows in the losses alone."""
    first, *others = report.losses
    worse = bits(value_of(first.rand_after) + 1)
    return replace(report, losses=(replace(first, rand_after=worse), *others))


def false_rating(report: RoundReport) -> RoundReport:
    first, *others = report.peers
    rating = replace(first.rating, sigma=moved(first.rating.sigma))
    return replace(report, peers=(replace(first, rating=rating), *others))


def false_strikes(report: RoundReport) -> RoundReport:
    first, *others = report.peers
    return replace(report, peers=(replace(first, strikes=first.strikes + 1), *others))


def without_a_fault(report: RoundReport) -> RoundReport:
    return replace(report, faults=())


def friendly_draw(report: RoundReport) -> RoundReport:
    return replace(report, random=tuple(sample + 1 for sample in report.random))


def left_out(report: RoundReport) -> RoundReport:
    return replace(report, losses=report.losses[1:])


def invented_copy(report: RoundReport) -> RoundReport:
    first, second = report.losses[0].miner, report.losses[1].miner
    shares = tuple(
        replace(each, share=bits(0.99)) if (each.first, each.second) == (first, second) else each
        for each in report.overlaps
    )
    return replace(report, overlaps=shares)


@pytest.mark.parametrize(
    ("change", "factor"),
    [
        (false_loss, "rating.mu"),
        (false_rating, "rating.sigma"),
        (false_strikes, "strikes"),
        (without_a_fault, "strikes"),
        (friendly_draw, "D_rand"),
        (left_out, "sampled peers"),
        (invented_copy, "overlap fault"),
        (
            lambda report: replace(report, null=replace(report.null, mu=moved(report.null.mu))),
            "null rating.mu",
        ),
        (lambda report: replace(report, rounds=7), "rounds of the epoch"),
        (lambda report: replace(report, accepted=report.accepted[:-1]), "accepted"),
        (lambda report: replace(report, book_after=some_hash("else")), "book after"),
    ],
)
def test_replay__something_false__names_it(change: object, factor: str) -> None:
    assert callable(change)
    teller = told(2, miners=4)
    right = teller.tell(3, faults={peer(2): [Fault.FORMAT]})
    teller.tell(4)
    false = change(right)
    reports = [*teller.reports[:2], false, *teller.reports[3:]]
    found = replay(reports, empty(reports))
    assert found.rounds == (1, 2), "what follows from a false report is not compared"
    named = {each.factor for each in found.differences}
    if factor == "accepted":
        assert "observation" in named, "it evaluated somebody that it did not accept"
    else:
        assert factor in named
    assert all(each.where == "round 3" for each in found.differences)
    assert replay(teller.reports, empty(teller.reports)).differences == ()


def test_replay__a_false_rating__names_miner_factor_and_both_values() -> None:
    teller = told(2)
    report = false_rating(teller.reports[1])
    (found,) = replay([teller.reports[0], report], empty(teller.reports)).differences
    right = teller.reports[1].peers[0]
    assert found == Difference(
        where="round 2",
        miner=right.miner,
        factor="rating.sigma",
        reported=report.peers[0].rating.sigma,
        recomputed=right.rating.sigma,
    )
    assert str(found).startswith(f"round 2: {right.miner} rating.sigma: reported 0x1.")


def test_replay__reports_of_two_validators__differ_in_their_origin() -> None:
    one, other = Teller(), Teller(validator=peer(901))
    mixed = [one.tell(1), other.tell(1)]
    assert "validator" in {each.factor for each in replay(mixed, empty(mixed)).differences}


def test_replay_weights__false_weight__names_the_miner() -> None:
    teller = told(3)
    right = teller.weigh()
    false = replace(right, weights=(right.weights[0] + 5, right.weights[1] - 5, *right.weights[2:]))
    found = replay_weights(false, teller.book)
    assert [(each.miner, each.factor, each.reported) for each in found] == [
        (peer(0), "weight", str(right.weights[0] + 5)),
        (peer(1), "weight", str(right.weights[1] - 5)),
    ]
    forgiven = replace(right, slashed=(peer(0),))
    assert peer(0) in {each.miner for each in replay_weights(forgiven, teller.book)}


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.dictionaries(
            st.integers(0, 4),
            st.sampled_from([fault for fault in Fault if fault is not Fault.OVERLAP]),
            max_size=3,
        ),
        min_size=1,
        max_size=6,
    ),
    st.floats(allow_nan=False),
)
def test_replay__any_rounds__comes_to_equal_bits(
    rounds: list[dict[int, Fault]], strange: float
) -> None:
    teller = Teller(miners=5)
    for number, faults in enumerate(rounds, start=1):
        teller.tell(
            number,
            lambda miner, round_: (
                replace(by_rank(miner, round_), rand_after=strange)
                if miner == peer(4)
                else by_rank(miner, round_)
            ),
            faults={peer(miner): [fault] for miner, fault in faults.items()},
        )
    found = replay(teller.reports, empty(teller.reports), [teller.weigh()])
    assert found.differences == ()
    assert found.book == teller.book


def test_own_batch__is_all_that_the_miner_was_assigned() -> None:
    report = told(1).reports[0]
    expected = sorted(set(assigned(Round(1), report.assignment, peer(2))))
    assert own_batch(report, peer(2)) == expected


def test_peer_report__holds_everything_that_the_book_remembers() -> None:
    teller = told(4)
    for each in teller.reports[-1].peers:
        assert each.record() == teller.book.record(each.miner)
    kept = {field.name for field in fields(MinerRecord)}
    assert kept <= set(each.__slots__)


def test_book_digest__other_book__is_another() -> None:
    digests: set[Hash32] = {book_digest(ScoreBook.empty(RULES))}
    teller = Teller()
    for round_ in range(1, 4):
        teller.tell(round_)
        digests.add(book_digest(teller.book))
    assert len(digests) == 4
