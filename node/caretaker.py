"""Does the chores that are due when it is this validator's turn."""

from __future__ import annotations

import asyncio
import logging

from ledger.contracts.rewards import Post
from ledger.errors import Reverted
from ledger.event_types import (
    Attested,
    LeafChallenged,
    LeafOpened,
    MissingRevealPenalised,
    WeightsRevealed,
)
from ledger.outbox import Outbox
from ledger.transactions import Call
from node.chain import RunChain
from node.chores import (
    BeaconState,
    Chore,
    ChoreFacts,
    ChoreKind,
    OpenChallenge,
    StandingPost,
    due_chores,
    my_turn,
    overdue_pause,
)
from node.game_chores import GameFacts, ballots_of, game_chores
from node.games import games_of
from node.settlements import Settlements
from protocol.beacon import Purpose
from protocol.errors import Bug, Retryable
from protocol.ids import Address, Epoch, Hash32, Round, Slot

logger = logging.getLogger(__name__)

TURN_S = 1
"""Seconds that each validator leaves to the one before it in the drawn order."""
_ROUNDS_BACK = 4
_EPOCHS_BACK = 2


class Caretaker:
    """One validator's share of the chores.

    Args:
        settlements: what a settlement should be; a false one is never made final.
        run: the run's id, which seeds the order of turns.
        me: this validator's account.
    """

    def __init__(
        self,
        *,
        chain: RunChain,
        outbox: Outbox,
        settlements: Settlements,
        run: Hash32,
        me: Address,
    ) -> None:
        self._chain = chain
        self._outbox = outbox
        self._settlements = settlements
        self._run = run
        self._me = me

    async def work(self) -> None:
        """Sends whatever is due and ours to do now; in a pause that is at most its end."""
        chain = self._chain
        snapshot = await chain.snapshot(Epoch(max(1, chain.epoch)))
        validators = [holder.account for holder in snapshot.validators.values()]
        if chain.paused_since is not None:
            # The run's own clock stands still: whose turn it is goes by the chain's.
            time = chain.block_time
            chores = overdue_pause(chain.paused_since, time, chain.clock)
        else:
            time = chain.time
            chores = due_chores(await self._facts(), chain.clock)
            chores += game_chores(await self._games())
        due = [
            chore
            for chore in chores
            if not self._outbox.known(chore.key)
            and my_turn(
                chore,
                time=time,
                me=self._me,
                validators=validators,
                seed=self._run,
                turn_s=TURN_S,
            )
        ]
        await asyncio.gather(*(self._do(chore) for chore in due))

    async def _do(self, chore: Chore) -> None:
        try:
            await self._outbox.send(self._call(chore), chore.key)
        except Reverted as error:
            logger.debug("%s: %s", chore.key, error)
        except Retryable as error:
            logger.info("%s: %s", chore.key, error)

    def _call(self, chore: Chore) -> Call:
        contracts = self._chain.contracts
        match chore.kind:
            case ChoreKind.FIX_BEACON:
                return contracts.epochs.fix_beacon_call(Round(chore.number), Purpose(chore.detail))
            case ChoreKind.RECORD_BEACON:
                return contracts.epochs.record_beacon_call(
                    Round(chore.number), Purpose(chore.detail)
                )
            case ChoreKind.FINALISE_ROOT:
                if chore.root is None:
                    raise Bug("a root to finalise has no root")
                round_ = Round(chore.number)
                bitmaps = {
                    event.slot: event.bitmap
                    for event in self._chain.events.events(Attested, round_=round_)
                    if event.root == chore.root
                }
                return contracts.epochs.finalise_root_call(round_, chore.root, bitmaps)
            case ChoreKind.PENALISE_REVEAL:
                return contracts.scores.penalise_missing_reveal_call(
                    Epoch(chore.number), Slot(chore.detail)
                )
            case ChoreKind.FINALISE_SETTLEMENT:
                return contracts.rewards.finalise_settlement_call(
                    Epoch(chore.number), chore.attempt
                )
            case ChoreKind.RESOLVE_TIMEOUT:
                return contracts.rewards.resolve_timeout_call(
                    Epoch(chore.number),
                    attempt=chore.attempt,
                    index=chore.detail,
                    cell=chore.cell,
                )
            case ChoreKind.VOID_EPOCH:
                return contracts.rewards.void_epoch_call(Epoch(chore.number))
            case ChoreKind.RESOLVE_GAME | ChoreKind.CLOSE_VOTE | ChoreKind.FINE_VOTER:
                return self._game_call(chore)
            case ChoreKind.RESUME:
                return contracts.epochs.resume_call()
            case ChoreKind.POST_SETTLEMENT:
                raise Bug("posting a settlement needs its tree")

    def _game_call(self, chore: Chore) -> Call:
        contracts = self._chain.contracts
        game = next(each for each in games_of(self._chain.events) if each.id == chore.game)
        match chore.kind:
            case ChoreKind.RESOLVE_GAME:
                return contracts.disputes.resolve_timeout_call(game.id, game.position)
            case ChoreKind.CLOSE_VOTE:
                return contracts.disputes.decide_call(game.id, game.position)
            case _:
                return contracts.committee.fine_voter_call(game.id, Slot(chore.detail))

    async def _games(self) -> GameFacts:
        chain, ballots = self._chain, ballots_of(self._chain.events)
        return GameFacts(
            games=games_of(chain.events),
            ballots=ballots,
            validators={
                ballot.epoch: frozenset((await chain.snapshot(ballot.epoch)).validators)
                for ballot in ballots.values()
            },
            block=chain.run_block,
            time=chain.time,
        )

    async def _facts(self) -> ChoreFacts:
        chain = self._chain
        rewards = chain.contracts.rewards
        now = chain.round
        beacons: dict[tuple[Round, Purpose], BeaconState] = {
            (round_, purpose): chain.beacon_state(round_, purpose)
            for round_ in (now, Round(now + 1))
            if round_ > 0
            for purpose in Purpose
        }
        posts = await rewards.standing_posts()
        return ChoreFacts(
            time=chain.time,
            block=chain.block,
            beacons=beacons,
            majority_roots=await self._majority_roots(),
            silent=await self._silent(),
            next_epoch=await rewards.next_epoch(),
            posts=[await self._standing(post) for post in posts],
            unanswered=[
                each for post in posts if post.open_challenges for each in self._unanswered(post)
            ],
        )

    async def _standing(self, post: Post) -> StandingPost:
        """A post, compared with what the reveals say once it could be made final."""
        is_over = self._chain.time > post.window_ends and not post.open_challenges
        tree = await self._settlements.build(post.epoch, post.pot) if is_over else None
        return StandingPost(
            attempt=post.attempt,
            window_ends=post.window_ends,
            open_challenges=post.open_challenges,
            is_right=tree is not None and tree.root.hash == post.root,
        )

    def _unanswered(self, post: Post) -> list[OpenChallenge]:
        events = self._chain.events
        opened = {
            (event.attempt, event.index, event.cell)
            for event in events.events(LeafOpened, epoch=post.epoch)
        }
        return [
            OpenChallenge(
                attempt=event.attempt,
                index=event.index,
                cell=event.cell,
                deadline=event.deadline,
            )
            for event in events.events(LeafChallenged, epoch=post.epoch)
            if event.attempt == post.attempt
            and (event.attempt, event.index, event.cell) not in opened
        ]

    async def _majority_roots(self) -> dict[Round, Hash32]:
        chain = self._chain
        final = chain.final_roots()
        found = {}
        for number in range(max(1, chain.round - _ROUNDS_BACK), chain.round + 1):
            round_ = Round(number)
            if round_ not in final and chain.time > chain.clock.attest_deadline(round_):
                root = (await chain.round_facts(round_)).tally().root
                if root is not None:
                    found[round_] = root
        return found

    async def _silent(self) -> dict[Epoch, list[Slot]]:
        chain = self._chain
        found = {}
        for number in range(max(1, chain.epoch - _EPOCHS_BACK), chain.epoch):
            epoch = Epoch(number)
            if chain.time > chain.clock.weight_reveal_deadline(epoch):
                snapshot = await chain.snapshot(epoch)
                settled = {
                    event.slot for event in chain.events.events(WeightsRevealed, epoch=epoch)
                }
                settled |= {
                    event.slot for event in chain.events.events(MissingRevealPenalised, epoch=epoch)
                }
                found[epoch] = [slot for slot in snapshot.validators if slot not in settled]
        return found
