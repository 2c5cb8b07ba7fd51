"""Compiles the kernels once, with the first compiler found, and says where the library is.

`scripts/setup` calls it, so that no training waits for a compiler; where the package was installed otherwise, the first
use does. Only flags that every compiler takes alike: the source chooses vector code by itself, and `-ffp-contract=off` forbids
fused operations that would change bits.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from protocol.errors import OperatorError

_FOLDER = Path(__file__).parent
_SOURCES = tuple(_FOLDER / name for name in ("adamw.c", "codec.c", "select.c", "transform.c"))
_HEADERS = tuple(_FOLDER / name for name in ("chunk.h", "clones.h", "select.h"))
# Without errno a square root is one instruction; its bits are IEEE's in any case.
_FLAGS = (
    "-std=gnu11",
    "-O3",
    "-fPIC",
    "-shared",
    "-ffp-contract=off",
    "-fno-fast-math",
    "-fno-math-errno",
)
_TIMEOUT_S = 300


class NoCompiler(OperatorError):
    """The kernels are not built and can't be."""


@lru_cache(maxsize=1)
def library_path() -> Path:
    """The built library; builds it if it is not there. Raises NoCompiler."""
    name = f"kernels-{_stamp()}.so"
    for folder in _folders():
        if (folder / name).is_file():
            return folder / name
    for folder in _folders():
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            build(folder / name)
            return folder / name
    raise NoCompiler(
        "there is no folder to keep the compiled kernels in",
        f"make {_folders()[0]} writable",
    )


def _folders() -> tuple[Path, ...]:
    return (_FOLDER / "built", Path.home() / ".cache" / "syntience")


def _stamp() -> str:
    files = b"".join(path.read_bytes() for path in (*_SOURCES, *_HEADERS))
    text = files + " ".join(_FLAGS).encode()
    machine = f"{platform.system()}-{platform.machine()}".lower()
    return f"{machine}-{hashlib.sha256(text).hexdigest()[:16]}"


def _compilers() -> Iterator[list[str]]:
    for name in ("cc", "gcc", "clang"):
        if found := shutil.which(name):
            yield [found]
    if find_spec("ziglang"):
        yield [sys.executable, "-m", "ziglang", "cc"]


def build(target: Path, *more_flags: str) -> None:
    """Compiles beside `target` and moves into place, so that two builds at once do no harm. Raises NoCompiler.

    Args:
        target: the library.
        more_flags: behind the usual ones, for those who want another library than everybody's: the tests, the fuzzer.
    """
    said = "no C compiler was found"
    for compiler in _compilers():
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            made = Path(folder) / target.name
            run = subprocess.run(
                [*compiler, *_FLAGS, *more_flags, "-o", str(made), *map(str, _SOURCES)],
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
            if run.returncode == 0:
                made.replace(target)
                return
            said = f"{' '.join(compiler)}: {run.stderr.strip()[-500:]}"
    raise NoCompiler(
        f"the kernels can't be built: {said}",
        "install a C compiler (Debian: apt install gcc) or `pip install ziglang`",
    )
