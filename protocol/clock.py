"""The round clock: fixed arithmetic over round numbers, the same as the contract's.

Times are the chain's (block timestamps less pauses), never a node's own. A deadline is inclusive:
an action is in time at t <= deadline. Rounds start at 1; round 0 exists only in this arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass

from protocol.beacon import Purpose
from protocol.ids import Epoch, Round
from protocol.spec import ChainParams


@dataclass(frozen=True, slots=True)
class RoundClock:
    """Every deadline of a run, in unix seconds."""

    params: ChainParams

    def start(self, round_: Round) -> int:
        """When the round's train window opens."""
        return self.params.genesis_time + (round_ - 1) * self.params.round_s

    def put_opens(self, round_: Round) -> int:
        """First second at which a commit is taken."""
        return self.start(round_) + self.params.train_s

    def put_deadline(self, round_: Round) -> int:
        """Last second at which a commit is taken; afterwards the miner publishes."""
        return self.put_opens(round_) + self.params.put_s

    def publish_deadline(self, round_: Round) -> int:
        """Publications later than this count as missing; attesting opens after it."""
        return self.put_deadline(round_) + self.params.publish_s

    def attest_deadline(self, round_: Round) -> int:
        """Last second of the attestations; afterwards the accepted set is final."""
        return self.publish_deadline(round_) + self.params.attest_s

    def beacon_opens_after(self, round_: Round, purpose: Purpose) -> int:
        """A beacon may be fixed after (not at) this second."""
        if purpose is Purpose.ASSIGNMENT:
            return self.attest_deadline(Round(round_ - 1))
        return self.publish_deadline(round_)

    def beacon_cut_off(self, round_: Round, purpose: Purpose) -> int:
        """Last second at which a beacon can still be recorded; without it the round is void."""
        if purpose is Purpose.ASSIGNMENT:
            return self.put_opens(round_)
        return self.attest_deadline(round_) + self.params.apply_s // 2

    def round_at(self, time: int) -> Round:
        """The round that is under way; 0 before genesis."""
        if time < self.params.genesis_time:
            return Round(0)
        return Round((time - self.params.genesis_time) // self.params.round_s + 1)

    def epoch_at(self, time: int) -> Epoch:
        """The epoch that is under way; 0 before genesis."""
        return self.epoch_of(self.round_at(time))

    def epoch_of(self, round_: Round) -> Epoch:
        """The epoch to which a round belongs; 0 for round 0."""
        return Epoch((round_ - 1) // self.params.rounds_per_epoch + 1)

    def first_round(self, epoch: Epoch) -> Round:
        """First round of an epoch."""
        return Round((epoch - 1) * self.params.rounds_per_epoch + 1)

    def last_round(self, epoch: Epoch) -> Round:
        """Last round of an epoch."""
        return Round(epoch * self.params.rounds_per_epoch)

    def epoch_end(self, epoch: Epoch) -> int:
        """When the next epoch starts."""
        return self.start(self.first_round(Epoch(epoch + 1)))

    def weight_commit_deadline(self, epoch: Epoch) -> int:
        """Last second to commit the epoch's weights."""
        return self.epoch_end(epoch) + self.params.weight_commit_s

    def weight_reveal_deadline(self, epoch: Epoch) -> int:
        """Last second to reveal them; a settlement can be posted after it."""
        return self.weight_commit_deadline(epoch) + self.params.weight_reveal_s

    def settlement_void_at(self, epoch: Epoch) -> int:
        """After this second an epoch that has not settled can be declared void."""
        return self.weight_reveal_deadline(epoch) + self.params.settlement_void_s
