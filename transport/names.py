"""The grammar of topics, keys and digests.

Names come from peers and become file names and URLs, so the grammar is a short list of allowed
characters: nothing in it can climb out of a folder, hide a file or need quoting. Topics are
lower-case, because some file systems do not tell cases apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from protocol.ids import Hash32
from transport.errors import BadName

NAME_HEADER = "Syntience-Node"
"""The HTTP header in which a client calls itself something; unproven."""
MAX_KEY_CHARS = 128
_SEGMENT = r"[a-z0-9][a-z0-9_-]{0,63}"
_TOPIC = re.compile(rf"{_SEGMENT}(?:/{_SEGMENT}){{0,3}}", re.ASCII)
_KEY = re.compile(rf"[A-Za-z0-9][A-Za-z0-9-]{{0,{MAX_KEY_CHARS - 1}}}", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


def check_topic(topic: str) -> str:
    """Returns the topic, or raises `BadName`. Up to four segments, as in ``submissions/7``."""
    if not _TOPIC.fullmatch(topic):
        raise BadName(f"not a topic: {topic[:80]!r}")
    return topic


def check_key(key: str) -> str:
    """Returns the key, or raises `BadName`. An address or a hex digest is one."""
    if not _KEY.fullmatch(key):
        raise BadName(f"not a key: {key[:80]!r}")
    return key


def check_node_name(name: str) -> str:
    """Returns what a node calls itself, or raises `BadName`; an address is one, and so is none."""
    if name and not _KEY.fullmatch(name):
        raise BadName(f"not a node's name: {name[:80]!r}")
    return name


def family(topic: str) -> str:
    """The first segment of a topic: ``submissions`` of ``submissions/7``."""
    return topic.split("/", 1)[0]


def parse_digest(text: str) -> Hash32:
    """A sha-256 digest from its 64 lower-case hex digits; raises `BadName`."""
    if not _DIGEST.fullmatch(text):
        raise BadName(f"not a digest: {text[:80]!r}")
    return Hash32(bytes.fromhex(text))


def digest_files(paths: Iterable[Path]) -> Iterator[tuple[Hash32, Path]]:
    """The files among ``paths`` whose name, less its suffix, is a digest; strays are skipped."""
    for path in paths:
        if _DIGEST.fullmatch(path.stem) and path.is_file():
            yield Hash32(bytes.fromhex(path.stem)), path
