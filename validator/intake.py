"""Fetching and checking what miners hand in, before a validator puts its stake behind it.

A holding without faults is what a set bit in the attestation promises: the submission, its payload,
its data and trace leaves and its local state are here, are what was signed, and will be served.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from node.contents import read_data_leaves, read_local, read_payload, read_trace
from node.exchange import Exchange, Roster
from protocol.errors import Rejected, Retryable
from protocol.ids import Address, Hash32, Round
from protocol.runfile import RunFile
from protocol.submission import BLOB_KINDS, Publication
from scoring.checks import Delivery, Expectation, Fault, visible_faults
from training.codec import Payload

logger = logging.getLogger(__name__)

_FETCHES_AT_ONCE = 4
ROUNDS_KEPT = 8
"""Holdings are kept in memory until the round is scored, which may take a while after a restart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """A committed submission that was fetched whole, and what is visibly wrong with it.

    Attributes:
        payload: the decoded update; None if it did not decode.
    """

    publication: Publication
    digest: Hash32
    faults: tuple[Fault, ...]
    payload: Payload | None


class Intake:
    """Examines each committed submission of a round once.

    Args:
        run_file: the run.
        exchange: where publications and blobs come from.
    """

    def __init__(self, *, run_file: RunFile, exchange: Exchange) -> None:
        self._run_file = run_file
        self._exchange = exchange
        self._held: dict[Round, dict[Hash32, Holding]] = {}
        self._slots = asyncio.Semaphore(_FETCHES_AT_ONCE)

    def held(self, roster: Roster) -> dict[Address, Holding]:
        """What was examined of a round, by miner."""
        held = self._held.get(roster.round, {})
        return {miner: held[digest] for miner, digest in roster.commits.items() if digest in held}

    async def examine(
        self,
        roster: Roster,
        expectations: Mapping[Address, Expectation],
        mirrors: Mapping[Address, Sequence[str]],
    ) -> None:
        """Examines every committed publication that is known and was not examined yet.

        Args:
            roster: of the round.
            expectations: what a right submission of each miner says.
            mirrors: where each miner's blobs may be had.
        """
        fresh = {
            miner: publication
            for miner, publication in self._exchange.committed(roster).items()
            if roster.commits[miner] not in self._held.get(roster.round, {})
            and miner in expectations
        }
        await asyncio.gather(
            *(
                self._examine_one(publication, expectations[miner], roster, mirrors.get(miner, ()))
                for miner, publication in fresh.items()
            )
        )

    async def _examine_one(
        self,
        publication: Publication,
        expectation: Expectation,
        roster: Roster,
        mirrors: Sequence[str],
    ) -> None:
        async with self._slots:
            try:
                blobs = {
                    kind: await self._exchange.blob(publication, kind, mirrors)
                    for kind in BLOB_KINDS
                }
            except Retryable as error:
                logger.info("%s: not whole yet: %s", expectation.miner, error)
                return
            except Rejected as error:
                logger.info("%s: %s", expectation.miner, error)
                blobs = {}
        holding = await asyncio.to_thread(self._check, publication, blobs, expectation, roster)
        self._held.setdefault(roster.round, {})[holding.digest] = holding
        for old in [round_ for round_ in self._held if round_ < roster.round - ROUNDS_KEPT]:
            del self._held[old]
        if holding.faults:
            logger.info("%s: %s", expectation.miner, ", ".join(holding.faults))

    def _check(
        self,
        publication: Publication,
        blobs: Mapping[str, bytes],
        expectation: Expectation,
        roster: Roster,
    ) -> Holding:
        submission, spec = publication.signed.submission, self._run_file.spec
        digest = submission.digest(self._run_file.domain)
        payload: Payload | None = None
        whole = False
        if blobs:
            try:
                payload = read_payload(blobs["payload"], submission, spec)
                read_data_leaves(blobs["data"], submission, spec)
                read_trace(blobs["trace"], submission, spec)
                read_local(blobs["local"], submission, spec)
                whole = True
            except Rejected as error:
                logger.info("%s: %s", expectation.miner, error)
        delivery = Delivery(
            digest=digest,
            committed=roster.commits.get(expectation.miner),
            signature_valid=True,
            payload_root=submission.payload_root if whole else None,
            local_root=submission.local_out if whole else None,
        )
        return Holding(
            publication=publication,
            digest=digest,
            faults=visible_faults(submission, expectation, delivery),
            payload=payload,
        )
