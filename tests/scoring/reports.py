"""Chains of reports as a validator would publish them, of rounds whose losses a test makes up."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from protocol.assignment import assigned_samples
from protocol.ids import Address, Epoch, Hash32, Round, Slot
from protocol.spec import ScoringSpec
from scoring.book import RoundObservation, ScoreBook
from scoring.checks import Fault
from scoring.evaluation import Evaluation
from scoring.report import (
    EpochReport,
    LossReport,
    RatingReport,
    RoundReport,
    bits,
    book_digest,
    faults_of,
    overlaps_of,
    payloads_of,
    peers_of,
    slots_of,
)
from scoring.rules import Rules
from scoring.sampling import evaluation_draw, random_samples, sample_peers
from tests.scoring.peers import LOSS, ROUNDS_PER_EPOCH, evaluated, peer
from tests.scoring.peers import slots_of as numbered
from tests.specs import SPEC, some_hash

SAMPLES, TRAIN_SAMPLES = 8, 4_000
Measure = Callable[[Address, Round], Evaluation]


def by_rank(miner: Address, round_: Round) -> Evaluation:
    """A smaller address is the better miner; a little noise that differs from round to round."""
    noise = random.Random(f"{miner}{round_}").uniform(-0.01, 0.01)
    return evaluated(miner, rand=0.5 - 0.02 * int(miner, 16) + noise, own=0.6 + noise)


@dataclass
class Teller:
    """A validator without a node: it draws, observes and reports as the real one does."""

    miners: int = 6
    scoring: ScoringSpec = SPEC.scoring
    validator: Address = field(default_factory=lambda: peer(900))
    book: ScoreBook = field(init=False)
    reports: list[RoundReport] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.book = ScoreBook.empty(Rules.of(self.scoring))

    @property
    def slots(self) -> dict[Slot, Address]:
        return numbered(self.miners)

    def tell(
        self,
        round_: int,
        measure: Measure = by_rank,
        *,
        faults: Mapping[Address, Sequence[Fault]] | None = None,
        missing: Sequence[Address] = (),
        void: str = "",
    ) -> RoundReport:
        """Observes the next round and reports it. Who has a fault or is missing is not accepted."""
        number, epoch = Round(round_), Epoch((round_ - 1) // ROUNDS_PER_EPOCH + 1)
        faults = faults or {}
        assignment, evaluation = some_hash(f"assignment {round_}"), some_hash(f"exam {round_}")
        out = {*faults, *missing}
        accepted = () if void else tuple(m for m in sorted(self.slots.values()) if m not in out)
        draw = evaluation_draw(evaluation, self.validator)
        peers = sample_peers(
            accepted,
            ordinals=self.book.ordinals(),
            last_evaluated=self.book.last_evaluated(),
            round_=number,
            count=self.scoring.peers_per_round,
            draw=draw,
        )
        chosen = random_samples(
            train_samples=TRAIN_SAMPLES,
            assigned={s for m in self.slots.values() for s in assigned(number, assignment, m)},
            count=self.scoring.rand_samples,
            draw=draw,
        )
        roots = {miner: some_hash(f"{miner} {round_}") for miner in accepted}
        seen = RoundObservation(
            round=number,
            epoch=epoch,
            void=bool(void),
            accepted=accepted,
            faults={miner: tuple(found) for miner, found in faults.items()},
            payload_roots=roots,
            evaluations=tuple(measure(miner, number) for miner in peers),
        )
        before, self.book = self.book, self.book.observe_round(seen)
        report = RoundReport(
            run=some_hash("run"),
            spec_hash=some_hash("spec"),
            scoring=self.scoring,
            samples_per_round=SAMPLES,
            train_samples=TRAIN_SAMPLES,
            validator=self.validator,
            round=number,
            epoch=epoch,
            previous=before.round,
            void=void,
            assignment=assignment,
            evaluation=evaluation,
            root_before=some_hash(f"root {round_}"),
            root_after=some_hash(f"root {round_ + 1}"),
            slots=slots_of(self.slots),
            selected=accepted,
            accepted=accepted,
            faults=faults_of(seen.faults),
            payloads=payloads_of(roots),
            overlaps=overlaps_of(
                {(a, b): 0.25 for i, a in enumerate(peers) for b in peers[i + 1 :]}
            ),
            random=() if void else tuple(chosen),
            losses=tuple(map(LossReport.of, seen.evaluations)),
            heldout_loss=bits(LOSS - 0.1 * round_),
            book_before=book_digest(before),
            book_after=book_digest(self.book),
            null=RatingReport.of(self.book.null),
            rounds=self.book.rounds,
            peers=peers_of(self.book),
        )
        self.reports.append(report)
        return report

    def weigh(self, slashed: Sequence[Address] = ()) -> EpochReport:
        """The weights of the book's epoch as it stands."""
        return EpochReport(
            run=some_hash("run"),
            spec_hash=some_hash("spec"),
            validator=self.validator,
            epoch=self.book.epoch,
            round=self.book.round,
            book=book_digest(self.book),
            slots=slots_of(self.slots),
            slashed=tuple(sorted(slashed)),
            weights=self.book.weights(
                self.book.epoch, slots=self.slots, slot_count=self.miners + 1, slashed=slashed
            ),
        )


def assigned(round_: Round, beacon: Hash32, miner: Address) -> tuple[int, ...]:
    return assigned_samples(
        run=some_hash("run"),
        round_=round_,
        beacon=beacon,
        miner=miner,
        count=SAMPLES,
        train_samples=TRAIN_SAMPLES,
    )


def told(rounds: int, **teller: int) -> Teller:
    """After so many ordinary rounds."""
    found = Teller(**teller)  # type: ignore[arg-type]  # whole numbers only
    for round_ in range(1, rounds + 1):
        found.tell(round_)
    return found


REPORT = told(1).reports[0]
