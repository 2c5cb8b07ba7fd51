"""Committing and revealing an epoch's weights.

The vector is fixed once, in the journal, before it is committed, with a report of what it was taken from; the salt follows from
the key, so a restarted validator reveals exactly what it committed.
"""

from __future__ import annotations

import logging

from ledger.contracts.registry import Role
from node.node import Node
from protocol.hashing import abi_words, keccak256
from protocol.ids import Epoch, Hash32
from protocol.settlement import weights_commitment
from scoring.book import ScoreBook
from scoring.report import EpochReport, book_digest, slots_of
from scoring.weights import encode_weights
from validator.shelf import Shelf

logger = logging.getLogger(__name__)

_WEIGHTS = "weights"
_LAST_MOMENT_S = 4
"""So long before the commit deadline an epoch's weights are taken as they are."""


class WeightKeeper:
    """One validator's weights, epoch by epoch."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._shelf = Shelf(node)

    async def fix(self, epoch: Epoch, book: ScoreBook) -> None:
        """Fixes the weights of an epoch that ended as the book has them now, unless they are fixed."""
        node = self._node
        if epoch < 1 or node.journal.signed(_WEIGHTS, str(epoch)) is not None:
            return
        snapshot = await node.chain.snapshot(epoch)
        if snapshot.validator_slot(node.me) is None:
            return
        slashed = node.chain.faults_of_epoch(epoch)
        vector = book.weights(
            epoch,
            slots=snapshot.miner_accounts,
            slot_count=node.chain.slot_count(Role.MINER),
            slashed=slashed,
        )
        report = EpochReport(
            run=node.run_file.run,
            spec_hash=node.run_file.spec.hash(),
            validator=node.me,
            epoch=epoch,
            round=book.round,
            book=book_digest(book),
            slots=slots_of(snapshot.miner_accounts),
            slashed=tuple(sorted(slashed)),
            weights=vector,
        )
        digest = Hash32(keccak256(encode_weights(vector)))
        node.journal.sign_once(_WEIGHTS, str(epoch), digest, report.to_bytes())
        self._shelf.offer_epoch(report)
        logger.info("epoch %d: weights %s", epoch, list(vector))

    async def work(self, book: ScoreBook) -> None:
        """Fixes, commits and reveals whatever is due."""
        chain, clock = self._node.chain, self._node.chain.clock
        epoch = Epoch(chain.epoch - 1)
        if epoch < 1:
            return
        deadline = clock.weight_commit_deadline(epoch)
        scored = book.round >= clock.last_round(epoch)
        if clock.epoch_end(epoch) < chain.time <= deadline:
            if scored or chain.time > deadline - _LAST_MOMENT_S:
                await self.fix(epoch, book)
                await self._commit(epoch)
        elif deadline < chain.time <= clock.weight_reveal_deadline(epoch):
            await self._reveal(epoch)

    async def _commit(self, epoch: Epoch) -> None:
        node = self._node
        weights = self._fixed(epoch)
        if weights is None or node.outbox.known(_key("commit", epoch)):
            return
        commitment = weights_commitment(
            run=node.run_file.run,
            validator=node.me,
            epoch=epoch,
            weights=weights,
            salt=self._salt(epoch),
        )
        call = node.chain.contracts.scores.commit_weights_call(epoch, commitment)
        await node.outbox.send(call, _key("commit", epoch))
        logger.info("epoch %d: committed weights", epoch)

    def _fixed(self, epoch: Epoch) -> bytes | None:
        """The weights as they are revealed; offers their report, which a kill may have kept back."""
        signed = self._node.journal.signed(_WEIGHTS, str(epoch))
        if signed is None:
            return None
        report = EpochReport.from_bytes(signed)
        self._shelf.offer_epoch(report)
        return encode_weights(report.weights)

    async def _reveal(self, epoch: Epoch) -> None:
        node = self._node
        weights = self._fixed(epoch)
        committed = node.outbox.known(_key("commit", epoch))
        if weights is None or not committed or node.outbox.known(_key("reveal", epoch)):
            return
        snapshot = await node.chain.snapshot(epoch)
        slot = snapshot.validator_slot(node.me)
        assert slot is not None  # it fixed its weights
        call = node.chain.contracts.scores.reveal_weights_call(
            epoch, slot=slot, account=node.me, weights=weights, salt=self._salt(epoch)
        )
        await node.outbox.send(call, _key("reveal", epoch))
        logger.info("epoch %d: revealed weights", epoch)

    def _salt(self, epoch: Epoch) -> Hash32:
        """Secret and repeatable: the hash of a signature that nobody else can make."""
        message = keccak256(keccak256(b"syntience.weights.salt.v1") + abi_words(epoch))
        digest = self._node.run_file.domain.digest(message)
        return Hash32(keccak256(self._node.signer.sign_digest(digest)))


def _key(what: str, epoch: Epoch) -> str:
    return f"weights-{what}/{epoch}"
