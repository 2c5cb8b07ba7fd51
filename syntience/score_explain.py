"""Explaining a miner's score from what a validator published, and from the chain what came of it."""

from __future__ import annotations

from pathlib import Path

from ledger.connection import Connection
from ledger.runs import join, load_run_file
from node.settlements import Settlements
from protocol.clock import RoundClock
from protocol.errors import OperatorError
from protocol.ids import Address, Epoch, Round
from scoring.consensus import consensus_weights, weights_by_address
from scoring.explain import Explanation, Settled, explain
from scoring.report import RoundReport
from syntience.layers import Secret
from syntience.published import HomeSource, Source, read_epoch, read_round
from syntience.session import read_run

_MOST_ROUNDS = 256
"""A server is asked for so many rounds of an epoch, back from its end."""


async def explain_miner(
    source: Source,
    miner: Address,
    epoch: Epoch,
    *,
    run_file: Path | None = None,
    rpc_url: Secret | None = None,
) -> Explanation:
    """Explains one miner's score in one epoch.

    Args:
        source: the validator whose reports to read.
        miner, epoch: whose score.
        run_file: tells an epoch's rounds, where the validator has not fixed its weights yet and is no folder here.
        rpc_url: with `run_file`, asked for consensus weight and pay.

    Raises:
        OperatorError: the validator has no report of that epoch, or never heard of the miner.
    """
    weights = await read_epoch(source, epoch)
    run = load_run_file(run_file) if run_file is not None else None
    last = weights.round if weights is not None else None
    if run is not None:
        last = RoundClock(run.spec.chain).last_round(epoch)
    reports, before = await _reports(source, epoch, last)
    if not reports:
        raise OperatorError(
            f"{source.name} has no report of epoch {epoch}",
            "give --run for the epoch under way, another --epoch, or another validator with --from",
        )
    if reports[-1].peer(miner) is None:
        raise OperatorError(
            f"no report of epoch {epoch} knows {miner}",
            "it handed in nothing so far, or this is not the address of its account",
        )
    settled = None
    if run_file is not None and rpc_url is not None:
        settled = await _settled(run_file, rpc_url, miner, epoch)
    return explain(miner, reports, before=before, weights=weights, settled=settled)


async def _reports(
    source: Source, epoch: Epoch, last: Round | None
) -> tuple[list[RoundReport], RoundReport | None]:
    """The epoch's reports, ascending, and the one before them."""
    if isinstance(source, HomeSource):
        candidates = source.rounds()[::-1]
    else:
        newest = last or Round(0)
        candidates = [Round(n) for n in range(newest, max(0, newest - _MOST_ROUNDS), -1)]
    found: list[RoundReport] = []
    for round_ in candidates:
        for report in (await read_round(source, round_))[:1]:
            if report.epoch < epoch:
                return found, report
            if report.epoch == epoch:
                found.insert(0, report)
    return found, None


async def _settled(run_file: Path, rpc_url: Secret, miner: Address, epoch: Epoch) -> Settled | None:
    """The miner's consensus weight and pay, once the epoch is final."""
    run = load_run_file(run_file)
    async with await Connection.open(rpc_url.reveal(), chain_id=run.chain_id) as connection:
        contracts = await join(run, connection)
        async with read_run(connection, contracts, run) as chain:
            settlements = Settlements(chain, miners_bps=run.spec.chain.miners_bps)
            tree = await settlements.final(epoch)
            if tree is None:
                return None
            snapshot = await chain.snapshot(epoch)
            reveals = await chain.reveals(epoch)
            weights = weights_by_address(consensus_weights(reveals), snapshot.miner_accounts)
            leaves = [leaf for leaf in tree.leaves.values() if leaf.account == miner]
            return Settled(
                consensus_weight=weights.get(miner, 0),
                amount=sum(leaf.amount for leaf in leaves),
            )
