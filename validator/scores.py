"""Scoring of concluded rounds, one after the other, off the event loop and at low priority.

The book and the draws are `scoring`'s; here they get their inputs and a durable place.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations

from node.curves import EvaluationRow
from node.follower import Step
from node.node import Node
from protocol.assignment import assigned_samples
from protocol.beacon import Draw
from protocol.ids import ZERO32, Address, Round
from scoring.book import RoundObservation, ScoreBook
from scoring.book_json import dump_book, load_book
from scoring.checks import Fault
from scoring.evaluation import Evaluation
from scoring.report import (
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
from scoring.sampling import evaluation_draw, own_samples, random_samples, sample_peers
from scoring.uniqueness import copies, overlap_threshold
from training.codec import Payload, index_overlap
from validator.attest import Attester
from validator.evaluation import Exam, Examiner
from validator.shelf import Shelf

logger = logging.getLogger(__name__)

_BOOK, _REPORT = "score book", "round report"
_NICENESS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _Findings:
    """What examining a round came to.

    Attributes:
        random: data set indices of D_rand; empty for a void round.
        overlaps: share of kept indices of each pair of evaluated peers.
        heldout_loss: of the model at the end of the round.
    """

    random: tuple[int, ...]
    evaluations: tuple[Evaluation, ...]
    overlaps: Mapping[tuple[Address, Address], float]
    heldout_loss: float


class Scorer:
    """Turns concluded rounds into the score book."""

    def __init__(self, node: Node, attester: Attester) -> None:
        self._node = node
        self._attester = attester
        self._shelf = Shelf(node)
        self._spec_hash = node.run_file.spec.hash()
        rules = Rules.of(node.run_file.spec.scoring)
        stored = node.journal.noted(_BOOK)
        self.book = load_book(stored, rules) if stored else ScoreBook.empty(rules)
        self._examiner = Examiner(node.run_file.spec, node.dataset)
        # One thread: a validator's exams must not take the machine from those who train on it.
        self._pool = ThreadPoolExecutor(max_workers=1, initializer=_lower_priority)

    def resume(self) -> None:
        """Publishes what a kill may have kept from being published."""
        stored = self._node.journal.noted(_REPORT)
        report = RoundReport.from_bytes(stored) if stored else None
        if report is not None and report.round == self.book.round:
            self._shelf.offer_round(report, dump_book(self.book))

    async def observe(self, step: Step) -> None:
        """Examines a round, enters it into the book, durably, and reports it; a round known already is skipped."""
        round_ = step.outcome.round
        if round_ <= self.book.round:
            return
        findings = await asyncio.get_running_loop().run_in_executor(self._pool, self._examine, step)
        seen = await self._observation(step, findings)
        after = self.book.observe_round(seen)
        await self._note_curves(step, findings.heldout_loss)
        self._keep(self._report(step, findings, seen, after), after)
        logger.info(
            "round %d: scored %d peers, held-out %.4f",
            round_,
            len(findings.evaluations),
            findings.heldout_loss,
        )

    def _keep(self, report: RoundReport, book: ScoreBook) -> None:
        """The report first: without the book it is made once more, with it `resume` publishes it."""
        stored = dump_book(book)
        self._node.journal.note(_REPORT, report.to_bytes())
        self._node.journal.note(_BOOK, stored)
        self.book = book
        self._shelf.offer_round(report, stored)

    async def _note_curves(self, step: Step, heldout: float) -> None:
        """Before the book: a validator that is killed in between scores the round again, and notes it again."""
        outcome = step.outcome
        roster = await self._node.chain.roster(outcome.round)
        committed = self._node.exchange.committed(roster) if roster is not None else {}
        self._node.curves.add(
            EvaluationRow(
                round=outcome.round,
                heldout_loss=heldout,
                alpha=self._node.run_file.spec.outer.alpha_at(outcome.round),
                accepted=len(outcome.accepted),
                selected=len(outcome.selected),
                fetched_bytes=sum(
                    ref.size
                    for publication in committed.values()
                    for ref in publication.blobs.values()
                ),
                void=outcome.void or "",
            )
        )

    def close(self) -> None:
        """Stops the thread."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _examine(self, step: Step) -> _Findings:
        """All that takes long, in the thread for it."""
        exam = None if step.outcome.void is not None else self._exam(step)
        evaluations = self._examiner.examine(exam) if exam is not None else ()
        return _Findings(
            random=tuple(exam.random) if exam is not None else (),
            evaluations=evaluations,
            overlaps=_overlaps(step.payloads, evaluations),
            heldout_loss=self._examiner.heldout_loss(step.after),
        )

    def _exam(self, step: Step) -> Exam:
        facts, spec = step.facts, self._node.run_file.spec
        assert facts.assignment is not None
        assert facts.evaluation is not None
        assigned = {
            miner: assigned_samples(
                run=self._node.run_file.run,
                round_=facts.round,
                beacon=facts.assignment,
                miner=miner,
                count=spec.chain.samples_per_round,
                train_samples=spec.data.train_samples,
            )
            for miner in facts.miners.values()
        }
        draw = evaluation_draw(facts.evaluation, self._node.me)
        peers = sample_peers(
            list(step.payloads),
            ordinals=self.book.ordinals(),
            last_evaluated=self.book.last_evaluated(),
            round_=facts.round,
            count=spec.scoring.peers_per_round,
            draw=draw,
        )
        return Exam(
            round=facts.round,
            params=step.before,
            payloads=step.payloads,
            selected=[facts.miners[slot] for slot in step.outcome.selected],
            peers=peers,
            random=random_samples(
                train_samples=spec.data.train_samples,
                assigned={sample for samples in assigned.values() for sample in samples},
                count=spec.scoring.rand_samples,
                draw=draw,
            ),
            own={miner: self._own(assigned[miner], miner, draw) for miner in peers},
        )

    def _own(self, assigned: tuple[int, ...], miner: Address, draw: Draw) -> list[int]:
        """All of the miner's samples: mu is a coin toss on a few of them."""
        return own_samples(assigned, miner=miner, count=len(assigned), draw=draw)

    async def _observation(self, step: Step, findings: _Findings) -> RoundObservation:
        round_, void = step.outcome.round, step.outcome.void is not None
        roster = await self._node.chain.roster(round_)
        faults: dict[Address, tuple[Fault, ...]] = {}
        if roster is not None:
            await self._attester.review(roster, self._node.follower.roots[round_])
            faults = self._attester.faults(roster)
        committed = self._node.exchange.committed(roster) if roster is not None else {}
        for miner in _copies(findings):
            faults[miner] = (*faults.get(miner, ()), Fault.OVERLAP)
        return RoundObservation(
            round=round_,
            epoch=self._node.chain.clock.epoch_of(round_),
            void=void,
            accepted=() if void else tuple(sorted(step.payloads)),
            faults=faults,
            payload_roots={
                miner: publication.signed.submission.payload_root
                for miner, publication in committed.items()
            },
            evaluations=findings.evaluations,
        )

    def _report(
        self, step: Step, findings: _Findings, seen: RoundObservation, after: ScoreBook
    ) -> RoundReport:
        node, facts = self._node, step.facts
        spec, roots = node.run_file.spec, node.follower.roots
        return RoundReport(
            run=node.run_file.run,
            spec_hash=self._spec_hash,
            scoring=spec.scoring,
            samples_per_round=spec.chain.samples_per_round,
            train_samples=spec.data.train_samples,
            validator=node.me,
            round=seen.round,
            epoch=seen.epoch,
            previous=self.book.round,
            void=str(step.outcome.void or ""),
            assignment=facts.assignment or ZERO32,
            evaluation=facts.evaluation or ZERO32,
            root_before=roots[seen.round],
            root_after=roots[Round(seen.round + 1)],
            slots=slots_of(facts.miners),
            selected=tuple(facts.miners[slot] for slot in step.outcome.selected),
            accepted=seen.accepted,
            faults=faults_of(seen.faults),
            payloads=payloads_of(seen.payload_roots),
            overlaps=overlaps_of(findings.overlaps),
            random=findings.random,
            losses=tuple(LossReport.of(each) for each in seen.evaluations),
            heldout_loss=bits(findings.heldout_loss),
            book_before=book_digest(self.book),
            book_after=book_digest(after),
            null=RatingReport.of(after.null),
            rounds=after.rounds,
            peers=peers_of(after),
        )


def _overlaps(
    payloads: Mapping[Address, Payload], evaluations: tuple[Evaluation, ...]
) -> dict[tuple[Address, Address], float]:
    """The share of kept indices of each pair of evaluated peers."""
    miners = sorted(evaluation.miner for evaluation in evaluations)
    return {
        (first, second): index_overlap(payloads[first], payloads[second])
        for first, second in combinations(miners, 2)
    }


def _copies(findings: _Findings) -> frozenset[Address]:
    """Which of the evaluated peers overlap too much with another and gain less on their own data."""
    gains = {evaluation.miner: evaluation.own_score for evaluation in findings.evaluations}
    threshold = overlap_threshold(list(findings.overlaps.values()))
    return copies(findings.overlaps, gains, threshold=threshold)


def _lower_priority() -> None:
    """Lets the threads that train, here and in other processes, go first."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
