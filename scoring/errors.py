"""The package's errors.

Retryable
  SubmissionMissing  an accepted submission must be fetched first
Rejected
  VectorRejected     revealed weights or a bitmap that break their format
OperatorError
  BookUnreadable     the stored score book is damaged or of another version
Bug
  Contradiction      the caller's facts exclude each other
"""

from __future__ import annotations

from protocol.errors import Bug, OperatorError, Rejected, Retryable


class SubmissionMissing(Retryable):
    """A majority holds a submission that this node does not; one of that majority will serve it."""


class VectorRejected(Rejected):
    """A weight vector or a bitmap of a form that the contracts refuse."""


class BookUnreadable(OperatorError):
    """The stored score book can't be restored."""

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"score book unreadable: {problem}",
            "restore the node's data folder from a backup, or remove the book to start with no scores",
        )


class Contradiction(Bug):
    """Facts were passed in that can't hold together."""
