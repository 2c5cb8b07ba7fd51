"""One round's intake and attestation."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from ledger.contracts.registry import Role
from node.accepted import AcceptedWork
from node.contents import size_limits
from node.exchange import Roster
from node.node import Node
from protocol import canonical
from protocol.assignment import assigned_samples
from protocol.errors import Rejected, Retryable
from protocol.hashing import keccak256
from protocol.ids import Address, Hash32, Round, Slot
from protocol.merkle import merkle_root
from scoring.acceptance import bitmap_of
from scoring.checks import Expectation, Fault
from training.roots import zero_local_root
from validator.intake import Intake

logger = logging.getLogger(__name__)

_ATTESTATION = "attestation"
_ATTEST_GAS = 400_000
"""Far above what it takes: an estimate at the head's time can be refused as a second too early."""


class Attester:
    """Gathers what miners hand in and puts the validator's stake behind what it holds."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._spec_hash = node.run_file.spec.hash()
        self._zero_root = zero_local_root(node.run_file.spec.model)
        self._intake = Intake(run_file=node.run_file, exchange=node.exchange)
        self._accepted = AcceptedWork(
            chain=node.chain, exchange=node.exchange, spec=node.run_file.spec, me=node.me
        )
        self._expected: dict[Round, dict[Address, Expectation]] = {}

    async def work(self) -> None:
        """Gathers and checks while miners publish; attests when the publish deadline is over."""
        chain = self._node.chain
        round_ = self._node.follower.head
        clock, time = chain.clock, chain.time
        if not clock.put_deadline(round_) < time < clock.attest_deadline(round_):
            return
        if self._node.outbox.known(_key(round_)):
            return
        roster = await chain.roster(round_)
        if roster is not None:
            await self._gather(roster)
        if chain.time > clock.publish_deadline(round_):
            await self._attest(round_, roster)

    def faults(self, roster: Roster) -> dict[Address, tuple[Fault, ...]]:
        """What was wrong with each miner's work of a round, as far as this node saw it."""
        held = self._intake.held(roster)
        versions = self._node.exchange.versions(roster.round)
        found: dict[Address, tuple[Fault, ...]] = {}
        for miner in roster.operators:
            faults: tuple[Fault, ...] = ()
            if miner in held:
                faults = held[miner].faults
            elif miner in roster.commits:
                faults = (Fault.MISSING,)
            if len(versions.get(miner, {})) > 1:
                faults = (*faults, Fault.EQUIVOCATION)
            if faults:
                found[miner] = faults
        return found

    async def review(self, roster: Roster, root: Hash32) -> None:
        """Examines what is here of a round that started at ``root`` and was not examined yet.

        That is nothing, unless the node was restarted since: then `faults` would know too little. What was published while it was
        down, so that it did not attest, the other validators hold.
        """
        self._node.exchange.reload(roster)
        if self._node.journal.signed(_ATTESTATION, str(roster.round)) is None:
            validators = await self._node.chain.validator_endpoints(without=self._node.me)
            await self._node.exchange.pull(roster, validators)
        committed = self._node.exchange.committed(roster)
        if committed.keys() - self._intake.held(roster).keys():
            try:
                await self._examine(roster, root)
            except (Retryable, Rejected) as error:
                logger.warning("round %d: not reviewed: %s", roster.round, error)

    async def _gather(self, roster: Roster) -> None:
        node = self._node
        validators = await node.chain.validator_endpoints(without=node.me)
        miners = await node.chain.miner_endpoints()
        await node.exchange.pull(roster, [*miners, *validators])
        await self._examine(
            roster, node.follower.root, patience_s=node.run_file.spec.chain.attest_s / 2
        )

    async def _examine(
        self, roster: Roster, root: Hash32, *, patience_s: float | None = None
    ) -> None:
        chain = self._node.chain
        validators = await chain.validator_endpoints(without=self._node.me)
        endpoints = chain.endpoints()
        mirrors = {
            miner: [endpoint for endpoint in (endpoints.get(miner), *validators) if endpoint]
            for miner in roster.commits
        }
        await self._intake.examine(
            roster, await self._expectations(roster, root), mirrors, patience_s=patience_s
        )

    async def _attest(self, round_: Round, roster: Roster | None) -> None:
        node = self._node
        signed = node.journal.signed(_ATTESTATION, str(round_))
        if signed is None:
            bits = await self._bits(round_, roster) if roster is not None else []
            bitmap = bitmap_of(bits, node.chain.slot_count(Role.MINER))
            signed = canonical.dumps({"bitmap": bitmap.hex(), "root": node.follower.root.hex()})
            node.journal.sign_once(_ATTESTATION, str(round_), Hash32(keccak256(signed)), signed)
        body = canonical.loads(signed)
        assert isinstance(body, Mapping)
        root = Hash32(bytes.fromhex(str(body["root"])))
        bitmap = bytes.fromhex(str(body["bitmap"]))
        call = node.chain.contracts.epochs.attest_call(round_, root, bitmap)
        deadline = node.chain.block_time_of(node.chain.clock.attest_deadline(round_))
        await node.outbox.send(call.within(deadline, gas=_ATTEST_GAS), _key(round_))
        logger.info("round %d: attested %s, root %s", round_, bitmap.hex(), root.hex()[:16])

    async def _bits(self, round_: Round, roster: Roster) -> list[Slot]:
        node = self._node
        snapshot = await node.chain.snapshot(node.chain.clock.epoch_of(round_))
        held, faults = self._intake.held(roster), self.faults(roster)
        good = {miner for miner in held if miner not in faults}
        for miner in good:
            for ref in held[miner].publication.blobs.values():
                node.store.pin(ref.digest)
        return [slot for slot, holder in snapshot.miners.items() if holder.account in good]

    async def _expectations(self, roster: Roster, root: Hash32) -> dict[Address, Expectation]:
        known = self._expected.get(roster.round)
        if known is not None:
            return known
        spec, dataset = self._node.run_file.spec, self._node.dataset
        origins = await self._accepted.origins(roster.round)
        recent = {root: round_ for round_, root in self._node.chain.final_roots().items()}
        found = {}
        for miner in roster.operators:
            samples = assigned_samples(
                run=self._node.run_file.run,
                round_=roster.round,
                beacon=roster.beacon,
                miner=miner,
                count=spec.chain.samples_per_round,
                train_samples=spec.data.train_samples,
            )
            found[miner] = Expectation(
                run=self._node.run_file.run,
                spec_hash=self._spec_hash,
                round=roster.round,
                beacon=roster.beacon,
                miner=miner,
                initial_root=root,
                recent_roots=recent,
                steps=spec.inner.steps,
                data_root=merkle_root([dataset.leaf_hash(sample) for sample in samples]),
                zero_local_root=self._zero_root,
                origin=origins.get(miner),
                max_payload_bytes=size_limits(spec)["payload"],
                max_steps_behind=spec.scoring.max_steps_behind,
            )
        self._expected = {roster.round: found}
        return found


def _key(round_: Round) -> str:
    return f"attest/{round_}"
