"""What a transaction offers per gas, and how the offer grows when no block takes it. Pure arithmetic in wei."""

from __future__ import annotations

from ledger.errors import FeeTooHigh
from ledger.transactions import Fees

GWEI = 10**9
DEFAULT_TIP = GWEI
_BUMP_NUMERATOR, _BUMP_DENOMINATOR = 9, 8
"""Nodes replace a waiting transaction only if both of its fees grow by a tenth or more; we add an eighth."""


def offer(*, base_fee: int | None, tip: int, gas_price: int, cap: int) -> Fees:
    """Fees that stay acceptable while the base fee doubles (six full blocks).

    Args:
        base_fee: the head's; None on a chain without EIP-1559, where `gas_price` counts.
        tip: what the node suggests for the miner of the block.
        gas_price: what the node suggests on a chain without EIP-1559.
        cap: never offer more per gas.

    Raises:
        FeeTooHigh: the chain is dearer than the cap right now.
    """
    if base_fee is None:
        if gas_price > cap:
            raise FeeTooHigh(f"gas costs {gas_price} wei, above the cap of {cap}")
        return Fees(maximum=gas_price, priority=None)
    if base_fee > cap:
        raise FeeTooHigh(f"the base fee is {base_fee} wei, above the cap of {cap}")
    maximum = min(2 * base_fee + tip, cap)
    return Fees(maximum=maximum, priority=min(tip, maximum))


def bumped(old: Fees, current: Fees, *, cap: int) -> Fees | None:
    """The fees of a replacement, or None if they would exceed the cap."""
    maximum = max(_grown(old.maximum), current.maximum)
    if maximum > cap:
        return None
    if old.priority is None:
        return Fees(maximum=maximum, priority=None)
    return Fees(
        maximum=maximum, priority=min(max(_grown(old.priority), current.priority or 0), maximum)
    )


def _grown(fee: int) -> int:
    return fee * _BUMP_NUMERATOR // _BUMP_DENOMINATOR + 1
