"""keccak-256, sha-256, and the ABI encoding of static values that the contracts hash.

Only static types are needed: whatever the chain and a node both hash is a row of 32-byte words.
"""

from __future__ import annotations

import hashlib

from Crypto.Hash import keccak


def keccak256(data: bytes) -> bytes:
    """keccak-256 as the EVM computes it (not NIST SHA3)."""
    return keccak.new(digest_bits=256, data=data).digest()


def sha256(data: bytes) -> bytes:
    """sha-256, the hash of every tree that a contract opens through the precompile."""
    return hashlib.sha256(data).digest()


def abi_words(*values: int | bytes | str) -> bytes:
    """``abi.encode`` of static values: uints, bytes32 and addresses (``0x`` strings).

    Args:
        values: an int in [0, 2^256), exactly 32 raw bytes, or an address string.

    Returns:
        One 32-byte word per value, concatenated.

    Raises:
        ValueError: a value of another size.
    """
    return b"".join(_word(value) for value in values)


def _word(value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        if not 0 <= value < 1 << 256:
            raise ValueError(f"not a uint256: {value}")
        return value.to_bytes(32, "big")
    if isinstance(value, str):
        raw = bytes.fromhex(value.removeprefix("0x"))
        if len(raw) != 20:
            raise ValueError(f"not an address: {value}")
        return raw.rjust(32, b"\0")
    if len(value) != 32:
        raise ValueError(f"not a bytes32: {len(value)} bytes")
    return bytes(value)
