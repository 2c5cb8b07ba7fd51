"""Fetching and checking what miners hand in, before a validator puts its stake behind it.

A holding without faults is what a set bit in the attestation promises: the submission, its payload,
its data and trace leaves and its local state are here, are what was signed, and will be served.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from node.contents import read_data_leaves, read_local, read_payload, read_trace
from node.exchange import Exchange, Roster
from protocol.errors import Rejected, Retryable
from protocol.ids import Address, Hash32, Round
from protocol.runfile import RunFile
from protocol.submission import BLOB_KINDS, BlobRef, Publication
from scoring.checks import Delivery, Expectation, Fault, visible_faults

logger = logging.getLogger(__name__)

_FETCHES_AT_ONCE = 4
ROUNDS_KEPT = 8
"""Holdings are kept in memory until the round is scored, which may take a while after a restart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """A committed submission that was fetched whole, and what is visibly wrong with it."""

    publication: Publication
    digest: Hash32
    faults: tuple[Fault, ...]


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
        self._tried: dict[Round, Counter[Hash32]] = {}
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
        *,
        patience_s: float | None = None,
    ) -> None:
        """Examines every committed publication that is known and was not examined yet.

        One whose blobs were not what was signed is tried again: another may know where they are.

        Args:
            roster: of the round.
            expectations: what a right submission of each miner says.
            mirrors: where each miner's blobs may be had.
            patience_s: the most that it takes; who was slow comes last when it is called again.
        """
        fresh = {
            miner: publication
            for miner, publication in self._exchange.committed(roster).items()
            if miner in expectations and self._is_open(roster.commits[miner], roster.round)
        }
        tried = self._tried.setdefault(roster.round, Counter())
        self._tried.pop(Round(roster.round - ROUNDS_KEPT), None)
        order = sorted(fresh, key=lambda miner: tried[roster.commits[miner]])
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                await asyncio.gather(
                    *(
                        self._examine_one(
                            fresh[miner], expectations[miner], roster, mirrors.get(miner, ())
                        )
                        for miner in order
                    )
                )

    def _is_open(self, digest: Hash32, round_: Round) -> bool:
        holding = self._held.get(round_, {}).get(digest)
        return holding is None or Fault.FORMAT in holding.faults

    async def _examine_one(
        self,
        publication: Publication,
        expectation: Expectation,
        roster: Roster,
        mirrors: Sequence[str],
    ) -> None:
        async with self._slots:
            self._tried[roster.round][roster.commits[expectation.miner]] += 1
            try:
                publication = await self._follow(publication, mirrors)
                whole = True
            except Retryable as error:
                logger.info("%s: not whole yet: %s", expectation.miner, error)
                return
            except Rejected as error:
                logger.info("%s: %s", expectation.miner, error)
                whole = False
        holding = self._examined(publication, expectation, roster, whole=whole)
        self._held.setdefault(roster.round, {})[holding.digest] = holding
        for old in [round_ for round_ in self._held if round_ < roster.round - ROUNDS_KEPT]:
            del self._held[old]
        if holding.faults:
            logger.info("%s: %s", expectation.miner, ", ".join(holding.faults))

    async def _follow(self, publication: Publication, mirrors: Sequence[str]) -> Publication:
        """Fetches all blobs; returns the publication with the locators that led to them.

        Raises:
            Retryable: a blob can't be had just now.
            Rejected: what is there is not what was signed.
        """
        submission, spec = publication.signed.submission, self._run_file.spec
        readers: dict[str, Callable[..., object]] = {
            "data": read_data_leaves,
            "local": read_local,
            "payload": read_payload,
            "trace": read_trace,
        }
        blobs: dict[str, BlobRef] = {}
        for kind in BLOB_KINDS:
            read = partial(readers[kind], submission=submission, spec=spec)
            blobs[kind], _ = await self._exchange.content(publication, kind, mirrors, read)
        followed = Publication(signed=publication.signed, blobs=blobs)
        self._exchange.confirm(followed)
        return followed

    def _examined(
        self, publication: Publication, expectation: Expectation, roster: Roster, *, whole: bool
    ) -> Holding:
        submission = publication.signed.submission
        digest = submission.digest(self._run_file.domain)
        delivery = Delivery(
            digest=digest,
            committed=roster.commits.get(expectation.miner),
            signature_valid=True,
            payload_root=submission.payload_root if whole else None,
            local_root=submission.local_out if whole else None,
        )
        faults = visible_faults(submission, expectation, delivery)
        return Holding(publication=publication, digest=digest, faults=faults)
