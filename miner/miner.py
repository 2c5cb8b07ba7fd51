"""The miner's process: read the chain, decide, act.

The order of effects is what makes a kill at any instruction harmless: blobs and local state on
disk, then the signed submission in the journal, then the commit in the outbox, then the
publication. A restarted miner finds its submission in the journal and never trains that round
again.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial

from ledger.errors import PAUSED, Reverted
from miner.behaviour import Behaviour
from miner.decide import MinerFacts, Step, next_step
from miner.defender import Defender
from miner.prefetch import Prefetch
from miner.settings import TrainingSettings
from miner.work import Start, Work, Workbench
from node.answers import Answerer
from node.chain import RunChain
from node.claims import claim_rewards
from node.curves import TrainingRow
from node.exchange import topic_of
from node.follower import Step as Concluded
from node.node import Node
from node.outcome import was_accepted
from protocol import canonical, record
from protocol.assignment import assigned_samples
from protocol.beacon import Purpose
from protocol.errors import Retryable
from protocol.ids import Epoch, Hash32, Round
from protocol.submission import Publication, SignedSubmission
from training.codec import Payload
from training.inner import InnerLoop, Loops
from training.local_state import LocalState
from training.parameters import parameter_count
from training.roots import zero_local_root
from training.savepoint import Savepoints

logger = logging.getLogger(__name__)

_SUBMISSION = "submission"
_CARRIED = "carried local state"
_COMMIT_GAS = 200_000
"""Far above what it takes: an estimate at the head's time can be refused as a second too early."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """The local state that the miner may continue from: of its last accepted round."""

    round: Round
    root: Hash32
    blob: Hash32


