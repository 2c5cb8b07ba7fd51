"""Fetches one source archive through the package index that pip is configured for, without running any of it.

`pip download` would execute the archive's setup code to learn its metadata. So the index's simple API is read here, and the
bytes are only believed if their sha-256 is the one that the caller pins: it doesn't matter then which mirror served them.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import http.client
import json
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from protocol.errors import Retryable
from syntience.errors import DownloadFailed

PYPI = "https://pypi.org/simple"
_ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.3, text/html;q=0.1"
_PAGE_BYTES = 16 << 20
_TIMEOUT_S = 60.0
_PIP_TIMEOUT_S = 30.0
_DELAYS_S = (1.0, 3.0)
_SCHEMES = ("https", "http", "file")
_TRANSIENT_STATUS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSettings:
    """Where packages come from: simple-API roots in order, and an extra certificate bundle."""

    urls: tuple[str, ...] = (PYPI,)
    certificates: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """A file on the index that is known by its content."""

    project: str
    file_name: str
    sha256: str
    max_bytes: int


class _Unavailable(Retryable):
    """A server did not answer properly; another attempt or another index may."""


def read_index_settings(environment: Mapping[str, str]) -> IndexSettings:
    """What pip itself would use on this machine; the public index if pip is not there or says nothing."""
    try:
        listing = subprocess.run(
            [sys.executable, "-m", "pip", "config", "list"],
            capture_output=True,
            text=True,
            timeout=_PIP_TIMEOUT_S,
            check=True,
            env=dict(environment),
        ).stdout
    except (OSError, subprocess.SubprocessError):
        listing = ""
    return parse_index_settings(listing, environment)


def parse_index_settings(listing: str, environment: Mapping[str, str]) -> IndexSettings:
    """From the lines of `pip config list` and the environment, which wins."""
    options: dict[str, str] = {}
    for section in ("global.", "download."):
        for line in listing.splitlines():
            key, _, quoted = line.partition("=")
            if key.startswith(section):
                options[key.removeprefix(section)] = _unquoted(quoted)
    for name in ("index-url", "extra-index-url", "cert"):
        value = environment.get("PIP_" + name.upper().replace("-", "_"))
        if value:
            options[name] = value
    urls = [options.get("index-url", PYPI), *options.get("extra-index-url", "").split()]
    certificate = options.get("cert")
    return IndexSettings(
        urls=tuple(dict.fromkeys(url.rstrip("/") for url in urls)),
        certificates=Path(certificate) if certificate else None,
    )


def download(
    archive: Archive, settings: IndexSettings, *, delays_s: Sequence[float] = _DELAYS_S
) -> bytes:
    """The archive's bytes from the first index that serves them.

    Raises:
        DownloadFailed: no index has it, none could be reached, or the content is not the pinned one.
    """
    problems = []
    for root in settings.urls:
        try:
            return _download_from(root, archive, settings, delays_s)
        except (_Unavailable, DownloadFailed) as error:
            problems.append(str(error))
    raise DownloadFailed(
        f"can't get {archive.file_name} ({'; '.join(problems)})",
        "check the network, or point PIP_INDEX_URL at an index that has it",
    )


def _download_from(
    root: str, archive: Archive, settings: IndexSettings, delays_s: Sequence[float]
) -> bytes:
    page_url = f"{root}/{archive.project}/"
    page, kind = _get_patiently(page_url, root, _PAGE_BYTES, settings, delays_s)
    url = find_file(page, kind, page_url=page_url, file_name=archive.file_name)
    if url is None:
        raise _Unavailable(f"{_shown(root)} does not list it")
    data, _ = _get_patiently(url, root, archive.max_bytes, settings, delays_s)
    if hashlib.sha256(data).hexdigest() != archive.sha256:
        raise _Unavailable(f"{_shown(root)} serves other content than the pinned one")
    return data


def find_file(page: bytes, kind: str, *, page_url: str, file_name: str) -> str | None:
    """Absolute address of a file on a project's page, JSON or HTML; None if it isn't listed."""
    links = _json_links(page) if "json" in kind else _html_links(page)
    for link in links:
        url = urljoin(page_url, link)
        if unquote(urlsplit(url).path).rpartition("/")[2] == file_name:
            return url
    return None


def _json_links(page: bytes) -> list[str]:
    try:
        return [str(file["url"]) for file in json.loads(page)["files"]]
    except (ValueError, KeyError, TypeError) as error:
        raise _Unavailable("the index's answer is not understood") from error


def _html_links(page: bytes) -> list[str]:
    parser = _Links()
    parser.feed(page.decode("utf-8", "replace"))
    return parser.links


class _Links(HTMLParser):
    """Collects the targets of a page's links."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value for name, value in attrs if tag == "a" and name == "href" and value]


