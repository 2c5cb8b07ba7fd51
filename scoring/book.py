"""The score book: everything that a validator remembers of its peers, keyed by address.

    ScoreBook --observe_round(RoundObservation)--> ScoreBook --weights(epoch)--> u16 by slot

The book is a value: observing returns a new one, so it can be stored before anything that depends
on it is sent. Rounds are observed once each, in order; the weights of an epoch are taken after its
last round and before a round of the next one is observed.

A barred miner is not measured: it plays, and loses to everybody. A copy does not play: its result
is another's, and would count twice for and against all who met the original. Everything is per
validator: two of them differ by the samples they drew, and the median of their weights decides.

PeerScore = max(0, mu - z sigma_n) * LossRating * standing * presence, each factor clamped at 0:
standing is phi to the power of the strikes (one per round with a failed check, one taken back per
clean accepted round), presence the part of the epoch's rounds in which the miner was accepted.
Nothing is paid to a miner that was barred or slashed in the epoch, that was never evaluated, that
fails to improve the loss at least as often as not, or that is not rated above doing nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from math import inf

from protocol.ids import Address, Epoch, Hash32, Round, Slot
from scoring.checks import Fault, Severity, severity
from scoring.computation import SignAverage
from scoring.errors import Contradiction
from scoring.evaluation import Evaluation
from scoring.rating import Rating, improvement_floor, loss_rating, prior, rate
from scoring.rules import MAX_STRIKES, Rules
from scoring.uniqueness import Origin, PayloadMemory
from scoring.weights import peer_score, weight_vector

_NEVER = Round(0)
_NO_EPOCH = Epoch(0)
_NO_SIGNS = SignAverage()


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundObservation:
    """What a validator found out about one round.

    Attributes:
        void: no quorum, no majority root or no beacon: nobody is rewarded or struck for it.
        accepted: the miners of the accepted set.
        faults: what was wrong, by miner; miners without faults may be left out.
        payload_roots: of every payload that was seen and attributed, accepted or not.
        evaluations: of a sample of the accepted miners.
    """

    round: Round
    epoch: Epoch
    void: bool
    accepted: tuple[Address, ...]
    faults: Mapping[Address, tuple[Fault, ...]]
    payload_roots: Mapping[Address, Hash32]
    evaluations: tuple[Evaluation, ...]

    def __post_init__(self) -> None:
        if self.void and (self.accepted or self.evaluations):
            raise Contradiction("a void round accepts and evaluates nobody")
        evaluated = [evaluation.miner for evaluation in self.evaluations]
        if len(set(evaluated)) != len(evaluated) or len(set(self.accepted)) != len(self.accepted):
            raise Contradiction("a miner is named twice in a round")
        if not set(evaluated) <= set(self.accepted):
            raise Contradiction("a miner was evaluated without being accepted")


@dataclass(frozen=True, slots=True, kw_only=True)
class MinerRecord:
    """What is remembered of one miner.

    Attributes:
        computation: mu, signs of "own data beats random data".
        improvement: signs of "improves the loss on D_rand beyond the floor".
        strikes: rounds with a failed check that are not worked off.
        last_evaluated: 0 if never.
        accepted: accepted rounds of the book's epoch.
        barred: the fault that bars it from pay in the book's epoch.
    """

    rating: Rating
    computation: SignAverage = _NO_SIGNS
    improvement: SignAverage = _NO_SIGNS
    strikes: int = 0
    last_evaluated: Round = _NEVER
    accepted: int = 0
    barred: Fault | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerScore:
    """A miner's score in an epoch and the factors that it is the product of."""

    computation: float
    rating: float
    standing: float
    presence: float

    @property
    def total(self) -> float:
        """The score; 0 if any factor is."""
        return peer_score(self.computation, self.rating, self.standing, self.presence)


