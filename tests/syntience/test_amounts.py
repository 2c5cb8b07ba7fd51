"""Amounts to the unit, and what is no amount."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.ids import Units
from syntience.amounts import exact_tokens, parse_tokens
from syntience.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("0", 0),
        ("12.5", 12_500_000_000_000_000_000),
        ("1_000", 1000 * 10**18),
        ("0.000000000000000001", 1),
        (" 7 ", 7 * 10**18),
        ("999999999999.000000000000000001", 999_999_999_999 * 10**18 + 1),
    ],
)
def test_parse_tokens__decimal__is_exact(text: str, units: int) -> None:
    assert parse_tokens(text, flag="--amount") == units


@pytest.mark.parametrize(
    "text", ["", "x", "-1", "nan", "inf", "1e999", "0.0000000000000000001", "1" * 50, "0x10", "1,5"]
)
def test_parse_tokens__anything_else__names_the_flag(text: str) -> None:
    with pytest.raises(ConfigError, match="give --amount as a decimal number"):
        parse_tokens(text, flag="--amount")


@given(st.integers(min_value=0, max_value=10**37))
def test_exact_tokens__any_amount__reads_back_the_same(units: int) -> None:
    assert parse_tokens(exact_tokens(Units(units)), flag="--amount") == units
