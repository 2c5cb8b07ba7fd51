"""What a validator reports: exact both ways, and nothing else is taken for a report."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.errors import Rejected
from scoring.checks import Fault
from scoring.evaluation import Evaluation
from scoring.report import (
    AverageReport,
    Bits,
    EpochReport,
    LossReport,
    RatingReport,
    RoundReport,
    bits,
    peers_of,
    value_of,
)
from tests.scoring.peers import peer
from tests.scoring.reports import REPORT, told

FLOATS = st.floats(allow_nan=False)


@settings(deadline=None)
@given(FLOATS, FLOATS, FLOATS)
def test_report__any_floats__come_back_exactly(one: float, two: float, three: float) -> None:
    first, *others = REPORT.losses
    loss = replace(first, rand_after=bits(one), own_before=bits(two))
    report = replace(REPORT, losses=(loss, *others), heldout_loss=bits(three))
    read = RoundReport.from_bytes(report.to_bytes())
    assert read == report
    assert math.copysign(1, value_of(read.heldout_loss)) == math.copysign(1, three)


@settings(deadline=None)
@given(st.data())
def test_report__mutated__is_rejected_or_canonical(data: st.DataObject) -> None:
    raw = bytearray(REPORT.to_bytes())
    place = data.draw(st.integers(0, len(raw) - 1))
    if data.draw(st.booleans()):
        raw[place] ^= data.draw(st.integers(1, 255))
    else:
        del raw[place : place + data.draw(st.integers(1, 20))]
    try:
        parsed = RoundReport.from_bytes(bytes(raw))
    except Rejected:
        return
    assert parsed.to_bytes() == bytes(raw)


@pytest.mark.parametrize("text", ["", "one", "0x1.8p", "1e", "0x1p9999999", "1.5", "nan "])
@pytest.mark.parametrize(
    "with_float",
    [
        lambda text: replace(REPORT, heldout_loss=text),
        lambda text: replace(REPORT.losses[0], own_after=text),
        lambda text: replace(REPORT.peers[0], score=text),
        lambda text: replace(REPORT.overlaps[0], share=text),
        lambda text: RatingReport(mu=Bits(text), sigma=bits(1.0)),
        lambda text: AverageReport(mean=Bits(text), count=0),
    ],
)
def test_report__not_a_float__is_rejected(with_float: Callable[[str], object], text: str) -> None:
    with pytest.raises(Rejected):
        with_float(text)


def test_report__unknown_fault_or_rules__is_rejected() -> None:
    with pytest.raises(Rejected):
        replace(REPORT.peers[0], barred="bad-luck")
    with pytest.raises(Rejected):
        replace(REPORT, scoring=replace(REPORT.scoring, phi="many"))
    with pytest.raises(Rejected):
        replace(REPORT, scoring=replace(REPORT.scoring, phi="2"))


def test_losses__evaluation__keeps_every_bit() -> None:
    evaluation = Evaluation(
        miner=peer(0),
        rand_before=5.7,
        rand_after=math.nextafter(5.7, 6),
        own_before=math.inf,
        own_after=0.1 + 0.2,
    )
    assert LossReport.of(evaluation).evaluation() == evaluation


def test_peers_of__book__names_everybody_in_order_with_what_bars_them() -> None:
    teller = told(1)
    report = teller.tell(2, faults={peer(3): [Fault.WRONG_DATA]})
    assert [each.miner for each in report.peers] == sorted(teller.slots.values())
    assert {each.miner: each.barred for each in peers_of(teller.book) if each.barred} == {
        peer(3): "wrong-data"
    }
    assert report.peer(peer(3)) == report.peers[3]
    assert report.peer(peer(77)) is None


def test_epoch_report__comes_back_and_knows_each_weight() -> None:
    teller = told(2)
    report = teller.weigh()
    assert EpochReport.from_bytes(report.to_bytes()) == report
    assert sum(report.weight_of(miner) for miner in teller.slots.values()) == 65535
    assert report.weight_of(peer(77)) == 0
