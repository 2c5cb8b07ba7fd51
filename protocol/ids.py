"""Identifiers and units, each a distinct type so that a slot is never passed as a round."""

from __future__ import annotations

from typing import NewType

from protocol.errors import Rejected
from protocol.hashing import keccak256

Address = NewType("Address", str)
"""An account as an EIP-55 checksummed ``0x`` string; equal accounts are equal strings."""
Hash32 = NewType("Hash32", bytes)
"""Exactly 32 bytes: a digest, a root or an identifier derived from one."""
Round = NewType("Round", int)
"""Rounds count from 1; round 0 exists only in the clock's arithmetic."""
Epoch = NewType("Epoch", int)
"""Epochs count from 1; epoch 0 is the time before genesis."""
Slot = NewType("Slot", int)
"""A place among the miners or among the validators, fixed for one epoch."""
Units = NewType("Units", int)
"""Token base units (10^-18 of a token)."""

ZERO32 = Hash32(bytes(32))
ZERO_ADDRESS = Address("0x" + "0" * 40)
UNITS_PER_TOKEN = 10**18


def to_hash32(value: bytes | str) -> Hash32:
    """Checks and converts 32 raw bytes or a 64-digit hex string (``0x`` optional)."""
    try:
        raw = bytes.fromhex(value.removeprefix("0x")) if isinstance(value, str) else bytes(value)
    except ValueError as error:
        raise Rejected(f"not a hex string of 32 bytes: {value!r}") from error
    if len(raw) != 32:
        raise Rejected(f"expected 32 bytes, got {len(raw)}")
    return Hash32(raw)


def to_address(value: bytes | str) -> Address:
    """Checks and converts 20 raw bytes or a 40-digit hex string to the EIP-55 form.

    A mixed-case string with a wrong checksum is refused: it is a mistyped address.
    """
    try:
        raw = value if isinstance(value, bytes) else bytes.fromhex(value.removeprefix("0x"))
    except ValueError as error:
        raise Rejected(f"not an address: {value!r}") from error
    if len(raw) != 20:
        raise Rejected(f"not an address of 20 bytes: {value!r}")
    digits = raw.hex()
    checksum = keccak256(digits.encode()).hex()
    pairs = zip(digits, checksum, strict=False)
    mixed = "".join(d.upper() if int(c, 16) >= 8 else d for d, c in pairs)
    if isinstance(value, str):
        given = value.removeprefix("0x")
        if given not in (given.lower(), given.upper(), mixed):
            raise Rejected(f"address with a wrong checksum (mistyped?): {value}")
    return Address("0x" + mixed)


def address_bytes(address: Address) -> bytes:
    """The 20 raw bytes of an address."""
    return bytes.fromhex(address[2:])
