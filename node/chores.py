"""Which of the chores that everybody needs are due now, and whose turn it is.

Anyone may do a chore and is refunded for it. Every validator is ready to, in an order drawn from
public randomness, each waiting its turn, so that nothing stalls when one is down and nobody pays
for what another just did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from protocol.beacon import Draw, Purpose, seed_from
from protocol.clock import RoundClock
from protocol.ids import Address, Epoch, Hash32, Round, Slot

BLOCKHASH_REACH = 256
"""The chain remembers the hashes of so many blocks."""


class ChoreKind(StrEnum):
    """What can be due."""

    FIX_BEACON = "fix-beacon"
    RECORD_BEACON = "record-beacon"
    FINALISE_ROOT = "finalise-root"
    PENALISE_REVEAL = "penalise-reveal"
    FINALISE_SETTLEMENT = "finalise-settlement"
    VOID_EPOCH = "void-epoch"
    RESOLVE_TIMEOUT = "resolve-timeout"
    RESOLVE_GAME = "resolve-game"
    CLOSE_VOTE = "close-vote"
    FINE_VOTER = "fine-voter"
    RESUME = "resume"
    """The end of a pause that lasted as long as it may."""
    POST_SETTLEMENT = "post-settlement"
    """Not among the due ones: who posts has to bring the tree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chore:
    """One chore that is due.

    Attributes:
        number: the round of a beacon, root or game, the start of a pause, the epoch of everything else.
        detail: the beacon's purpose, the validator slot, the challenged leaf, or 0.
        attempt: tells a repeated chore (an expired beacon, a second post) from its first try.
        cell: of a challenged leaf.
        opened: the second after which it could be done; of the chain's own clock where a pause is to end.
        root: the root to finalise.
        game: the game that is stuck, or voted on.
    """

    kind: ChoreKind
    number: int
    detail: int = 0
    attempt: int = 0
    cell: int = 0
    opened: int
    root: Hash32 | None = None
    game: Hash32 | None = None

    @property
    def key(self) -> str:
        """Names the chore in the outbox, so that it is sent once."""
        if self.game is not None:
            return f"{self.kind}/{self.game.hex()}/{self.detail}"
        return f"{self.kind}/{self.number}/{self.detail}/{self.attempt}/{self.cell}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BeaconState:
    """How far a beacon is: its target block and time it was seen fixed, and its value."""

    target: int = 0
    value: Hash32 | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenChallenge:
    """A leaf of a standing post that its poster has to open until `deadline`."""

    attempt: int
    index: int
    cell: int
    deadline: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingPost:
    """A settlement of the epoch next in line that stands.

    Attributes:
        window_ends: it can be made final after this second, without open challenges.
        is_right: whether it is what the reveals say; only such a one is made final.
    """

    attempt: int
    window_ends: int
    open_challenges: int
    is_right: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoreFacts:
    """What the chain says that decides which chores are due.

    Attributes:
        majority_roots: rounds past their attest deadline that have a majority root and are not
            finalised on chain yet.
        silent: validator slots per epoch that committed no reveal, past the reveal deadline, and
            were not penalised yet.
        next_epoch: the epoch whose settlement is next in line.
        posts: the settlements that stand for it.
        unanswered: open challenges of them.
    """

    time: int
    block: int
    beacons: Mapping[tuple[Round, Purpose], BeaconState]
    majority_roots: Mapping[Round, Hash32]
    silent: Mapping[Epoch, Sequence[Slot]]
    next_epoch: Epoch
    posts: Sequence[StandingPost] = ()
    unanswered: Sequence[OpenChallenge] = ()


def due_chores(facts: ChoreFacts, clock: RoundClock) -> list[Chore]:
    """All chores that could be done now, oldest first."""
    chores = [
        *_beacon_chores(facts, clock),
        *_root_chores(facts, clock),
        *_settlement_chores(facts, clock),
    ]
    return sorted(chores, key=lambda chore: chore.opened)


