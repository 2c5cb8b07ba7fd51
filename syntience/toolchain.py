"""Finds the real anvil binary.

npm's `anvil` is a Node script that starts the binary of a platform package as its child: signals and the pid would be the
script's. So the binary is taken from the platform package itself, or from PATH if that holds a real one.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from syntience.errors import ToolMissing

PROJECT = Path(__file__).resolve().parent.parent
_VERSION_TIMEOUT_S = 20
_MACHINES = {"x86_64": "amd64", "amd64": "amd64", "arm64": "arm64", "aarch64": "arm64"}
_SYSTEMS = {"linux": "linux", "darwin": "darwin", "win32": "win32"}


def find_anvil(
    *, roots: Sequence[Path] = (PROJECT,), search_path: str | None = None, given: Path | None = None
) -> Path:
    """The anvil binary.

    Args:
        roots: folders whose node_modules are searched first, in order.
        search_path: what stands for PATH; the process's own by default.
        given: the operator's choice, taken instead of any search.

    Raises:
        ToolMissing: there is none.
    """
    if given is not None:
        if not _is_executable(given):
            raise ToolMissing(
                f"{given} is not an executable anvil", "give the path of the anvil binary"
            )
        return given
    for candidate in _candidates(roots, search_path):
        if _is_executable(candidate) and not _is_script(candidate):
            return candidate
    raise ToolMissing(
        "the local chain `anvil` is not installed",
        "run ./scripts/setup in a checkout (it needs Node.js), or put Foundry's anvil on PATH",
    )


def tool_version(binary: Path) -> str:
    """First line of ``--version``.

    Raises:
        ToolMissing: it does not run on this machine.
    """
    try:
        done = subprocess.run(
            [binary, "--version"],
            capture_output=True,
            text=True,
            timeout=_VERSION_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ToolMissing(
            f"{binary} does not run ({error})", "run ./scripts/setup again"
        ) from error
    return (done.stdout.splitlines() or ["unknown version"])[0]


def platform_package(tool: str) -> str | None:
    """Name of the npm package with this machine's binary, None where Foundry publishes none."""
    system, machine = _SYSTEMS.get(sys.platform), _MACHINES.get(platform.machine().lower())
    return f"{tool}-{system}-{machine}" if system and machine else None


def _candidates(roots: Sequence[Path], search_path: str | None) -> Iterator[Path]:
    package = platform_package("anvil")
    program = "anvil.exe" if sys.platform == "win32" else "anvil"
    if package:
        for root in roots:
            yield root / "node_modules" / "@foundry-rs" / package / "bin" / program
    found = shutil.which("anvil", path=search_path)
    if found:
        real = Path(found).resolve()
        yield real
        if package:  # npm's script, installed elsewhere: its platform package lies beside it
            yield real.parent.parent / package / "bin" / program


def _is_executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _is_script(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"#!"
