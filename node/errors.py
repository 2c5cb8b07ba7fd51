"""Errors of a node's common machinery."""

from __future__ import annotations

from protocol.errors import Bug, Retryable


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
