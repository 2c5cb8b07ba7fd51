"""The folder of a data set under preparation: what is done survives a kill at any moment, and only one preparation uses it.

    lock              held by the process at work
    request.json      what the tokens follow from besides the text; another request is refused
    tokenizer.json    the tokenizer, trained or given
    trained.json      how many documents it was trained on, and a digest of them; there once the tokenizer is final
    stream.bin        the token stream, appended to
    documents.bin     the data set's file of that name
    journal.json      how much of the two is on disk for certain; what lies behind it is cut off
    starts.bin        8 bytes a document: where its first token stands; made for the cutting
    set-…             the data set itself, in the making
    finished          there when the data set is complete and about to get its name

The journal is replaced after what it vouches for has been synced.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from protocol import canonical, record
from protocol.canonical import Json
from protocol.errors import Rejected
from training.dataset import DOCUMENTS
from training.errors import DatasetError
from training.sources import DOCUMENT
from training.tokenizer import Encoded

REQUEST, TRAINED, JOURNAL = "request.json", "trained.json", "journal.json"
STREAM, STARTS, LOCK = "stream.bin", "starts.bin", "lock"
_CHUNK = 1 << 16


class Workplace:
    """The locked folder; use as a context manager. Raises DatasetError if another process has it, or another request began it."""

    def __init__(self, folder: Path, request: Json) -> None:
        self.folder, self._request = folder, canonical.dumps(request)

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = (self.folder / LOCK).open("wb")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._lock.close()
            raise DatasetError(
                f"another process prepares this data set in {self.folder}",
                "let it finish, or stop it",
            ) from error
        found = self.read(REQUEST)
        if found is None:
            self.write(REQUEST, self._request)
        elif found != self._request:
            self._lock.close()
            raise DatasetError(
                f"{self.folder} holds an interrupted preparation with another tokenizer or vocabulary",
                "give the same arguments to go on with it, or remove that folder",
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.close()
        if error is not None and not (self.folder / TRAINED).exists():
            shutil.rmtree(self.folder, ignore_errors=True)  # nothing worth to go on with

    def read(self, name: str) -> bytes | None:
        """A small file's content; None if there is none."""
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Replaces a small file in one step, after its content is on disk."""
        write_whole(self.folder / name, (content,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What is on disk for certain."""

    documents: int
    tokens: int


class TokenStream:
    """The documents' tokens one after the other, with where each begins and the digest of its text; grows by whole batches.

    Raises DatasetError if less is on disk than the journal says.
    """

    def __init__(self, workplace: Workplace, dtype: str) -> None:
        self._workplace, self._dtype = workplace, np.dtype(dtype)
        journal = workplace.read(JOURNAL)
        try:
            self.done = (
                Progress(documents=0, tokens=0)
                if journal is None
                else record.from_json(Progress, canonical.loads(journal))
            )
        except Rejected as error:
            raise self._damaged() from error
        for name, size in self._sizes().items():
            with (workplace.folder / name).open("ab") as file:
                if file.tell() < size:
                    raise self._damaged()
                file.truncate(size)

    def append(self, encoded: Encoded, digests: Sequence[bytes]) -> None:
        """Adds a batch: on disk when this returns, and not in part after a kill."""
        ends = self.done.tokens + np.cumsum(encoded.lengths)
        documents = np.empty(len(digests), DOCUMENT)
        documents["digest"] = np.frombuffer(b"".join(digests), "V32")
        documents["start"] = ends - encoded.lengths
        for name, content in ((STREAM, encoded.tokens), (DOCUMENTS, documents)):
            with (self._workplace.folder / name).open("ab") as file:
                file.write(content.tobytes())
                file.flush()
                os.fsync(file.fileno())
        self.done = Progress(
            documents=self.done.documents + len(digests),
            tokens=self.done.tokens + len(encoded.tokens),
        )
        self._workplace.write(JOURNAL, canonical.dumps(record.to_json(self.done)))

    def digests(self) -> NDArray[np.void]:
        """(D,) sha-256 of the text of each document so far, mapped."""
        if not self.done.documents:
            return np.empty(0, "V32")
        records = np.memmap(self._workplace.folder / DOCUMENTS, DOCUMENT, mode="r")
        return records[: self.done.documents]["digest"]

    def tokens(self) -> NDArray[np.generic]:
        """(T,) all tokens, mapped."""
        return np.memmap(self._workplace.folder / STREAM, self._dtype, mode="r")

    def starts(self) -> NDArray[np.uint64]:
        """(D,) the place of each document's first token, mapped: in one piece, so that a search copies nothing."""
        records = np.memmap(self._workplace.folder / DOCUMENTS, DOCUMENT, mode="r")
        with (self._workplace.folder / STARTS).open("wb") as file:
            for first in range(0, len(records), _CHUNK):
                file.write(records[first : first + _CHUNK]["start"].tobytes())
        return np.memmap(self._workplace.folder / STARTS, "<u8", mode="r")

    def _sizes(self) -> dict[str, int]:
        return {
            STREAM: self.done.tokens * self._dtype.itemsize,
            DOCUMENTS: self.done.documents * DOCUMENT.itemsize,
        }

    def _damaged(self) -> DatasetError:
        return DatasetError(
            f"the interrupted preparation in {self._workplace.folder} is damaged",
            "remove that folder and start again",
        )


def write_whole(path: Path, chunks: Iterable[bytes]) -> None:
    """Replaces a file in one step, after its content is on disk."""
    draft = path.with_name(f"{path.name}.new")
    with draft.open("wb") as file:
        file.writelines(chunks)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Puts the names in a folder on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
