"""Recomputing the losses that a validator reported, from the round's model, the payloads and the data set."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, fields

from protocol.ids import Address
from protocol.spec import RunSpec
from scoring.replay import Difference, own_batch
from scoring.report import Bits, LossReport, RoundReport, bits, value_of
from syntience.published import Source, model_at, payloads_at
from training.aggregate import aggregate
from training.codec import Payload
from training.dataset import TokenDataset
from training.outer import OuterStep
from training.parameters import Parameters
from training.roots import state_root
from validator.evaluation import Exam, Examiner

TOLERANCE = 1e-6
"""Parts of a loss by which another processor or number of threads may differ. Measured: 5e-9 between AVX-512 and AVX2, up to 7 M
parameters; none between one thread and two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossCheck:
    """What recomputing a round's losses came to.

    Attributes:
        compared: losses.
        unequal: those with other bits.
        largest: the largest difference, in parts of the loss.
        differences: what lies outside of the tolerance, or is no loss.
    """

    compared: int
    unequal: tuple[Difference, ...]
    largest: float
    differences: tuple[Difference, ...]


class LossReplayer:
    """Recomputes rounds of one run over its data set. Threads are pinned by the caller."""

    def __init__(self, spec: RunSpec, dataset: TokenDataset, source: Source) -> None:
        self._spec, self._source = spec, source
        self._examiner = Examiner(spec, dataset)

    async def check(self, report: RoundReport) -> LossCheck:
        """Recomputes one round.

        Raises:
            OperatorError: the source does not have the model or a payload.
        """
        before = await model_at(self._source, report.round, report.root_before, self._spec)
        wanted = {*report.selected, *(loss.miner for loss in report.losses)}
        payloads = await payloads_at(self._source, report, wanted, self._spec)
        return await asyncio.to_thread(self._compare, report, before, payloads)

    def _compare(
        self, report: RoundReport, before: Parameters, payloads: dict[Address, Payload]
    ) -> LossCheck:
        losses = self._losses(report, before, payloads)
        chosen = [payloads[miner] for miner in report.selected]
        after = aggregate(before, chosen, OuterStep.of(self._spec.outer, report.round))
        where = f"round {report.round}"
        found = []
        if (root := state_root(after)) != report.root_after:
            found.append(
                Difference(
                    where=where,
                    miner=None,
                    factor="state root after",
                    reported=report.root_after.hex(),
                    recomputed=root.hex(),
                )
            )
        heldout = bits(self._examiner.heldout_loss(after))
        pairs = [
            *_pairs(report.losses, losses, where),
            Difference(
                where=where,
                miner=None,
                factor="heldout_loss",
                reported=report.heldout_loss,
                recomputed=heldout,
            ),
        ]
        unequal = [pair for pair in pairs if pair.reported != pair.recomputed]
        found += [pair for pair in unequal if not _distance(pair) <= TOLERANCE]
        return LossCheck(
            compared=len(pairs),
            unequal=tuple(unequal),
            largest=max(map(_distance, unequal), default=0.0),
            differences=tuple(found),
        )

    def _losses(
        self, report: RoundReport, before: Parameters, payloads: dict[Address, Payload]
    ) -> list[LossReport]:
        peers = [loss.miner for loss in report.losses]
        if not peers:
            return []
        exam = Exam(
            round=report.round,
            params=before,
            payloads=payloads,
            selected=report.selected,
            peers=peers,
            random=report.random,
            own={miner: own_batch(report, miner) for miner in peers},
        )
        return [LossReport.of(each) for each in self._examiner.examine(exam)]


def _pairs(
    told: tuple[LossReport, ...], ours: list[LossReport], where: str
) -> Iterator[Difference]:
    """Every reported loss beside the recomputed one."""
    for one, other in zip(told, ours, strict=True):
        for field in fields(LossReport):
            if field.name != "miner":
                yield Difference(
                    where=where,
                    miner=one.miner,
                    factor=field.name,
                    reported=getattr(one, field.name),
                    recomputed=getattr(other, field.name),
                )


def _distance(pair: Difference) -> float:
    """In parts of the loss; infinite if only one of them is."""
    one, other = value_of(Bits(pair.reported)), value_of(Bits(pair.recomputed))
    return 0.0 if one == other else abs(one - other) / max(1.0, abs(other))
