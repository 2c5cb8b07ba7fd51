"""How an operator lets a miner train: choices that cost time or memory and change no bit."""

from __future__ import annotations

from dataclasses import dataclass

SAVE_EVERY_S = 60.0
"""Rounds that are shorter need no savepoint: they are soon done again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSettings:
    """What is the miner's own affair.

    Attributes:
        save_every_s: a round's progress is saved so many seconds after the last time; 0 after each step.
        checkpoint_activations: less memory for more time.
    """

    save_every_s: float = SAVE_EVERY_S
    checkpoint_activations: bool = False
