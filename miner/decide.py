"""What a miner does next: a pure function of what it knows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from protocol.clock import RoundClock
from protocol.ids import Round


class Step(Enum):
    """What there is to do."""

    WAIT = auto()
    TRAIN = auto()
    COMMIT = auto()
    PUBLISH = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class MinerFacts:
    """What decides a miner's next step.

    Attributes:
        time: the run's, which stands still in a pause.
        round: the round in question.
        has_slot: whether the miner holds a slot in that round's epoch.
        has_beacon: whether the round's assignment beacon is recorded.
        holds_model: whether the node stands exactly at this round.
        prepared: whether the round's submission is signed and in the journal.
        committed: whether its commit was sent.
        refused: whether the contract refused to take a commit, which it then does for ever.
        published: whether it was published.
        commits_late: whether the miner waits until the commit deadline is over.
        paused: whether the run is, so that no contract takes anything.
    """

    time: int
    round: Round
    has_slot: bool
    has_beacon: bool
    holds_model: bool
    prepared: bool
    committed: bool
    refused: bool
    published: bool
    commits_late: bool = False
    paused: bool = False


def next_step(facts: MinerFacts, clock: RoundClock) -> Step:
    """The next step of the round; WAIT until something changes."""
    deadline = clock.put_deadline(facts.round)
    if not facts.prepared:
        can_start = facts.has_slot and facts.has_beacon and facts.holds_model
        ready = can_start and facts.time < deadline
        return Step.TRAIN if ready else Step.WAIT
    if not facts.committed:
        if facts.refused or facts.paused:
            return Step.WAIT
        if facts.commits_late:
            return Step.COMMIT if facts.time > deadline else Step.WAIT
        # The transaction lands in a later block than the one that the node has seen.
        in_time = clock.put_opens(facts.round) <= facts.time < deadline
        return Step.COMMIT if in_time else Step.WAIT
    if not facts.published and facts.time > deadline:
        return Step.PUBLISH
    return Step.WAIT
