"""Founding a run from a spec file, so that a founder who is interrupted goes on with the same contracts.

While a deployment is under way, the folder `<run file>.founding` keeps what is being deployed and the transactions. It is removed when the run file is written.
"""

from __future__ import annotations

import json
import logging
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from ledger.connection import Connection
from ledger.deploy import deploy
from ledger.outbox import Outbox
from ledger.runs import write_run_file
from protocol import canonical, record
from protocol.errors import Rejected
from protocol.ids import UNITS_PER_TOKEN, ZERO_ADDRESS, Address, Units
from protocol.ports import Signer
from protocol.runfile import RunFile
from protocol.spec import RunSpec
from syntience.errors import ConfigError, UnwritableOutput
from syntience.files import require_writable, write_atomically
from syntience.layers import Secret

DEFAULT_CAP = Units(1_000_000_000 * UNITS_PER_TOKEN)
DEFAULT_ALLOCATION = Units(100_000_000 * UNITS_PER_TOKEN)
_PLAN = "plan.json"
_OUTBOX = "outbox.db"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Foundation:
    """What to deploy, and where the run file goes.

    Attributes:
        genesis_in_s: replaces the spec's genesis time: seconds from the chain's newest block; None keeps it.
        cap: the most tokens that are ever minted.
        allocation: tokens that the deployer gets at the start.
        governor: who may announce terms and pause, within bounds; by default nobody.
    """

    spec: RunSpec
    out: Path
    genesis_in_s: int | None = None
    cap: Units = DEFAULT_CAP
    allocation: Units = DEFAULT_ALLOCATION
    governor: Address = ZERO_ADDRESS


async def found(foundation: Foundation, *, rpc_url: Secret, signer: Signer) -> RunFile:
    """Deploys a run and writes its run file; goes on with a deployment that was interrupted.

    Raises:
        OperatorError: what has to be mended, such as a run file that is there already.
    """
    out = foundation.out
    if out.exists():
        raise UnwritableOutput(f"the run file {out} exists", "choose another --out")
    require_writable(out)
    folder = out.with_name(f"{out.name}.founding")
    async with await Connection.open(rpc_url.reveal()) as connection:
        spec = await _spec(foundation, folder, connection)
        begun = True
        try:
            async with await Outbox.open(folder / _OUTBOX, connection, signer) as outbox:
                try:
                    run_file = await deploy(
                        connection,
                        outbox,
                        spec,
                        cap=foundation.cap,
                        genesis_allocation=foundation.allocation,
                        governor=foundation.governor,
                    )
                finally:
                    begun = bool(outbox.waiting() or outbox.gas_used())
        finally:
            if not begun:  # nothing to go on with: the next attempt may have another plan
                shutil.rmtree(folder)
    write_run_file(out, run_file)
    shutil.rmtree(folder)
    return run_file


def load_spec(path: Path) -> RunSpec:
    """Reads a spec: a spec file in any layout of its JSON, or the run file of another run.

    Raises:
        ConfigError: with what to do about it.
    """
    try:
        data = path.read_bytes()
        if canonical.nesting(data) > canonical.MAX_DEPTH:
            raise Rejected(f"nested deeper than {canonical.MAX_DEPTH} levels")
        value = json.loads(data)
        if isinstance(value, dict) and isinstance(value.get("spec"), dict):
            value = value["spec"]
        return RunSpec.from_bytes(canonical.dumps(value))
    except OSError as error:
        raise ConfigError(
            f"can't read the spec {path} ({error.strerror})", "give the right path with --spec"
        ) from error
    except (ValueError, TypeError, Rejected) as error:
        raise ConfigError(f"{path} is no valid spec ({error})", "mend it") from error


async def _spec(foundation: Foundation, folder: Path, connection: Connection) -> RunSpec:
    """The spec to deploy: the one that an interrupted deployment had begun with, else as asked for."""
    begun = _begun(folder)
    if begun is not None:
        if replace(begun, spec=_at(begun.spec, 0)) != _essence(foundation):
            raise ConfigError(
                f"another run was being deployed to {foundation.out}",
                f"finish it with its own --spec, --cap, --allocation and --governor, or remove {folder}",
            )
        logger.warning("going on with the deployment that was interrupted")
        return begun.spec
    spec = foundation.spec
    if foundation.genesis_in_s is not None:
        head = await connection.head()
        spec = _at(spec, head.time + foundation.genesis_in_s)
    _begin(folder, replace(_essence(foundation), spec=spec))
    return spec


@dataclass(frozen=True, slots=True, kw_only=True)
class _Essence:
    """What must not change while a deployment is under way."""

    spec: RunSpec
    cap: Units
    allocation: Units
    governor: Address


def _essence(foundation: Foundation) -> _Essence:
    return _Essence(
        spec=_at(foundation.spec, 0),
        cap=foundation.cap,
        allocation=foundation.allocation,
        governor=foundation.governor,
    )


def _begin(folder: Path, essence: _Essence) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / _PLAN, canonical.dumps(record.to_json(essence)))


def _begun(folder: Path) -> _Essence | None:
    try:
        return record.from_json(_Essence, canonical.loads((folder / _PLAN).read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, Rejected) as error:
        raise ConfigError(
            f"the deployment in {folder} can't be continued ({error})", "remove that folder"
        ) from error


def _at(spec: RunSpec, genesis_time: int) -> RunSpec:
    return replace(spec, chain=replace(spec.chain, genesis_time=genesis_time))