class Miner:
    """One miner of one run.

    Args:
        node: its open node.
        behaviour: how it works; the honest one unless this is an experiment.
        training: how it trains, as far as that changes no bit.
        loops: what trains its rounds, and does them again when they are disputed.
        last_epoch: it stops working after this epoch; None never.
    """

    def __init__(
        self,
        node: Node,
        behaviour: Behaviour | None = None,
        *,
        training: TrainingSettings | None = None,
        loops: Loops = InnerLoop,
        last_epoch: Epoch | None = None,
    ) -> None:
        self._node = node
        self._behaviour = behaviour or Behaviour()
        self._last_epoch = last_epoch
        training = training or TrainingSettings()
        self._savepoints = Savepoints(
            node.config.state_dir / "savepoints", every_s=training.save_every_s
        )
        self._prefetch = Prefetch(node.dataset)
        self._bench = Workbench(
            run=node.run_file.run,
            spec=node.run_file.spec,
            spec_hash=node.run_file.spec.hash(),
            miner=node.me,
            dataset=node.dataset,
            prefetch=self._prefetch,
            savepoints=self._savepoints,
            checkpoint_activations=training.checkpoint_activations,
            loops=loops,
        )
        self._zero_root = zero_local_root(node.run_file.spec.model)
        self._answerer = Answerer(node)
        self._others: tuple[Payload, ...] = ()
        self._missed = Round(0)
        self._read_for = Round(0)
        self._refused: set[Round] = set()
        self._defender = Defender(
            node, partial(loops, checkpoint_activations=training.checkpoint_activations)
        )

    async def run(self) -> None:
        """Works until cancelled, or until everything up to `last_epoch` is claimed."""
        try:
            async with asyncio.TaskGroup() as group:
                beside = [group.create_task(self._defend()), group.create_task(self._foresee())]
                while not await self._is_done():
                    await self._work()
                    await self._node.wait()
                for task in beside:
                    task.cancel()
        finally:
            self.close()

    def close(self) -> None:
        """Stops what `step` leaves running."""
        self._defender.close()

    async def step(self) -> None:
        """All loops' work once, as far as there is something to do now."""
        await self._work()
        await self._read_ahead()
        await self._defender.work()

    async def _defend(self) -> None:
        """Beside the work, which takes longer than a game waits for an answer."""
        while True:
            await self._defender.work()
            await self._node.wait()

    async def _foresee(self) -> None:
        """Beside the work, which waits for the round's outcome."""
        while True:
            try:
                await self._read_ahead()
            except Retryable as error:
                logger.debug("no sample is read ahead: %s", error)
            await self._node.wait()

    async def _work(self) -> None:
        """Catches up with the chain and does what there is to do now; what failed is tried again."""
        for concluded in await self._node.tick():
            self._learn(concluded)
        try:
            await self._act()
            await self._answerer.work()
            await claim_rewards(self._node, send=not self._node.chain.paused)
        except Retryable as error:
            logger.warning("%s", error)
        except Reverted as error:
            logger.warning("refused by the contract: %s", error)

    async def _act(self) -> None:
        chain = self._node.chain
        for round_ in (Round(self._node.follower.head - 1), self._node.follower.head):
            if round_ < 1:
                continue
            facts = await self._facts(chain, round_)
            match next_step(facts, chain.clock):
                case Step.TRAIN:
                    await self._train(round_)
                case Step.COMMIT:
                    await self._commit(round_)
                case Step.PUBLISH:
                    self._publish(round_)
                case Step.WAIT:
                    self._say_if_missed(facts)

    async def _read_ahead(self) -> None:
        """Has the next round's samples read once its beacon is drawn, while the round before is still being concluded.

        Asks the contract: the node's own view of the chain stands still meanwhile. A beacon that a reorganisation
        takes back costs a reading and no more.
        """
        chain, round_ = self._node.chain, Round(self._node.follower.head + 1)
        opens = chain.clock.beacon_opens_after(round_, Purpose.ASSIGNMENT)
        if round_ == self._read_for or chain.time <= opens:
            return
        beacon = await chain.contracts.epochs.beacon(round_, Purpose.ASSIGNMENT)
        if beacon is not None:
            self._prefetch.begin(self._assigned(round_, beacon))
            self._read_for = round_

    def _assigned(self, round_: Round, beacon: Hash32) -> tuple[int, ...]:
        """Indices of our samples, in training order."""
        spec = self._node.run_file.spec
        return assigned_samples(
            run=self._node.run_file.run,
            round_=round_,
            beacon=beacon,
            miner=self._node.me,
            count=spec.chain.samples_per_round,
            train_samples=spec.data.train_samples,
        )

    async def _facts(self, chain: RunChain, round_: Round) -> MinerFacts:
        epoch = chain.clock.epoch_of(round_)
        retired = self._last_epoch is not None and epoch > self._last_epoch
        snapshot = await chain.snapshot(epoch)
        key = str(round_)
        return MinerFacts(
            time=chain.time,
            round=round_,
            has_slot=not retired and snapshot.miner_slot(self._node.me) is not None,
            has_beacon=chain.beacon(round_, Purpose.ASSIGNMENT) is not None,
            holds_model=round_ == self._node.follower.head,
            prepared=self._node.journal.signed(_SUBMISSION, key) is not None,
            committed=self._node.outbox.known(f"commit/{round_}"),
            refused=round_ in self._refused,
            published=bool(self._node.board.get(topic_of(round_), self._node.me)),
            commits_late=self._behaviour.commits_late,
            paused=chain.paused,
        )

    async def _train(self, round_: Round) -> None:
        node = self._node
        beacon = node.chain.beacon(round_, Purpose.ASSIGNMENT)
        if beacon is None:
            return
        assigned = self._assigned(round_, beacon)
        self._prefetch.begin(assigned)
        carried, local = await asyncio.to_thread(self._local_state, await self._carried())
        start = Start(
            round=round_,
            beacon=beacon,
            params=node.follower.params,
            initial_root=node.follower.root,
            local=local,
            local_from=carried.round if carried else Round(0),
            local_root=carried.root if carried else self._zero_root,
            assigned=assigned,
            others=self._others,
        )
        logger.info("round %d: training", round_)
        versions = await asyncio.to_thread(self._behaviour.work, self._bench, start)
        self._note_figures(round_, versions[0])
        await asyncio.to_thread(self._prepare, round_, list(versions))
        logger.info("round %d: trained, mean loss %.4f", round_, versions[0].mean_loss)

    def _note_figures(self, round_: Round, work: Work) -> None:
        """Before anything is signed: a miner that is killed in between trains again, and notes again."""
        spec, figures = self._node.run_file.spec, work.figures
        if figures is None:
            return
        self._node.curves.add(
            TrainingRow(
                round=round_,
                mean_loss=work.mean_loss,
                losses=figures.losses,
                learning_rate=figures.learning_rate,
                compression_error=figures.compression_error,
                payload_bytes=work.submission.payload_bytes,
                dense_bytes=4 * parameter_count(spec.model),
                tokens=spec.chain.samples_per_round * spec.model.context,
                train_s=figures.train_s,
                encode_s=figures.encode_s,
            )
        )

    def _prepare(self, round_: Round, versions: list[Work]) -> None:
        """Stores the blobs, then signs; only the first version is what will be committed."""
        node = self._node
        publications = []
        for work in versions:
            for data in work.blobs.values():
                node.store.put(data)
            digest = work.submission.digest(node.run_file.domain)
            signature = node.signer.sign_digest(digest)
            signed = SignedSubmission(submission=work.submission, signature=signature)
            publications.append(Publication(signed=signed, blobs=work.refs()))
        body = canonical.dumps([each.to_bytes().decode() for each in publications])
        digest = versions[0].submission.digest(node.run_file.domain)
        node.journal.sign_once(_SUBMISSION, str(round_), digest, body)
        self._savepoints.clear()

    async def _commit(self, round_: Round) -> None:
        node = self._node
        digest = self._prepared(round_)[0].signed.submission.digest(node.run_file.domain)
        call = node.chain.contracts.epochs.commit_call(round_, digest)
        if not self._behaviour.commits_late:
            deadline = node.chain.block_time_of(node.chain.clock.put_deadline(round_))
            call = call.within(deadline, gas=_COMMIT_GAS)
        try:
            await node.outbox.send(call, f"commit/{round_}")
        except Reverted as error:
            if error.name != PAUSED:
                self._refused.add(round_)
            raise
        logger.info("round %d: committed %s", round_, digest.hex()[:16])

    def _publish(self, round_: Round) -> None:
        node = self._node
        records = [publication.to_bytes() for publication in self._prepared(round_)]
        for publication in records:
            node.board.put(topic_of(round_), node.me, publication)
        self._behaviour.published(topic_of(round_), records)
        logger.info("round %d: published", round_)

    def _prepared(self, round_: Round) -> list[Publication]:
        body = self._node.journal.signed(_SUBMISSION, str(round_))
        records = canonical.loads(body) if body else []
        assert isinstance(records, list)
        return [Publication.from_bytes(str(text).encode()) for text in records]

    def _learn(self, step: Concluded) -> None:
        """Remembers the others' work of a concluded round, and what became of ours."""
        self._others = tuple(
            payload for miner, payload in step.payloads.items() if miner != self._node.me
        )
        accepted = self._node.me in step.payloads
        self._node.curves.judge(step.outcome.round, accepted=accepted)

    async def _carried(self) -> Carried | None:
        """The local state to continue from: of the last accepted round inside the fraud window.

        Looked up on chain for every round that was signed since, so that a node that was away
        continues from the right one too.
        """
        node, chain = self._node, self._node.chain
        carried = self._noted()
        since = carried.round if carried else Round(0)
        for number in range(since + 1, node.follower.head):
            publications = self._prepared(Round(number))
            if not publications:
                continue
            submission = publications[0].signed.submission
            snapshot = await chain.snapshot(chain.clock.epoch_of(Round(number)))
            slot = snapshot.miner_slot(node.me)
            facts = await chain.round_facts(Round(number))
            if slot is None or not was_accepted(facts, slot, submission):
                continue
            carried = Carried(
                round=Round(number),
                root=submission.local_out,
                blob=publications[0].blobs["local"].digest,
            )
            self._note(carried)
        return carried

    def _noted(self) -> Carried | None:
        noted = self._node.journal.noted(_CARRIED)
        return record.from_json(Carried, canonical.loads(noted)) if noted else None

    def _note(self, carried: Carried) -> None:
        before = self._noted()
        self._node.store.pin(carried.blob)
        self._node.journal.note(_CARRIED, canonical.dumps(record.to_json(carried)))
        self._node.curves.judge(carried.round, accepted=True)
        if before is not None and before.blob != carried.blob:
            self._node.store.unpin(before.blob)
        logger.info("round %d: accepted", carried.round)

    def _local_state(self, carried: Carried | None) -> tuple[Carried | None, LocalState]:
        """The carried state's tensors; a fresh one where there is none that still counts."""
        spec, clock = self._node.run_file.spec, self._node.chain.clock
        if carried is not None:
            age = clock.epoch_of(self._node.follower.head) - clock.epoch_of(carried.round)
            data = self._node.store.get(carried.blob)
            if data is not None and age <= spec.chain.fraud_window_epochs:
                return carried, LocalState.from_blob(data, spec.model)
        return None, LocalState.zeros(spec.model)

    def _say_if_missed(self, facts: MinerFacts) -> None:
        if (
            facts.has_slot
            and not facts.prepared
            and facts.holds_model
            and facts.round > self._missed
            and facts.time > self._node.chain.clock.put_deadline(facts.round)
        ):
            self._missed = facts.round
            why = "no assignment beacon" if not facts.has_beacon else "not ready in time"
            logger.warning("round %d: missed (%s)", facts.round, why)

    async def _is_done(self) -> bool:
        if self._last_epoch is None:
            return False
        settled = self._node.chain.settled()
        if self._last_epoch not in settled or not self._defender.is_idle:
            return False
        return not await claim_rewards(self._node, send=False)
