"""What a validator publishes of a round and of an epoch: all that its book's step and its weights follow from.

A `RoundReport` holds what the draws come from, what was seen and measured, and the book before and after; `scoring.replay` makes the
one of the other again. An `EpochReport` holds what the weights were taken from. Both are canonical JSON, named by the digest of
their bytes; floats (`Bits`) travel as the hexadecimal form of their exact bits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NewType

from protocol import canonical, record
from protocol.errors import Rejected
from protocol.hashing import sha256
from protocol.ids import Address, Epoch, Hash32, Round, Slot
from protocol.spec import ScoringSpec
from scoring.book import MinerRecord, RoundObservation, ScoreBook
from scoring.book_json import dump_book
from scoring.checks import Fault
from scoring.computation import SignAverage
from scoring.evaluation import Evaluation
from scoring.rating import Rating
from scoring.rules import Rules

Bits = NewType("Bits", str)
"""A float in the one spelling that `float.hex` gives it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotReport:
    """Who held a miner slot in the epoch."""

    slot: Slot
    miner: Address


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultReport:
    """What was wrong with a miner's work of the round; names of `scoring.checks.Fault`."""

    miner: Address
    faults: tuple[str, ...]

    def __post_init__(self) -> None:
        for name in self.faults:
            if name not in {fault.value for fault in Fault}:
                raise Rejected(f"report: unknown fault {name!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadReport:
    """The payload root that a miner signed and committed, accepted or not."""

    miner: Address
    root: Hash32


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapReport:
    """The share of kept indices that two evaluated updates have in common."""

    first: Address
    second: Address
    share: Bits

    def __post_init__(self) -> None:
        _check_exact(self.share)


@dataclass(frozen=True, slots=True, kw_only=True)
class LossReport:
    """The losses that one evaluation measured, in nats per token."""

    miner: Address
    rand_before: Bits
    rand_after: Bits
    own_before: Bits
    own_after: Bits

    def __post_init__(self) -> None:
        _check_exact(self.rand_before, self.rand_after, self.own_before, self.own_after)

    @classmethod
    def of(cls, evaluation: Evaluation) -> LossReport:
        """The measured losses as reported."""
        return cls(
            miner=evaluation.miner,
            rand_before=bits(evaluation.rand_before),
            rand_after=bits(evaluation.rand_after),
            own_before=bits(evaluation.own_before),
            own_after=bits(evaluation.own_after),
        )

    def evaluation(self) -> Evaluation:
        """Inverse of `of`."""
        return Evaluation(
            miner=self.miner,
            rand_before=value_of(self.rand_before),
            rand_after=value_of(self.rand_after),
            own_before=value_of(self.own_before),
            own_after=value_of(self.own_after),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingReport:
    """A `Rating`."""

    mu: Bits
    sigma: Bits

    def __post_init__(self) -> None:
        _check_exact(self.mu, self.sigma)

    @classmethod
    def of(cls, rating: Rating) -> RatingReport:
        """The rating as reported."""
        return cls(mu=bits(rating.mu), sigma=bits(rating.sigma))

    def rating(self) -> Rating:
        """Inverse of `of`."""
        return Rating(mu=value_of(self.mu), sigma=value_of(self.sigma))


@dataclass(frozen=True, slots=True, kw_only=True)
class AverageReport:
    """A `SignAverage`."""

    mean: Bits
    count: int

    def __post_init__(self) -> None:
        _check_exact(self.mean)

    @classmethod
    def of(cls, average: SignAverage) -> AverageReport:
        """The average as reported."""
        return cls(mean=bits(average.mean), count=average.count)

    def average(self) -> SignAverage:
        """Inverse of `of`."""
        return SignAverage(mean=value_of(self.mean), count=self.count)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerReport:
    """A miner after the round: its `MinerRecord`, and the peer score of the epoch so far.

    Attributes:
        barred: the fault that bars it from pay in this epoch, or "".
    """

    miner: Address
    rating: RatingReport
    computation: AverageReport
    improvement: AverageReport
    strikes: int
    last_evaluated: Round
    accepted: int
    barred: str
    score: Bits

    def __post_init__(self) -> None:
        _check_exact(self.score)
        if self.barred and self.barred not in {fault.value for fault in Fault}:
            raise Rejected(f"report: unknown fault {self.barred!r}")

    @classmethod
    def of(cls, miner: Address, book: ScoreBook) -> PeerReport:
        """The miner as a book has it."""
        known = book.record(miner)
        return cls(
            miner=miner,
            rating=RatingReport.of(known.rating),
            computation=AverageReport.of(known.computation),
            improvement=AverageReport.of(known.improvement),
            strikes=known.strikes,
            last_evaluated=known.last_evaluated,
            accepted=known.accepted,
            barred=str(known.barred or ""),
            score=bits(book.score(miner).total),
        )

    def record(self) -> MinerRecord:
        """What the book remembers of it."""
        return MinerRecord(
            rating=self.rating.rating(),
            computation=self.computation.average(),
            improvement=self.improvement.average(),
            strikes=self.strikes,
            last_evaluated=self.last_evaluated,
            accepted=self.accepted,
            barred=Fault(self.barred) if self.barred else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundReport:
    """A validator's report of one round.

    Attributes:
        scoring: the rules of the spec with this hash; with `samples_per_round` and `train_samples`, what the draws need of it.
        previous: the round that its book had observed before; 0 for its first one.
        void: why the round left the model as it was, or "".
        assignment, evaluation: the beacons; zero for one that missed its cut-off.
        root_before, root_after: state roots of the model at the start of the round and of the next one.
        slots: who held which miner slot: what these were assigned is no part of D_rand.
        selected: whose updates entered the aggregate, in slot order: their norms scale what is scored.
        accepted, faults, payloads: the observation, sorted by address.
        overlaps: of each pair of evaluated updates.
        random: data set indices of D_rand. A peer's own batch is all that it was assigned, ascending.
        losses: of the sampled peers, sorted by address.
        heldout_loss: of the model at the end of the round.
        book_before, book_after: digests of the book (see `book_digest`).
        null: the rating of doing nothing, after the round.
        rounds: rounds of this epoch so far that were not void.
        peers: everybody that the book knows after the round, sorted by address.
    """

    run: Hash32
    spec_hash: Hash32
    scoring: ScoringSpec
    samples_per_round: int
    train_samples: int
    validator: Address
    round: Round
    epoch: Epoch
    previous: Round
    void: str
    assignment: Hash32
    evaluation: Hash32
    root_before: Hash32
    root_after: Hash32
    slots: tuple[SlotReport, ...]
    selected: tuple[Address, ...]
    accepted: tuple[Address, ...]
    faults: tuple[FaultReport, ...]
    payloads: tuple[PayloadReport, ...]
    overlaps: tuple[OverlapReport, ...]
    random: tuple[int, ...]
    losses: tuple[LossReport, ...]
    heldout_loss: Bits
    book_before: Hash32
    book_after: Hash32
    null: RatingReport
    rounds: int
    peers: tuple[PeerReport, ...]

    def __post_init__(self) -> None:
        _check_exact(self.heldout_loss)
        _check_rules(self.scoring)

    @property
    def rules(self) -> Rules:
        """The rules that the book goes by."""
        return Rules.of(self.scoring)

    @property
    def digest(self) -> Hash32:
        """What the report is published under."""
        return Hash32(sha256(self.to_bytes()))

    def peer(self, miner: Address) -> PeerReport | None:
        """What is said of a miner; None if the book does not know it."""
        return next((peer for peer in self.peers if peer.miner == miner), None)

    def observation(self) -> RoundObservation:
        """What the book was told; raises `Contradiction` if it can't hold together."""
        return RoundObservation(
            round=self.round,
            epoch=self.epoch,
            void=bool(self.void),
            accepted=self.accepted,
            faults={each.miner: tuple(map(Fault, each.faults)) for each in self.faults},
            payload_roots={each.miner: each.root for each in self.payloads},
            evaluations=tuple(each.evaluation() for each in self.losses),
        )

    def overlap_shares(self) -> dict[tuple[Address, Address], float]:
        """The overlaps by pair."""
        return {(each.first, each.second): value_of(each.share) for each in self.overlaps}

    def to_bytes(self) -> bytes:
        """Canonical JSON."""
        return canonical.dumps(record.to_json(self))

    @classmethod
    def from_bytes(cls, data: bytes) -> RoundReport:
        """Strict inverse of `to_bytes`; raises `Rejected`."""
        report = record.from_json(cls, canonical.loads(data))
        _check_same(report.to_bytes(), data)
        return report


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochReport:
    """A validator's weights of an epoch, before it commits to them, and what they were taken from.

    Attributes:
        round: the last one that the book had observed; the epoch's last one, unless scoring was late.
        book: digest of the book; it is `book_after` of that round's report.
        slots: who held which miner slot.
        slashed: accounts whose fault in this epoch was proven by then, sorted.
        weights: u16 by miner slot.
    """

    run: Hash32
    spec_hash: Hash32
    validator: Address
    epoch: Epoch
    round: Round
    book: Hash32
    slots: tuple[SlotReport, ...]
    slashed: tuple[Address, ...]
    weights: tuple[int, ...]

    @property
    def digest(self) -> Hash32:
        """What the report is published under."""
        return Hash32(sha256(self.to_bytes()))

    def weight_of(self, miner: Address) -> int:
        """Its u16 weight; 0 without a slot."""
        return sum(
            self.weights[each.slot]
            for each in self.slots
            if each.miner == miner and each.slot < len(self.weights)
        )

    def to_bytes(self) -> bytes:
        """Canonical JSON."""
        return canonical.dumps(record.to_json(self))

    @classmethod
    def from_bytes(cls, data: bytes) -> EpochReport:
        """Strict inverse of `to_bytes`; raises `Rejected`."""
        report = record.from_json(cls, canonical.loads(data))
        _check_same(report.to_bytes(), data)
        return report


def book_digest(book: ScoreBook) -> Hash32:
    """sha-256 of the book's canonical bytes, under which it is served."""
    return Hash32(sha256(dump_book(book)))


def slots_of(miners: Mapping[Slot, Address]) -> tuple[SlotReport, ...]:
    """A roster as reported."""
    return tuple(SlotReport(slot=slot, miner=miner) for slot, miner in sorted(miners.items()))


def faults_of(faults: Mapping[Address, Collection[Fault]]) -> tuple[FaultReport, ...]:
    """Faults as reported; who has none is left out."""
    return tuple(
        FaultReport(miner=miner, faults=tuple(fault.value for fault in faults[miner]))
        for miner in sorted(faults)
        if faults[miner]
    )


def payloads_of(roots: Mapping[Address, Hash32]) -> tuple[PayloadReport, ...]:
    """Payload roots as reported."""
    return tuple(PayloadReport(miner=miner, root=roots[miner]) for miner in sorted(roots))


def overlaps_of(shares: Mapping[tuple[Address, Address], float]) -> tuple[OverlapReport, ...]:
    """Overlaps as reported."""
    return tuple(
        OverlapReport(first=first, second=second, share=bits(shares[first, second]))
        for first, second in sorted(shares)
    )


def peers_of(book: ScoreBook) -> tuple[PeerReport, ...]:
    """Every known miner as the book stands."""
    return tuple(PeerReport.of(miner, book) for miner in sorted(book.miners))


def bits(value: float) -> Bits:
    """The spelling of a float."""
    return Bits(value.hex())


def value_of(spelling: Bits) -> float:
    """The float."""
    return float.fromhex(spelling)


def _check_exact(*spellings: Bits) -> None:
    for spelling in spellings:
        try:
            exact = float.fromhex(spelling).hex() == spelling
        except (ValueError, OverflowError):
            exact = False
        if not exact:
            raise Rejected(f"report: not a hexadecimal float: {spelling!r}")


def _check_same(again: bytes, data: bytes) -> None:
    """An address can be spelled in several ways, a report can't."""
    if again != data:
        raise Rejected("report: not in canonical form")


def _check_rules(scoring: ScoringSpec) -> None:
    try:
        Rules.of(scoring)
    except ValueError as error:
        raise Rejected(f"report: {error}") from error