def _get_patiently(
    url: str, root: str, max_bytes: int, settings: IndexSettings, delays_s: Sequence[float]
) -> tuple[bytes, str]:
    for delay_s in delays_s:
        try:
            return _get(url, root, max_bytes, settings)
        except _Unavailable:
            time.sleep(delay_s)
    return _get(url, root, max_bytes, settings)


def _get(url: str, root: str, max_bytes: int, settings: IndexSettings) -> tuple[bytes, str]:
    """(body, content type). Credentials in the index's own address go to that host only."""
    bare, authorization = _without_credentials(url)
    if urlsplit(bare).scheme not in _SCHEMES:
        raise DownloadFailed(
            f"{_shown(url)} is not a web address", "mend the index's address in pip's settings"
        )
    if (
        authorization is None
        and urlsplit(bare).netloc == urlsplit(_without_credentials(root)[0]).netloc
    ):
        authorization = _without_credentials(root)[1]
    if bare.startswith("file:") and bare.endswith("/"):
        bare += "index.html"
    request = urllib.request.Request(bare, headers={"Accept": _ACCEPT, "User-Agent": "syntience"})  # noqa: S310
    if authorization:
        request.add_unredirected_header("Authorization", authorization)
    context = _tls(settings)
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S, context=context) as response:  # noqa: S310
            body = response.read(max_bytes + 1)
            kind = str(response.headers.get("Content-Type", ""))
    except urllib.error.HTTPError as error:
        error.close()
        problem = f"{_shown(bare)} answers {error.code} {error.reason}"
        if error.code < _TRANSIENT_STATUS:
            raise DownloadFailed(problem, "") from error
        raise _Unavailable(problem) from error
    except (OSError, http.client.HTTPException) as error:
        cause = getattr(error, "reason", error)
        problem = f"{_shown(root)}: {getattr(cause, 'strerror', None) or cause}"
        if isinstance(cause, FileNotFoundError):
            raise DownloadFailed(problem, "") from error
        raise _Unavailable(problem) from error
    if len(body) > max_bytes:
        raise DownloadFailed(f"{_shown(bare)} is larger than {max_bytes} bytes", "")
    return body, kind


def _tls(settings: IndexSettings) -> ssl.SSLContext:
    """The system's certificates, those of certifi where it is installed, and the configured ones."""
    context = ssl.create_default_context()
    try:
        import certifi

        context.load_verify_locations(certifi.where())
    except ImportError:
        pass
    if settings.certificates is not None:
        try:
            context.load_verify_locations(settings.certificates)
        except OSError as error:
            raise DownloadFailed(
                f"can't read the certificates {settings.certificates}",
                "mend `cert` in pip's settings",
            ) from error
    return context


def _without_credentials(url: str) -> tuple[str, str | None]:
    """(address without user and password, value of the Authorization header)."""
    parts = urlsplit(url)
    userinfo, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, None
    token = base64.b64encode(unquote(userinfo).encode()).decode()
    return urlunsplit(parts._replace(netloc=host)), f"Basic {token}"


def _shown(url: str) -> str:
    return _without_credentials(url)[0]


def _unquoted(text: str) -> str:
    try:
        return str(ast.literal_eval(text))
    except (ValueError, SyntaxError):
        return text.strip()
