"""What a command that signs with one key and ends works with: the chain, the run's contracts, the key's outbox."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ledger.connection import Connection
from ledger.contracts import Contracts
from ledger.events import EventReader
from ledger.outbox import Outbox
from ledger.runs import join, load_run_file
from node.chain import RunChain
from protocol.clock import RoundClock
from protocol.ids import Address
from protocol.ports import Signer
from protocol.runfile import RunFile
from syntience.layers import Secret
from syntience.staking import Owner


@asynccontextmanager
async def open_owner(
    *, run_file: Path, rpc_url: Secret, state_dir: Path, signer: Signer
) -> AsyncIterator[Owner]:
    """Opens a run for one key; its transactions are kept in `state_dir` until they are through.

    Raises:
        OperatorError: whatever is wrong with run file, node, contracts or state.
    """
    run = load_run_file(run_file)
    async with await Connection.open(rpc_url.reveal(), chain_id=run.chain_id) as connection:
        contracts = await join(run, connection)
        path = outbox_file(state_dir, connection.chain_id, signer.address)
        async with await Outbox.open(path, connection, signer) as outbox:
            yield Owner(
                connection=connection,
                contracts=contracts,
                run_file=run,
                outbox=outbox,
                signer=signer,
            )


@asynccontextmanager
async def read_run(
    connection: Connection, contracts: Contracts, run_file: RunFile, folder: Path | None = None
) -> AsyncIterator[RunChain]:
    """The run as its events show it, up to date.

    Args:
        folder: where to keep the events, so that the next reading only fetches new ones; None forgets them.
    """
    async with AsyncExitStack() as stack:
        if folder is None:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="syntience-")))
        events = await EventReader.open(
            folder / f"events-{run_file.run.hex()[:16]}.db",
            connection,
            run_file.contracts,
            from_block=run_file.deploy_block,
        )
        stack.callback(events.close)
        chain = RunChain(contracts=contracts, events=events, clock=RoundClock(run_file.spec.chain))
        await chain.poll()
        yield chain


def outbox_file(state_dir: Path, chain_id: int, address: Address) -> Path:
    """Where a command keeps the transactions of a key; a node keeps its own elsewhere."""
    return state_dir / f"outbox-{chain_id}-{address}.db"
