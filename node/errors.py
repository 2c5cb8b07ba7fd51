"""Errors of a node's common machinery."""

from __future__ import annotations

from pathlib import Path

from protocol.errors import Bug, OperatorError, Retryable, SyntienceError
from protocol.ids import Epoch, Hash32, Round
from protocol.terms import Terms


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


class WrongStart(OperatorError):
    """The model to start with is not the one whose root the run's contracts hold."""

    def __init__(self, found: Hash32, *, genesis: Hash32, folder: Path | None) -> None:
        super().__init__(
            f"the model {f'in {folder}' if folder else 'of the spec'} has the root {found.hex()}, "
            f"the run starts from {genesis.hex()}",
            "give the folder that the run's founder published with --start, or leave it out to fetch the model from validators",
        )


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


class OtherTerms(OperatorError):
    """The run goes by another spec than the node's.

    Args:
        present: what applies.
        begins: the epoch with which the node's own spec starts or started; None if it was never announced.
        epoch: under way.
    """

    def __init__(self, present: Terms, *, begins: Epoch | None, epoch: Epoch) -> None:
        if begins is not None and begins > epoch:
            super().__init__(
                f"the spec of this run file applies from epoch {begins} on, and epoch {epoch} is under way",
                "start with the present run file, and with this one then",
            )
        else:
            super().__init__(
                f"since epoch {present.from_epoch} the run goes by the spec 0x{present.spec_hash.hex()}, "
                "which is not this run file's",
                "get the run's new run file and start again with it",
            )
