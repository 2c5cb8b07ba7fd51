"""A promise of a run, kept or broken."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """One line of the verdict list."""

    holds: bool
    text: str
