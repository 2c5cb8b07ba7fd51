"""Figures of the claims, on histories made by hand."""

from __future__ import annotations

import math

import pytest

from protocol.ids import Epoch, Round, Units
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
from syntience.lab.history import EpochRow, History, Standing
from tests.scoring.peers import peer

GOOD, BAD, JUDGE, COPIER = (peer(0), peer(1), peer(2)), (peer(3), peer(4)), peer(8), peer(9)


def history_of(
    *pays: tuple[int, ...], scores: tuple[float, float] = (1.0, 1.0), heldout: float = 4.0
) -> History:
    """Epochs of ten rounds with pay of three good and two bad peers and two validators."""
    accounts = (*GOOD, *BAD, JUDGE, COPIER)
    rows = [
        EpochRow(
            epoch=Epoch(number),
            round=Round(10 * number),
            weights={},
            pay={account: Units(pay) for account, pay in zip(accounts, row, strict=True)},
            accepted={},
            standings={
                account: Standing(
                    ordinal=30.0 if account in GOOD else 20.0,
                    mu=0.9 if account in GOOD else 0.1,
                    score=scores[number > 1] if account in BAD else 1.0,
                )
                for account in (*GOOD, *BAD)
            },
            heldout=heldout,
        )
        for number, row in enumerate(pays, start=1)
    ]
    return History(
        miners={"honest": GOOD, "bad": BAD},
        validators={"validator": (JUDGE,), "copier": (COPIER,)},
        epochs=rows,
    )


IGNORED = (0, 0, 0, 900, 900, 0, 0)
RUN = history_of(IGNORED, (100, 100, 80, 5, 3, 50, 40), scores=(1.0, 0.05), heldout=4.1)
TWIN = history_of(IGNORED, (100, 80, 80, 4, 4, 50, 50))


@pytest.mark.parametrize(
    ("claim", "figure", "holds"),
    [
        (PayAtMost(group="bad", most=0.05), 0.05, True),
        (PayAtMost(group="bad", most=0.04), 0.05, False),
        (TogetherAtMost(group="bad", than="honest", most=0.02), 8 / 280, False),
        (PaidAlike(), 0.2, True),
        (PaidAlike(within=0.1), 0.2, False),
        (NobodyExcluded(), 0, True),
        (NobodyExcluded(groups=("honest", "bad")), 0, True),
        (Ranked(order=("honest", "bad"), by_round=20), 0, True),
        (Ranked(order=("bad", "honest"), by_round=20), 1, False),
        (ComputationAtMost(group="bad", most=0.1), 0.1, True),
        (ComputationAtMost(group="honest", most=0.1), 0.9, False),
        (ScoreFalls(group="bad", start=10, end=20, most=0.1), 0.05, True),
        (PayMovedAtMost(groups=("honest",)), 0.25, False),
        (PayRaisedAtMost(group="bad", most=0.0), 0.0, True),
        (EarnsLess(group="copier", than="validator"), 0.8, True),
        (EarnsLess(group="validator", than="copier"), 1.25, False),
        (LossStays(most=0.2), 0.1, True),
        (LossStays(least=0.2), 0.1, False),
    ],
)
def test_claim__over_the_last_half__measures(claim: Claim, figure: float, *, holds: bool) -> None:
    finding = claim.judge(RUN, TWIN)
    assert finding.figure == pytest.approx(figure)
    assert finding.holds is holds


def test_nobody_excluded__an_unpaid_epoch__is_counted() -> None:
    assert NobodyExcluded().judge(history_of(IGNORED, IGNORED), None).figure == 3


def test_pay__of_nobody_honest__is_infinitely_more() -> None:
    finding = PayAtMost(group="bad", most=0.05).judge(history_of(IGNORED, IGNORED), None)
    assert finding.figure == math.inf
    assert not finding.holds
