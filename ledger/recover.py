"""Who signed a digest. Only the one canonical form of a signature counts.

A signature has 65 bytes, v is 27 or 28 and s lies in the lower half of the group's order: the same rules as
OpenZeppelin's ECDSA, so that what a node accepts a contract accepts too, and no signature has a second form.
"""

from __future__ import annotations

from eth_keys.datatypes import Signature
from eth_keys.exceptions import BadSignature as InvalidSignature
from eth_keys.exceptions import ValidationError

from ledger.errors import BadSignature
from protocol.ids import Address, Hash32, to_address

SIGNATURE_BYTES = 65
_ORDER = 0xFFFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFE_BAAEDCE6_AF48A03B_BFD25E8C_D0364141


def recover(digest: Hash32, signature: bytes) -> Address:
    """The address whose key signed the digest.

    Args:
        digest: 32 bytes.
        signature: r || s || v.

    Raises:
        BadSignature: not canonical, or no key signs like this.
    """
    if len(signature) != SIGNATURE_BYTES:
        raise BadSignature(f"a signature has {SIGNATURE_BYTES} bytes, not {len(signature)}")
    r, s, v = (
        int.from_bytes(signature[:32], "big"),
        int.from_bytes(signature[32:64], "big"),
        signature[64],
    )
    if v not in (27, 28):
        raise BadSignature(f"v is {v}, not 27 or 28")
    if not 0 < r < _ORDER or not 0 < s <= _ORDER // 2:
        raise BadSignature("r or s out of range")
    try:
        key = Signature(vrs=(v - 27, r, s)).recover_public_key_from_msg_hash(digest)
    except (InvalidSignature, ValidationError, ValueError) as error:
        raise BadSignature(f"no key signs like this: {error}") from error
    return to_address(key.to_canonical_address())