def overdue_pause(since: int, time: int, clock: RoundClock) -> list[Chore]:
    """The chore of ending a pause that started at block time `since`, once it lasted as long as it may."""
    opened = since + clock.params.pause_most_s
    if time <= opened:
        return []
    return [Chore(kind=ChoreKind.RESUME, number=since, opened=opened)]


def my_turn(
    chore: Chore,
    *,
    time: int,
    me: Address,
    validators: Sequence[Address],
    seed: Hash32,
    turn_s: int,
) -> bool:
    """Whether ``me`` should do the chore now.

    The first in the drawn order goes at once, each later one ``turn_s`` seconds after the one
    before. Who is no validator never has to.
    """
    if me not in validators:
        return False
    draw = Draw(seed_from(seed, "chore", chore.kind, chore.number, chore.detail))
    position = draw.shuffled(sorted(validators)).index(me)
    return time > chore.opened + position * turn_s


def _beacon_chores(facts: ChoreFacts, clock: RoundClock) -> Iterator[Chore]:
    now = clock.round_at(facts.time)
    for round_ in (now, Round(now + 1)):
        if round_ < 1:
            continue
        for purpose in Purpose:
            opened = clock.beacon_opens_after(round_, purpose)
            if not opened < facts.time <= clock.beacon_cut_off(round_, purpose):
                continue
            state = facts.beacons.get((round_, purpose), BeaconState())
            if state.value is not None:
                continue
            expired = state.target and facts.block > state.target + BLOCKHASH_REACH - 2
            if not state.target or expired:
                yield Chore(
                    kind=ChoreKind.FIX_BEACON,
                    number=round_,
                    detail=purpose,
                    attempt=state.target,
                    opened=facts.time - 1 if expired else opened,
                )
            elif facts.block >= state.target:
                # One block a second is the fastest chain that a run is made for, so the age of the
                # target in blocks is a safe measure of how long the chore has been open.
                yield Chore(
                    kind=ChoreKind.RECORD_BEACON,
                    number=round_,
                    detail=purpose,
                    attempt=state.target,
                    opened=facts.time - 1 - (facts.block - state.target),
                )


def _root_chores(facts: ChoreFacts, clock: RoundClock) -> Iterator[Chore]:
    for round_, root in facts.majority_roots.items():
        yield Chore(
            kind=ChoreKind.FINALISE_ROOT,
            number=round_,
            opened=clock.attest_deadline(round_),
            root=root,
        )


def _settlement_chores(facts: ChoreFacts, clock: RoundClock) -> Iterator[Chore]:
    for epoch, slots in facts.silent.items():
        for slot in slots:
            yield Chore(
                kind=ChoreKind.PENALISE_REVEAL,
                number=epoch,
                detail=slot,
                opened=clock.weight_reveal_deadline(epoch),
            )
    for challenge in facts.unanswered:
        if facts.time > challenge.deadline:
            yield Chore(
                kind=ChoreKind.RESOLVE_TIMEOUT,
                number=facts.next_epoch,
                detail=challenge.index,
                attempt=challenge.attempt,
                cell=challenge.cell,
                opened=challenge.deadline,
            )
    ripe = [
        post
        for post in facts.posts
        if post.is_right and not post.open_challenges and facts.time > post.window_ends
    ]
    if ripe:  # the first of them closes the epoch
        post = min(ripe, key=lambda post: post.window_ends)
        yield Chore(
            kind=ChoreKind.FINALISE_SETTLEMENT,
            number=facts.next_epoch,
            attempt=post.attempt,
            opened=post.window_ends,
        )
    if not facts.posts and facts.time > clock.settlement_void_at(facts.next_epoch):
        yield Chore(
            kind=ChoreKind.VOID_EPOCH,
            number=facts.next_epoch,
            opened=clock.settlement_void_at(facts.next_epoch),
        )