_NOTHING = PeerScore(computation=0.0, rating=0.0, standing=0.0, presence=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreBook:
    """A validator's state. Start with `ScoreBook.empty(rules)`; `book_json` stores it.

    Attributes:
        round: the last one observed; 0 at the start.
        epoch: of that round.
        rounds: rounds of this epoch observed so far that were not void.
        null: rating of the player that does nothing.
        miners: by address.
        payloads: recent payload roots.
    """

    rules: Rules
    null: Rating
    round: Round = _NEVER
    epoch: Epoch = _NO_EPOCH
    rounds: int = 0
    miners: Mapping[Address, MinerRecord] = field(default_factory=dict)
    payloads: PayloadMemory = field(default_factory=PayloadMemory)

    @classmethod
    def empty(cls, rules: Rules) -> ScoreBook:
        """The book of a validator that has seen nothing."""
        return cls(rules=rules, null=prior(rules))

    def record(self, miner: Address) -> MinerRecord:
        """What is remembered of a miner; the prior for an unknown one."""
        return self.miners.get(miner) or MinerRecord(rating=prior(self.rules))

    def reused(self, payload_root: Hash32, round_: Round) -> Origin | None:
        """The earlier submission with the same payload, if there was one; for the fast checks."""
        return self.payloads.reused(payload_root, round_)

    def ordinals(self) -> dict[Address, float]:
        """Each known miner's ordinal, for the sampler."""
        return {miner: record.rating.ordinal for miner, record in self.miners.items()}

    def last_evaluated(self) -> dict[Address, Round]:
        """The round of each evaluated miner's last evaluation, for the sampler."""
        return {
            miner: record.last_evaluated
            for miner, record in self.miners.items()
            if record.last_evaluated
        }

    def observe_round(self, seen: RoundObservation) -> ScoreBook:
        """The book with one more round; raises `Contradiction` for one that is not later."""
        if seen.round <= self.round or seen.epoch < self.epoch:
            raise Contradiction(f"round {seen.round} observed after round {self.round}")
        book = self if seen.epoch == self.epoch else self._turned_to(seen.epoch)
        faults = book._all_faults(seen)
        barred = {miner for miner in faults if _worst(faults[miner]) is Severity.BAR}
        miners = dict(book.miners)
        for miner in sorted({*seen.accepted, *faults}):
            record = book._with_conduct(miner, faults.get(miner, ()), seen)
            miners[miner] = record
        scored = [evaluation for evaluation in seen.evaluations if evaluation.miner not in barred]
        if not seen.void:
            scored += [_failed(miner) for miner in sorted(barred)]
        copies = {miner for miner in faults if Fault.OVERLAP in faults[miner]}
        played, null = book._with_match(scored, copies, miners, seen.round)
        return replace(
            book,
            round=seen.round,
            rounds=book.rounds + (not seen.void),
            null=null,
            miners={**miners, **played},
            payloads=book.payloads.after(seen.round, seen.payload_roots),
        )

    def score(self, miner: Address) -> PeerScore:
        """A miner's score in the book's epoch as things stand."""
        record = self.record(miner)
        if record.barred is not None or not self.rounds or record.improvement.mean <= 0:
            return _NOTHING
        return PeerScore(
            computation=record.computation.above_luck(
                gamma=self.rules.mu_gamma, z=self.rules.mu_margin
            ),
            rating=loss_rating(record.rating, self.null, self.rules),
            standing=self.rules.phi**record.strikes,
            presence=record.accepted / self.rounds,
        )

    def weights(
        self,
        epoch: Epoch,
        *,
        slots: Mapping[Slot, Address],
        slot_count: int,
        slashed: Collection[Address] = (),
    ) -> tuple[int, ...]:
        """The u16 vector to commit for an epoch, by miner slot.

        Args:
            epoch: the epoch that ended. All zero if no round of it was observed.
            slots: who held which miner slot in it.
            slot_count: length of the vector.
            slashed: accounts with a proven fault in it.

        Raises:
            Contradiction: a round of a later epoch was already observed.
        """
        if epoch < self.epoch:
            raise Contradiction(f"weights of epoch {epoch} asked for in epoch {self.epoch}")
        if epoch > self.epoch:
            return (0,) * slot_count
        scores = {
            miner: self.score(miner).total for miner in slots.values() if miner not in set(slashed)
        }
        return weight_vector(scores, slots, slot_count=slot_count)

    def _turned_to(self, epoch: Epoch) -> ScoreBook:
        miners = {
            miner: replace(record, accepted=0, barred=None) for miner, record in self.miners.items()
        }
        return replace(self, epoch=epoch, rounds=0, miners=miners)

    def _all_faults(self, seen: RoundObservation) -> dict[Address, tuple[Fault, ...]]:
        faults = {miner: tuple(found) for miner, found in seen.faults.items() if found}
        for miner, root in seen.payload_roots.items():
            if self.reused(root, seen.round) is not None:
                faults[miner] = (*faults.get(miner, ()), Fault.REUSED_PAYLOAD)
        return faults

    def _with_conduct(
        self, miner: Address, faults: tuple[Fault, ...], seen: RoundObservation
    ) -> MinerRecord:
        record = self.record(miner)
        accepted = miner in seen.accepted
        worst = _worst(faults)
        strikes = record.strikes
        if worst is not Severity.NONE and not seen.void:
            strikes = min(MAX_STRIKES, strikes + 1)
        elif accepted:
            strikes = max(0, strikes - 1)
        bars = [fault for fault in faults if severity(fault) is Severity.BAR]
        return replace(
            record,
            strikes=strikes,
            accepted=record.accepted + accepted,
            barred=record.barred or (bars[0] if bars else None),
        )

    def _with_match(
        self,
        scored: list[Evaluation],
        copies: Collection[Address],
        miners: Mapping[Address, MinerRecord],
        round_: Round,
    ) -> tuple[dict[Address, MinerRecord], Rating]:
        scores = {each.miner: each.rand_score for each in scored if each.miner not in copies}
        ratings = {miner: miners[miner].rating for miner in scores}
        played, null = rate(scores, ratings, self.null, self.rules)
        floor, gamma = improvement_floor(scores.values()), self.rules.mu_gamma
        records = {}
        for evaluation in scored:
            record = miners[evaluation.miner]
            records[evaluation.miner] = replace(
                record,
                rating=played.get(evaluation.miner, record.rating),
                computation=record.computation.after(evaluation.own_beats_random, gamma=gamma),
                improvement=record.improvement.after(evaluation.rand_score > floor, gamma=gamma),
                last_evaluated=round_,
            )
        return records, null


def _failed(miner: Address) -> Evaluation:
    """The evaluation of a barred miner: it is not measured and loses to everybody."""
    return Evaluation(miner=miner, rand_before=0.0, rand_after=inf, own_before=0.0, own_after=inf)


def _worst(faults: Collection[Fault]) -> Severity:
    return max(
        (severity(fault) for fault in faults), key=lambda kind: kind.value, default=Severity.NONE
    )
