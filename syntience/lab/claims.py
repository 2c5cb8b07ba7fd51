"""What a scenario promises, and whether a run keeps it. Pay is judged over the last half of the run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from syntience.lab.history import History

_HONEST = "honest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A claim's figure in one run.

    Attributes:
        target: in words, such as "at most 0.05".
    """

    claim: str
    figure: float
    target: str
    holds: bool


class Claim(Protocol):
    """Something that must hold."""

    def judge(self, run: History, twin: History | None) -> Finding:
        """Measures it."""
        ...


def _at_most(claim: str, figure: float, most: float) -> Finding:
    return Finding(claim=claim, figure=figure, target=f"at most {most:g}", holds=figure <= most)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else (math.inf if part else 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PayAtMost:
    """The best paid of a group earns at most so much of the honest median."""

    group: str
    most: float
    than: Sequence[str] = (_HONEST,)

    def judge(self, run: History, twin: History | None) -> Finding:
        """Largest pay in the group over the median of the others."""
        figure = _ratio(max(run.pays(self.group)), run.median_pay(self.than))
        return _at_most(
            f"pay of {self.group} / median of {', '.join(self.than)}", figure, self.most
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TogetherAtMost:
    """A group's members earn less together than another's."""

    group: str
    than: str
    most: float = 1.0

    def judge(self, run: History, twin: History | None) -> Finding:
        """Sum over sum."""
        figure = _ratio(sum(run.pays(self.group)), sum(run.pays(self.than)))
        return _at_most(f"all of {self.group} / all of {self.than}", figure, self.most)


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidAlike:
    """Equal peers earn about the same, and none of them nothing."""

    groups: Sequence[str] = (_HONEST,)
    within: float = 0.25

    def judge(self, run: History, twin: History | None) -> Finding:
        """The largest distance of one's pay from the median, over the median."""
        middle = run.median_pay(self.groups)
        pays = [pay for group in self.groups for pay in run.pays(group)]
        figure = max(_ratio(abs(pay - middle), middle) for pay in pays)
        return _at_most(
            f"distance of an equal peer's pay in {', '.join(self.groups)}", figure, self.within
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NobodyExcluded:
    """In each epoch of the last half every honest peer is paid."""

    groups: Sequence[str] = (_HONEST,)

    def judge(self, run: History, twin: History | None) -> Finding:
        """Epochs without pay, over all of them."""
        accounts = [a for group in self.groups for a in run.miners[group]]
        missed = sum(not row.pay.get(a) for row in run.last_half for a in accounts)
        return _at_most("unpaid epochs of honest peers", float(missed), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """At the end the groups' ratings stand in this order, best first."""

    order: Sequence[str]
    by_round: int

    def judge(self, run: History, twin: History | None) -> Finding:
        """Neighbours in the wrong order at the first epoch's end from that round on."""
        row = next(row for row in run.epochs if row.round >= self.by_round)
        ratings = [min(row.standings[a].ordinal for a in run.miners[group]) for group in self.order]
        wrong = sum(a <= b for a, b in pairwise(ratings))
        return _at_most(f"{' > '.join(self.order)} by round {self.by_round}, wrong", wrong, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputationAtMost:
    """The proof of computation of a group ends near nothing."""

    group: str
    most: float

    def judge(self, run: History, twin: History | None) -> Finding:
        """The largest mean of mu over the last half."""
        rows = run.last_half
        figure = max(
            sum(row.standings[a].mu for row in rows) / len(rows) for a in run.miners[self.group]
        )
        return _at_most(f"mu of {self.group}", figure, self.most)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreFalls:
    """From one round to another a group's peer score falls to at most so much of what it was."""

    group: str
    start: int
    end: int
    most: float

    def judge(self, run: History, twin: History | None) -> Finding:
        """The score then over the score before."""
        rows = {row.round: row for row in run.epochs}
        before, after = (
            max(rows[number].standings[a].score for a in run.miners[self.group])  # type: ignore[index]
            for number in (self.start, self.end)
        )
        return _at_most(
            f"score of {self.group}, round {self.end} / {self.start}",
            _ratio(after, before),
            self.most,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PayMovedAtMost:
    """Against the twin, no miner of these groups earns more or less by more than so much."""

    groups: Sequence[str]
    most: float = 0.05

    def judge(self, run: History, twin: History | None) -> Finding:
        """The largest change over what was earned in the twin."""
        assert twin is not None
        figure = max(
            _ratio(abs(run.pay(a) - twin.pay(a)), twin.pay(a))
            for group in self.groups
            for a in run.miners[group]
        )
        return _at_most(f"change of pay of {', '.join(self.groups)}", figure, self.most)


@dataclass(frozen=True, slots=True, kw_only=True)
class PayRaisedAtMost:
    """Against the twin, a group earns more by at most so much."""

    group: str
    most: float = 0.05

    def judge(self, run: History, twin: History | None) -> Finding:
        """What it earned over what it earned in the twin, less 1."""
        assert twin is not None
        figure = _ratio(sum(run.pays(self.group)), sum(twin.pays(self.group))) - 1
        return _at_most(f"rise of pay of {self.group}", figure, self.most)


@dataclass(frozen=True, slots=True, kw_only=True)
class EarnsLess:
    """The best paid validator of one group earns less per stake than the worst paid of another."""

    group: str
    than: str

    def judge(self, run: History, twin: History | None) -> Finding:
        """Best over worst; stakes are equal."""
        figure = _ratio(max(run.pays(self.group)), min(run.pays(self.than)))
        return Finding(
            claim=f"pay of {self.group} / worst paid {self.than}",
            figure=figure, target="below 1", holds=figure < 1,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class LossStays:
    """The held-out loss at the end is at most so much above the twin's (or above it by more)."""

    most: float | None = None
    least: float | None = None

    def judge(self, run: History, twin: History | None) -> Finding:
        """Nats per token above the twin's."""
        assert twin is not None
        ours, theirs = run.epochs[-1].heldout, twin.epochs[-1].heldout
        assert ours is not None
        assert theirs is not None
        figure = ours - theirs
        if self.least is not None:
            return Finding(
                claim="held-out loss above the twin's",
                figure=figure, target=f"at least {self.least:g}", holds=not figure < self.least,
            )  # fmt: skip
        assert self.most is not None
        return _at_most("held-out loss above the twin's", figure, self.most)
