"""What a validator reports: exact both ways, and nothing else is taken for a report."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import Rejected
from protocol.ids import ZERO32, Epoch, Round
from scoring.book import RoundObservation, ScoreBook
from scoring.checks import Fault
from scoring.evaluation import Evaluation
from scoring.rules import Rules
from tests.specs import SPEC, some_hash
from tests.subnet.stepped import key_named
from validator.report import LossReport, PeerReport, RoundReport, losses_of, peers_of

ADDRESSES = [key_named(f"miner {number}").address for number in range(3)]
FLOATS = st.floats(allow_nan=False).map(float.hex)


def reports() -> st.SearchStrategy[RoundReport]:
    address = st.sampled_from(ADDRESSES)
    losses = st.builds(
        LossReport,
        miner=address,
        rand_before=FLOATS,
        rand_after=FLOATS,
        own_before=FLOATS,
        own_after=FLOATS,
    )
    peers = st.builds(
        PeerReport,
        miner=address,
        ordinal=FLOATS,
        mu=FLOATS,
        score=FLOATS,
        barred=st.sampled_from(["", *Fault]).map(str),
    )
    return st.builds(
        RoundReport,
        round=st.integers(1, 1 << 40).map(Round),
        epoch=st.integers(1, 1 << 40).map(Epoch),
        validator=address,
        beacon=st.sampled_from([ZERO32, some_hash("beacon")]),
        heldout_loss=FLOATS,
        random=st.lists(st.integers(0, 1000)).map(tuple),
        losses=st.lists(losses, max_size=3).map(tuple),
        peers=st.lists(peers, max_size=3).map(tuple),
    )


@given(reports())
def test_report__any__comes_back_exactly(report: RoundReport) -> None:
    assert RoundReport.from_bytes(report.to_bytes()) == report


@given(reports(), st.data())
def test_report__mutated__is_rejected_or_canonical(
    report: RoundReport, data: st.DataObject
) -> None:
    raw = bytearray(report.to_bytes())
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


@pytest.mark.parametrize("field", ["heldout_loss", "random_loss", "peer"])
@pytest.mark.parametrize("text", ["", "one", "0x1.8p", "1e", "0x1p9999999", "1.5"])
def test_report__not_a_float__is_rejected(field: str, text: str) -> None:
    loss = LossReport(
        miner=ADDRESSES[0],
        rand_before="0x1p0",
        rand_after="0x1p0",
        own_before="0x1p0",
        own_after="0x1p0",
    )
    peer = PeerReport(miner=ADDRESSES[0], ordinal="0x0p0", mu="0x0p0", score="0x0p0", barred="")
    report = RoundReport(
        round=Round(1),
        epoch=Epoch(1),
        validator=ADDRESSES[1],
        beacon=ZERO32,
        heldout_loss="0x1p0",
        random=(),
        losses=(loss,),
        peers=(peer,),
    )
    match field:
        case "heldout_loss":
            report = replace(report, heldout_loss=text)
        case "random_loss":
            report = replace(report, losses=(replace(loss, rand_after=text),))
        case _:
            report = replace(report, peers=(replace(peer, score=text),))
    with pytest.raises(Rejected):
        RoundReport.from_bytes(report.to_bytes())


def test_losses_of__evaluations__keep_every_bit() -> None:
    values = (5.7, math.nextafter(5.7, 6), math.inf, 0.1 + 0.2)
    evaluation = Evaluation(
        miner=ADDRESSES[0],
        rand_before=values[0],
        rand_after=values[1],
        own_before=values[2],
        own_after=values[3],
    )
    (report,) = losses_of([evaluation])
    read = (report.rand_before, report.rand_after, report.own_before, report.own_after)
    assert tuple(map(float.fromhex, read)) == values


def test_peers_of__book__names_everybody_in_order_with_what_bars_them() -> None:
    book = ScoreBook.empty(Rules.of(SPEC.scoring)).observe_round(
        RoundObservation(
            round=Round(1),
            epoch=Epoch(1),
            void=False,
            accepted=tuple(ADDRESSES[:2]),
            faults={ADDRESSES[2]: (Fault.WRONG_DATA,)},
            payload_roots={},
            evaluations=(),
        )
    )
    found = peers_of(book)
    assert [peer.miner for peer in found] == sorted(ADDRESSES)
    assert {peer.miner: peer.barred for peer in found if peer.barred} == {
        ADDRESSES[2]: "wrong-data"
    }
