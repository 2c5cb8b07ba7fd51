"""The run file on disk, and the check that it tells the truth about the chain."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path

from ledger.connection import Connection
from ledger.contracts import Contracts
from ledger.errors import NotDeployed, Reverted, RunFileError, RunMismatch, Undecodable
from protocol.errors import Rejected
from protocol.runfile import RunFile
from protocol.terms import params_under


def load_run_file(path: Path) -> RunFile:
    """Reads a run file.

    Raises:
        RunFileError: with what to do about it.
    """
    try:
        return RunFile.from_bytes(path.read_bytes())
    except FileNotFoundError as error:
        raise RunFileError(
            f"there is no run file {path}",
            "get it from the run's operator, or give the right --run",
        ) from error
    except OSError as error:
        raise RunFileError(
            f"cannot read the run file {path} ({error.strerror})", "mend its permissions"
        ) from error
    except Rejected as error:
        raise RunFileError(f"{path} is no valid run file ({error})", "get a fresh copy") from error


def write_run_file(path: Path, run_file: RunFile) -> None:
    """Writes a run file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.draft")
    with draft.open("wb") as file:
        file.write(run_file.to_bytes() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


async def join(run_file: RunFile, connection: Connection) -> Contracts:
    """Checks a run file against the chain and opens the run's contracts.

    Args:
        run_file: what was loaded.
        connection: opened with the run's chain id.

    Raises:
        NotDeployed: a contract is not there (another network, a chain that started anew).
        RunMismatch: the contracts say something else than the file.
    """
    if connection.chain_id != run_file.chain_id:
        raise RunMismatch(
            f"the run lives on chain {run_file.chain_id}, not on {connection.chain_id}",
            "give --rpc a node of that chain",
        )
    await _check_code(run_file, connection)
    contracts = Contracts(connection, run_file.contracts)
    try:
        await _check_agreement(run_file, contracts)
    except (Undecodable, Reverted) as error:
        raise RunMismatch(
            f"the contracts of the run file answer like others ({error})",
            "use the release that the run was deployed with, or the right run file",
        ) from error
    return contracts


async def _check_code(run_file: RunFile, connection: Connection) -> None:
    for item in fields(run_file.contracts):
        address = getattr(run_file.contracts, item.name)
        if not await connection.code(address):
            raise NotDeployed(
                f"the run's contract {item.name} is not at {address} on {connection.shown_url}",
                "check --run and --rpc; a development chain that was restarted has lost the run",
            )


async def _check_agreement(run_file: RunFile, contracts: Contracts) -> None:
    if await contracts.epochs.run() != run_file.run:
        raise _mismatch("another run's id")
    ours = [
        terms
        for terms in await contracts.epochs.schedule()
        if terms.spec_hash == run_file.spec.hash()
    ]
    if not ours:
        raise _mismatch("another spec's hash")
    params = params_under(await contracts.epochs.params(), ours[-1])
    for item in fields(params):
        here, there = getattr(run_file.spec.chain, item.name), getattr(params, item.name)
        if here != there:
            raise _mismatch(f"{item.name} = {there}, not {here}")
    if await contracts.token.minter() != run_file.contracts.rewards:
        raise _mismatch("another distributor as the token's minter")


def _mismatch(what: str) -> RunMismatch:
    return RunMismatch(f"the contracts have {what}", "get the run's current run file")
