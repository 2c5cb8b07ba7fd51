"""Fetching from an index: files for most cases, a loopback server for what only HTTP has."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from syntience.errors import DownloadFailed
from syntience.package_index import (
    PYPI,
    Archive,
    IndexSettings,
    download,
    find_file,
    parse_index_settings,
    read_index_settings,
)

CONTENT = b"the archive" * 100
ARCHIVE = Archive(
    project="thing",
    file_name="thing-1.0.tar.gz",
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    max_bytes=10_000,
)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loopback server is asked directly, whatever proxy this machine uses."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def file_index(root: Path, *, content: bytes = CONTENT, name: str = ARCHIVE.file_name) -> str:
    """A static index on disk, as `pip download` and mirrors use them; returns its address."""
    folder = root / "simple" / ARCHIVE.project
    folder.mkdir(parents=True)
    (root / name).write_bytes(content)
    (folder / "index.html").write_text(
        f'<a>no target</a><a href="../../{name}#sha256=0">{name}</a>'
    )
    return (root / "simple").as_uri()


@contextmanager
def http_index(
    answers: dict[str, list[tuple[int, str, bytes]]],
) -> Iterator[tuple[str, list[str | None]]]:
    """Serves each path's answers in order (the last one for ever); yields the address and the seen authorisations."""
    seen: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers["Authorization"])
            queue = answers[self.path]
            status, kind, body = queue.pop(0) if len(queue) > 1 else queue[0]
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}/simple", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def page(url: str = "/files/thing-1.0.tar.gz") -> tuple[int, str, bytes]:
    body = {"files": [{"url": "/files/thing-0.9.tar.gz"}, {"url": url}]}
    return 200, "application/vnd.pypi.simple.v1+json", json.dumps(body).encode()


FILE = (200, "application/gzip", CONTENT)
BUSY = (503, "text/plain", b"later")


def test_download__file_index__gives_the_checked_bytes(tmp_path: Path) -> None:
    assert download(ARCHIVE, IndexSettings(urls=(file_index(tmp_path),))) == CONTENT


def test_download__first_index_without_it__takes_the_next(tmp_path: Path) -> None:
    other = file_index(tmp_path / "a", name="thing-0.9.tar.gz")
    settings = IndexSettings(urls=(other, file_index(tmp_path / "b")))
    assert download(ARCHIVE, settings, delays_s=()) == CONTENT


def test_download__changed_content__is_refused(tmp_path: Path) -> None:
    settings = IndexSettings(urls=(file_index(tmp_path, content=b"evil"),))
    with pytest.raises(DownloadFailed, match="other content than the pinned one"):
        download(ARCHIVE, settings, delays_s=())


def test_download__too_large__is_refused_unread(tmp_path: Path) -> None:
    settings = IndexSettings(urls=(file_index(tmp_path, content=bytes(20_000)),))
    with pytest.raises(DownloadFailed, match="larger than 10000 bytes"):
        download(ARCHIVE, settings, delays_s=())


def test_download__nothing_listens__is_one_line_with_a_fix() -> None:
    settings = IndexSettings(urls=("http://127.0.0.1:9/simple",))
    with pytest.raises(DownloadFailed) as caught:
        download(ARCHIVE, settings, delays_s=())
    assert "\n" not in str(caught.value)
    assert "can't get thing-1.0.tar.gz" in caught.value.problem
    assert "PIP_INDEX_URL" in caught.value.fix


def test_download__server_busy_at_first__tries_again() -> None:
    answers = {"/simple/thing/": [BUSY, page()], "/files/thing-1.0.tar.gz": [BUSY, FILE]}
    with http_index(answers) as (root, _):
        assert (
            download(ARCHIVE, IndexSettings(urls=(f"http://{root}",)), delays_s=(0.01,)) == CONTENT
        )


def test_download__refused__is_not_tried_again() -> None:
    with http_index({"/simple/thing/": [(403, "text/plain", b"")]}) as (root, seen):
        with pytest.raises(DownloadFailed, match="answers 403"):
            download(ARCHIVE, IndexSettings(urls=(f"http://{root}",)), delays_s=(0.01,))
        assert len(seen) == 1


def test_download__credentials__go_to_the_index_only_and_are_never_shown() -> None:
    files = {"/files/thing-1.0.tar.gz": [(404, "text/plain", b"")]}
    with http_index(files) as (elsewhere, seen_elsewhere):
        host = elsewhere.removesuffix("/simple")
        answers = {"/simple/thing/": [page(f"http://{host}/files/thing-1.0.tar.gz")]}
        with http_index(answers) as (root, seen):
            settings = IndexSettings(urls=(f"http://me:s3cret@{root}",))
            with pytest.raises(DownloadFailed) as caught:
                download(ARCHIVE, settings, delays_s=())
    assert seen == ["Basic " + base64.b64encode(b"me:s3cret").decode()]
    assert seen_elsewhere == [None]
    assert "s3cret" not in str(caught.value)


def test_download__link_of_another_scheme__is_refused() -> None:
    with http_index({"/simple/thing/": [page("ftp://host/thing-1.0.tar.gz")]}) as (root, _):
        settings = IndexSettings(urls=(f"http://{root}",))
        with pytest.raises(DownloadFailed, match="not a web address"):
            download(ARCHIVE, settings, delays_s=())


def test_download__html_where_json_was_promised__is_a_clear_refusal() -> None:
    broken = (200, "application/vnd.pypi.simple.v1+json", b"<html>")
    with http_index({"/simple/thing/": [broken]}) as (root, _):
        settings = IndexSettings(urls=(f"http://{root}",))
        with pytest.raises(DownloadFailed, match="not understood"):
            download(ARCHIVE, settings, delays_s=())


def test_find_file__escaped_and_relative_links__are_resolved() -> None:
    html = b'<a href="../../packages/thing-1.0%2Blocal.tar.gz#sha256=aa">x</a>'
    found = find_file(
        html, "text/html", page_url="https://host/simple/thing/", file_name="thing-1.0+local.tar.gz"
    )
    assert found == "https://host/packages/thing-1.0%2Blocal.tar.gz#sha256=aa"


def test_parse_index_settings__nothing_said__is_the_public_index() -> None:
    assert parse_index_settings("", {}) == IndexSettings(urls=(PYPI,))


def test_parse_index_settings__download_section_and_environment__win_in_this_order() -> None:
    listing = """\
:env:.index-url='ignored: the environment is read itself'
download.index-url='https://download.example/simple/'
global.index-url='https://global.example/simple'
global.extra-index-url='https://a.example/simple\\nhttps://b.example/simple'
global.cert='/certs.pem'
"""
    settings = parse_index_settings(listing, {})
    assert settings.urls == (
        "https://download.example/simple",
        "https://a.example/simple",
        "https://b.example/simple",
    )
    assert settings.certificates == Path("/certs.pem")
    override = {"PIP_INDEX_URL": "https://env.example/simple", "PIP_EXTRA_INDEX_URL": ""}
    assert parse_index_settings(listing, override).urls[0] == "https://env.example/simple"


def test_read_index_settings__pip_configuration_file__is_what_pip_says(tmp_path: Path) -> None:
    (tmp_path / "pip.conf").write_text("[global]\nindex-url = https://mirror.example/simple\n")
    environment = {"PIP_CONFIG_FILE": str(tmp_path / "pip.conf"), "HOME": str(tmp_path)}
    assert read_index_settings(environment).urls[0] == "https://mirror.example/simple"
