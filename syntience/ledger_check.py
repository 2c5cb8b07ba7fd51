"""Checking a copy of the public data ledger, with or without the chain at hand."""

from __future__ import annotations

from pathlib import Path

from ledger.connection import Connection
from ledger.datalog import Audit, verify
from ledger.datalog_lines import read_log
from ledger.runs import join, load_run_file
from protocol.errors import OperatorError
from syntience.layers import Secret
from syntience.session import read_run

LOG = "log.jsonl"


async def check_ledger(folder: Path, *, run_file: Path, rpc_url: Secret | None) -> Audit:
    """Verifies every byte of the copy, and against the chain where a node of it is given.

    Raises:
        OperatorError: there is no copy, or it is damaged; says which line.
    """
    if not (folder / LOG).exists():
        raise OperatorError(
            f"there is no data ledger in {folder}",
            "give the `ledger` folder of a validator's state",
        )
    run = load_run_file(run_file)
    if rpc_url is None:
        return verify(folder, run=run.run, domain=run.domain)
    upto = max((line.block for line in read_log(folder / LOG, run.run)), default=-1)
    async with await Connection.open(rpc_url.reveal(), chain_id=run.chain_id) as connection:
        contracts = await join(run, connection)
        async with read_run(connection, contracts, run) as chain:
            events = chain.events.store.all(upto=upto)
            return verify(folder, run=run.run, domain=run.domain, events=events)
