"""What the pure parts need from outside, as Protocols: each has a real and, in tests, a fake form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from protocol.ids import Address, Hash32


class Signer(Protocol):
    """Holds one key and signs 32-byte digests with it."""

    @property
    def address(self) -> Address:
        """The key's address."""

    def sign_digest(self, digest: Hash32) -> bytes:
        """r || s || v, 65 bytes, low s, v 27 or 28."""


class Metrics(Protocol):
    """Counts and measures; labels are few and bounded."""

    def count(self, name: str, amount: int = 1, labels: Mapping[str, str] | None = None) -> None:
        """Adds to a counter."""

    def gauge(self, name: str, value: float, labels: Mapping[str, str] | None = None) -> None:
        """Sets a gauge."""
