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
from itertools import combinations

from node.curves import EvaluationRow
from node.follower import Step
from node.node import Node
from protocol.assignment import assigned_samples
from protocol.beacon import Draw
from protocol.ids import ZERO32, Address, Epoch, Hash32
from scoring.book import RoundObservation, ScoreBook
from scoring.book_json import dump_book, load_book
from scoring.checks import Fault
from scoring.evaluation import Evaluation
from scoring.rules import Rules
from scoring.sampling import evaluation_draw, own_samples, random_samples, sample_peers
from scoring.uniqueness import copies, overlap_threshold
from training.codec import Payload, index_overlap
from validator.attest import Attester
from validator.evaluation import Exam, Examiner
from validator.report import RoundReport, losses_of, peers_of

logger = logging.getLogger(__name__)

_BOOK = "score book"
_NICENESS = 10


class Scorer:
    """Turns concluded rounds into the score book."""

    def __init__(self, node: Node, attester: Attester) -> None:
        self._node = node
        self._attester = attester
        rules = Rules.of(node.run_file.spec.scoring)
        stored = node.journal.noted(_BOOK)
        self.book = load_book(stored, rules) if stored else ScoreBook.empty(rules)
        self._examiner = Examiner(node.run_file.spec, node.dataset)
        # One thread: a validator's exams must not take the machine from those who train on it.
        self._pool = ThreadPoolExecutor(max_workers=1, initializer=_lower_priority)

    async def observe(self, step: Step) -> None:
        """Examines a round and enters it into the book, durably; a round known already is skipped."""
        round_ = step.outcome.round
        if round_ <= self.book.round:
            return
        epoch = self._node.chain.clock.epoch_of(round_)
        void = step.outcome.void is not None
        exam, draw_seed = (None, ZERO32) if void else self._exam(step)
        loop = asyncio.get_running_loop()
        evaluations: tuple[Evaluation, ...] = ()
        if exam is not None:
            evaluations = await loop.run_in_executor(self._pool, self._examiner.examine, exam)
        heldout = await loop.run_in_executor(self._pool, self._examiner.heldout_loss, step.after)
        seen = await self._observation(step, epoch, evaluations)
        self.book = self.book.observe_round(seen)
        await self._note_curves(step, heldout)
        self._node.journal.note(_BOOK, dump_book(self.book))
        self._publish(
            RoundReport(
                round=round_,
                epoch=epoch,
                validator=self._node.me,
                beacon=draw_seed,
                heldout_loss=heldout.hex(),
                random=tuple(exam.random) if exam else (),
                losses=losses_of(evaluations),
                peers=peers_of(self.book),
            )
        )
        logger.info("round %d: scored %d peers, held-out %.4f", round_, len(evaluations), heldout)

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

    def _exam(self, step: Step) -> tuple[Exam, Hash32]:
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
        exam = Exam(
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
        return exam, facts.evaluation

    def _own(self, assigned: tuple[int, ...], miner: Address, draw: Draw) -> list[int]:
        """All of the miner's samples: mu is a coin toss on a few of them."""
        return own_samples(assigned, miner=miner, count=len(assigned), draw=draw)

    async def _observation(
        self, step: Step, epoch: Epoch, evaluations: tuple[Evaluation, ...]
    ) -> RoundObservation:
        round_, void = step.outcome.round, step.outcome.void is not None
        roster = await self._node.chain.roster(round_)
        faults: dict[Address, tuple[Fault, ...]] = {}
        if roster is not None:
            await self._attester.review(roster, self._node.follower.roots[round_])
            faults = self._attester.faults(roster)
        committed = self._node.exchange.committed(roster) if roster is not None else {}
        for miner in _copies(step.payloads, evaluations):
            faults[miner] = (*faults.get(miner, ()), Fault.OVERLAP)
        return RoundObservation(
            round=round_,
            epoch=epoch,
            void=void,
            accepted=() if void else tuple(sorted(step.payloads)),
            faults=faults,
            payload_roots={
                miner: publication.signed.submission.payload_root
                for miner, publication in committed.items()
            },
            evaluations=evaluations,
        )

    def _publish(self, report: RoundReport) -> None:
        self._node.board.put(f"reports/{report.round}", self._node.me, report.to_bytes())


def _copies(
    payloads: Mapping[Address, Payload], evaluations: tuple[Evaluation, ...]
) -> frozenset[Address]:
    """Which of the evaluated peers overlap too much with another and gain less on their own data."""
    gains = {evaluation.miner: evaluation.own_score for evaluation in evaluations}
    overlaps = {
        (first, second): index_overlap(payloads[first], payloads[second])
        for first, second in combinations(sorted(gains), 2)
    }
    threshold = overlap_threshold(list(overlaps.values()))
    return copies(overlaps, gains, threshold=threshold)


def _lower_priority() -> None:
    """Lets the threads that train, here and in other processes, go first."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
