"""Examines the machine a node is to run on. Reads only; each finding says what to do about it."""

from __future__ import annotations

import re
import shutil
import sys
import time
from dataclasses import dataclass
from enum import Enum
from importlib import metadata
from pathlib import Path

from protocol.errors import OperatorError, Retryable
from syntience.corpus import is_cached
from syntience.ports import require_port
from syntience.toolchain import find_anvil, tool_version

OLDEST_PYTHON = (3, 11)
DISK_FAILS_BELOW = 1 << 30
DISK_WARNS_BELOW = 8 << 30
OLDEST_HEAD_S = 120
_NAME = re.compile(r"[A-Za-z0-9._-]+")


class Level(Enum):
    """How bad a finding is. A warning hinders some commands only."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    name: str
    level: Level
    detail: str
    fix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the node is to live."""

    state_dir: Path
    cache_dir: Path
    listen_host: str
    listen_port: int


def examine(place: Place) -> tuple[Finding, ...]:
    """All findings, in the order in which one would mend them."""
    return (
        check_python(sys.version_info[:3]),
        check_packages(_requirements()),
        check_anvil(),
        check_text(place.cache_dir),
        check_port(place.listen_host, place.listen_port),
        check_disk(place.state_dir),
    )


def check_python(version: tuple[int, ...]) -> Finding:
    """New enough?"""
    text = ".".join(map(str, version))
    if version < OLDEST_PYTHON:
        return Finding(
            name="python", level=Level.FAILURE, detail=text, fix="install Python 3.11 or newer"
        )
    return Finding(name="python", level=Level.OK, detail=text)


def check_packages(requirements: list[str]) -> Finding:
    """All required distributions installed? Their versions are pip's business."""
    missing = []
    for requirement in requirements:
        name = _NAME.match(requirement)
        if name is None or "extra ==" in requirement:
            continue
        try:
            metadata.version(name[0])
        except metadata.PackageNotFoundError:
            missing.append(name[0])
    if missing:
        return Finding(
            name="packages",
            level=Level.FAILURE,
            detail=f"missing: {', '.join(missing)}",
            fix="run ./scripts/setup, or pip install syntience again",
        )
    return Finding(
        name="packages",
        level=Level.OK,
        detail=f"torch {metadata.version('torch')}, tokenizers {metadata.version('tokenizers')}",
    )


def _requirements() -> list[str]:
    try:
        return metadata.requires("syntience") or []
    except metadata.PackageNotFoundError:
        return ["syntience"]


def check_anvil() -> Finding:
    """Only a devnet needs it."""
    try:
        binary = find_anvil()
        return Finding(name="anvil", level=Level.OK, detail=tool_version(binary))
    except OperatorError as error:
        return Finding(
            name="anvil",
            level=Level.WARNING,
            detail=f"no devnet without it, {error.problem}",
            fix=error.fix,
        )


def check_text(cache_dir: Path) -> Finding:
    """Is the default text here for offline use?"""
    if is_cached(cache_dir):
        return Finding(name="text", level=Level.OK, detail=f"the default text is in {cache_dir}")
    return Finding(
        name="text",
        level=Level.WARNING,
        detail="the default text is not here yet",
        fix="a devnet will download it, or run: syntience data fetch",
    )


def check_port(host: str, port: int) -> Finding:
    """May we listen there?"""
    try:
        require_port(host, port, flag="--listen-port")
    except OperatorError as error:
        return Finding(name="port", level=Level.FAILURE, detail=error.problem, fix=error.fix)
    return Finding(name="port", level=Level.OK, detail=f"{host}:{port} is free")


def check_disk(folder: Path) -> Finding:
    """Room where the node's state will lie (or in the nearest folder that exists)."""
    there = folder.resolve()
    while not there.exists():
        there = there.parent
    free = shutil.disk_usage(there).free
    detail = f"{free / (1 << 30):.1f} GiB free in {there}"
    if free >= DISK_WARNS_BELOW:
        return Finding(name="disk", level=Level.OK, detail=detail)
    level = Level.FAILURE if free < DISK_FAILS_BELOW else Level.WARNING
    return Finding(
        name="disk",
        level=level,
        detail=detail,
        fix="free some, or choose another folder with --state",
    )


async def check_chain(rpc_url: str, run_file: Path | None) -> Finding:
    """Does the node answer, is it up to date, and do the run's contracts say what the run file says?"""
    from ledger.connection import Connection
    from ledger.runs import join, load_run_file

    try:
        run = load_run_file(run_file) if run_file else None
        async with await Connection.open(rpc_url, chain_id=run.chain_id if run else None) as chain:
            if run:
                await join(run, chain)
            head = await chain.head()
            detail = (
                f"chain {chain.chain_id}, block {head.number}{', the run is there' if run else ''}"
            )
    except OperatorError as error:
        return Finding(name="chain", level=Level.FAILURE, detail=error.problem, fix=error.fix)
    except Retryable as error:
        return Finding(name="chain", level=Level.FAILURE, detail=str(error), fix="try again later")
    age_s = int(time.time()) - head.time
    if age_s > OLDEST_HEAD_S:
        return Finding(
            name="chain",
            level=Level.WARNING,
            detail=f"{detail}, but its newest block is {age_s:,} s old",
            fix="wait until the node has caught up, or give another",
        )
    return Finding(name="chain", level=Level.OK, detail=detail)
