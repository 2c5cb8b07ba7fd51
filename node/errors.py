"""Errors of a node's common machinery."""

from __future__ import annotations

from protocol.errors import Bug, Retryable, SyntienceError
from protocol.ids import Hash32, Round


class Contradiction(Bug):
    """The node was about to sign something that contradicts what it signed before."""

    def __init__(self, kind: str, key: str) -> None:
        super().__init__(f"refused to sign a second {kind} for {key}")
        self.kind = kind
        self.key = key


class MissingPayload(Retryable):
    """A payload of the accepted set can't be had from anyone just now."""


class NoCheckpoint(Retryable):
    """No validator offers a checkpoint that matches a finalised root just now."""


class Diverged(SyntienceError):
    """Our model is not the one that a majority of the validators attested."""

    def __init__(self, round_: Round, *, mine: Hash32, majority: Hash32) -> None:
        super().__init__(
            f"diverged at the start of round {round_}: mine {mine.hex()[:16]}, "
            f"the majority's {majority.hex()[:16]}"
        )
        self.majority = majority


class NoDataset(Retryable):
    """The run's data set is not here and nobody delivers it just now."""
