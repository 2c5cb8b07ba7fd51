"""One call of `syntience score replay`: from what the operator named to what came of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ledger.runs import load_run_file
from protocol.errors import OperatorError
from protocol.ids import Hash32, Round
from protocol.runfile import RunFile
from syntience.published import Source, has_model
from syntience.score_losses import LossReplayer
from syntience.score_replay import (
    Chain,
    Told,
    gather,
    loss_replayer,
    only,
    open_source,
    read_files,
    replay_all,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayWish:
    """What to replay.

    Attributes:
        places: report files, nodes' state folders, URLs.
        digests: only these reports; none for all.
        rounds: only these; None for all that a folder has.
        book: the book before the first report, if no place has it.
        run_file: compared with; needed for losses.
        losses: whether to recompute them.
        state: where models and payloads of reports from files are.
        data: the data set; else the node's.
        threads: for the losses; None as in the run's spec.
    """

    places: tuple[str, ...]
    digests: tuple[Hash32, ...] = ()
    rounds: tuple[Round, ...] | None = None
    book: Path | None = None
    run_file: Path | None = None
    losses: bool = False
    state: str | None = None
    data: Path | None = None
    threads: int | None = None
    allow_private: bool = False


async def replay_wished(wish: ReplayWish) -> list[Chain]:
    """Replays everything, place by place.

    Raises:
        OperatorError: a place holds no reports, or not what they need.
    """
    run_file = load_run_file(wish.run_file) if wish.run_file is not None else None
    if wish.losses and run_file is None:
        raise OperatorError("losses follow from the run's model and codec", "give --run")
    files = [place for place in wish.places if _is_file(place)]
    chains: list[Chain] = []
    if files:
        told = only(read_files([Path(place) for place in files]), wish.digests)
        chains += await _replay_told(wish, told, run_file)
    for place in wish.places:
        if place not in files:
            async with open_source(place, allow_private=wish.allow_private) as source:
                told = only(await gather(source, wish.rounds), wish.digests)
                chains += await _replay_told(wish, told, run_file)
    if not chains:
        raise OperatorError(
            "there is no report to replay", "check --rounds and --digest, or ask another validator"
        )
    return chains


async def _replay_told(wish: ReplayWish, told: Told, run_file: RunFile | None) -> list[Chain]:
    chains = await replay_all(told, book=wish.book, run_file=run_file)
    if not wish.losses or run_file is None:
        return chains
    threads = wish.threads or run_file.spec.compute.threads
    async with (
        _loss_source(wish, told) as source,
        loss_replayer(source, run_file.spec, wish.data, threads=threads) as replayer,
    ):
        return [await _with_losses(chain, told, source, replayer) for chain in chains]


@asynccontextmanager
async def _loss_source(wish: ReplayWish, told: Told) -> AsyncIterator[Source]:
    if wish.state is None and told.source is not None:
        yield told.source
    elif wish.state is None:
        raise OperatorError(
            "files hold no models and payloads", "give a node that has them with --state"
        )
    else:
        async with open_source(wish.state, allow_private=wish.allow_private) as source:
            yield source


async def _with_losses(chain: Chain, told: Told, source: Source, replayer: LossReplayer) -> Chain:
    """With the losses of every round that is not void and whose model is still kept."""
    checks, without = {}, []
    for report in told.rounds:
        if report.validator != chain.validator or report.round not in chain.covers:
            continue
        if not await has_model(source, report.round):
            without.append(report.round)
        elif not report.void:
            checks[report.round] = await replayer.check(report)
    return replace(chain, losses=checks, without_model=tuple(without))


def _is_file(place: str) -> bool:
    return Path(place).is_file()
