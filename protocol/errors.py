"""The roots of every error tree in the project.

Each error that leaves a function is one of four kinds, so that a caller knows what to do with it
without reading its text: try again, tell the operator how to mend it, drop the peer's input, or
stop because the program is wrong.
"""

from __future__ import annotations


class SyntienceError(Exception):
    """Base of every error that the project raises on purpose."""


class Retryable(SyntienceError):
    """Something outside failed for now; the same call may succeed later."""


class OperatorError(SyntienceError):
    """Only the operator can mend this.

    Args:
        problem: what is wrong, in one line.
        fix: what to do about it, in one line.
    """

    def __init__(self, problem: str, fix: str) -> None:
        super().__init__(f"{problem}: {fix}" if fix else problem)
        self.problem = problem
        self.fix = fix


class Rejected(SyntienceError):
    """A peer sent something that breaks the protocol. Never our fault, never retried as it is."""


class Bug(SyntienceError):
    """An invariant of our own code does not hold."""
