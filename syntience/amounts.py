"""Token amounts as people write and read them: decimal tokens, exact to the base unit."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation, localcontext

from protocol.ids import UNITS_PER_TOKEN, Units
from syntience.errors import ConfigError

_MOST_DIGITS = 40


def parse_tokens(text: str, *, flag: str) -> Units:
    """``"12.5"`` as base units.

    Args:
        text: decimal tokens, not negative, at most 18 places.
        flag: what the operator gave it with, for the message.

    Raises:
        ConfigError: no such amount.
    """
    cleaned = text.strip().replace("_", "")
    with localcontext() as context:
        context.prec = 2 * _MOST_DIGITS
        try:
            units = Decimal(cleaned) * UNITS_PER_TOKEN
        except InvalidOperation:
            units = Decimal("NaN")
        possible = units.is_finite() and 0 <= units < 10**_MOST_DIGITS
        if not possible or len(cleaned) > _MOST_DIGITS or units % 1:
            raise ConfigError(
                f"{text!r} is no amount of tokens",
                f"give {flag} as a decimal number such as 100 or 12.5",
            )
        return Units(int(units))


def exact_tokens(amount: Units) -> str:
    """All the digits that count: ``"12.5"``."""
    whole, rest = divmod(amount, UNITS_PER_TOKEN)
    places = f"{rest:018d}".rstrip("0")
    return f"{whole}.{places}" if places else str(whole)
