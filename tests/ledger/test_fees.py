"""Fees and the words of nodes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.broadcast import Answer, meaning_of
from ledger.errors import FeeTooHigh
from ledger.fees import GWEI, bumped, offer
from ledger.transactions import Fees

CAP = 500 * GWEI
wei = st.integers(1, 400 * GWEI)


@given(base_fee=wei, tip=wei)
def test_offer__any__within_the_cap_and_covers_the_base_fee(base_fee: int, tip: int) -> None:
    fees = offer(base_fee=base_fee, tip=tip, gas_price=1, cap=CAP)
    assert fees.priority is not None
    assert base_fee <= fees.maximum <= CAP
    assert fees.priority <= fees.maximum


def test_offer__chain_without_base_fee__takes_the_gas_price() -> None:
    assert offer(base_fee=None, tip=1, gas_price=7, cap=CAP) == Fees(maximum=7, priority=None)


@pytest.mark.parametrize("base_fee", [None, CAP + 1])
def test_offer__above_the_cap__waits(base_fee: int | None) -> None:
    with pytest.raises(FeeTooHigh):
        offer(base_fee=base_fee, tip=1, gas_price=CAP + 1, cap=CAP)


@given(old=wei, tip=wei, current=wei)
def test_bumped__any__grows_both_fees_by_a_tenth(old: int, tip: int, current: int) -> None:
    before = Fees(maximum=max(old, tip), priority=tip)
    after = bumped(before, Fees(maximum=current, priority=1), cap=CAP)
    if after is not None and after.priority is not None:
        assert 10 * after.maximum >= 11 * before.maximum
        assert 10 * after.priority >= 11 * tip
        assert after.priority <= after.maximum <= CAP


def test_bumped__above_the_cap__stays() -> None:
    assert bumped(Fees(maximum=CAP, priority=1), Fees(maximum=1, priority=1), cap=CAP) is None


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ("already known", Answer.ACCEPTED),
        ("transaction already imported", Answer.ACCEPTED),
        ("nonce too low: next nonce 5, tx nonce 4", Answer.NONCE_USED),
        ("replacement transaction underpriced", Answer.UNDERPRICED),
        ("max fee per gas less than block base fee", Answer.UNDERPRICED),
        ("Insufficient funds for gas * price + value", Answer.NO_FUNDS),
        ("txpool is full", Answer.REFUSED),
    ],
)
def test_meaning_of__words_of_nodes__sorted(message: str, answer: Answer) -> None:
    assert meaning_of(message) is answer
