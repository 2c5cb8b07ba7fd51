"""Encoding in several processes, with the results in order.

A process gets a batch of documents over a pipe and answers with their tokens. Its pipe is all that it has of the parent, so it
ends when the parent does, however that ends. The documents are encoded one by one, so neither the number of processes nor the
size of a batch shows in the result.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from training.errors import DatasetError
from training.tokenizer import Encoded, encode_documents, read_tokenizer

_AHEAD = 4
"""Batches that may be under way or waiting for an earlier one, for each process."""
_DONE, _FAILED = b"+", b"-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """How documents become tokens: with the tokenizer in a file, ended by `end_token`, as `dtype`."""

    tokenizer_file: Path
    end_token: int
    dtype: str


Batch = Sequence[bytes]
"""Documents in UTF-8."""


def encode_in_order(
    batches: Iterable[Batch], encoding: Encoding, *, workers: int
) -> Generator[tuple[Batch, Encoded]]:
    """Each batch with its tokens, in order. One worker is this process; more are started as there are batches for them.

    Raises:
        DatasetError: a document that the tokenizer can't encode, or a process that died.
    """
    if workers == 1:
        tokenizer = read_tokenizer(encoding.tokenizer_file)
        for batch in batches:
            yield batch, _encode(tokenizer, batch, encoding)
        return
    team = _Team(encoding, workers)
    try:
        for batch in batches:
            team.give(batch)
            yield from team.finished(most=_AHEAD * workers)
        yield from team.finished(most=0)
    finally:
        team.dismiss()


class _Team:
    """Processes, the batches that they work on, and the results that wait for an earlier one."""

    def __init__(self, encoding: Encoding, size: int) -> None:
        self._encoding, self._size = encoding, size
        self._processes: list[BaseProcess] = []
        self._idle: list[Connection] = []
        self._busy: dict[Connection, int] = {}
        self._batches: dict[int, Batch] = {}
        self._results: dict[int, Encoded] = {}
        self._given = self._taken = 0

    def give(self, batch: Batch) -> None:
        """Hands a batch to an idle process, to a new one, or waits for one."""
        if not self._idle and len(self._processes) < self._size:
            self._start()
        while not self._idle:
            self._receive()
        worker = self._idle.pop()
        self._busy[worker] = self._given
        self._batches[self._given] = batch
        self._given += 1
        try:
            worker.send_bytes(_pack(batch))
        except OSError as error:
            raise _died() from error

    def finished(self, *, most: int) -> Iterator[tuple[Batch, Encoded]]:
        """What is done in order, waiting until at most so many batches are not."""
        while self._taken in self._results or self._given - self._taken > most:
            while self._taken not in self._results:
                self._receive()
            number = self._taken
            self._taken += 1
            yield self._batches.pop(number), self._results.pop(number)

    def dismiss(self) -> None:
        """Ends the processes: each sees its pipe close, at once or after the batch that it has."""
        for worker in (*self._idle, *self._busy):
            worker.close()
        for process in self._processes:
            process.join()

    def _start(self) -> None:
        context = get_context("spawn")  # a fork would copy the locks of the tokenizer's threads
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self._encoding), daemon=True)
        process.start()
        theirs.close()
        self._processes.append(process)
        self._idle.append(ours)

    def _receive(self) -> None:
        for worker in wait(list(self._busy)):
            assert isinstance(worker, Connection)
            try:
                answer = worker.recv_bytes()
            except (EOFError, OSError) as error:
                raise _died() from error
            if answer[:1] != _DONE:
                raise DatasetError(*answer[1:].decode().split("\0"))
            self._results[self._busy.pop(worker)] = _unpack_result(answer, self._encoding.dtype)
            self._idle.append(worker)


def _serve(connection: Connection, encoding: Encoding) -> None:
    """A worker's life: until the pipe closes."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C is for the parent, which then closes the pipe
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    tokenizer = read_tokenizer(encoding.tokenizer_file)
    try:
        while True:
            batch = _unpack(connection.recv_bytes())
            try:
                encoded = _encode(tokenizer, batch, encoding)
            except DatasetError as error:
                connection.send_bytes(_FAILED + f"{error.problem}\0{error.fix}".encode())
            else:
                connection.send_bytes(_pack_result(encoded))
    except (EOFError, OSError):
        return


def _encode(tokenizer: Tokenizer, batch: Batch, encoding: Encoding) -> Encoded:
    texts = [document.decode() for document in batch]
    return encode_documents(tokenizer, texts, end_token=encoding.end_token, dtype=encoding.dtype)


def _pack(batch: Batch) -> bytes:
    lengths = np.array([len(batch), *map(len, batch)], "<u8")
    return b"".join([lengths.tobytes(), *batch])


def _unpack(message: bytes) -> Batch:
    count = int.from_bytes(message[:8], "little")
    ends = np.cumsum(np.frombuffer(message, "<u8", count, offset=8)) + np.uint64(8 * (count + 1))
    starts = [8 * (count + 1), *ends.tolist()]
    return [message[starts[i] : starts[i + 1]] for i in range(count)]


def _pack_result(encoded: Encoded) -> bytes:
    count = len(encoded.lengths).to_bytes(8, "little")
    return b"".join(
        [_DONE, count, encoded.lengths.astype("<i8").tobytes(), encoded.tokens.tobytes()]
    )


def _unpack_result(answer: bytes, dtype: str) -> Encoded:
    count = int.from_bytes(answer[1:9], "little")
    return Encoded(
        lengths=np.frombuffer(answer, "<i8", count, offset=9),
        tokens=np.frombuffer(answer, dtype, offset=9 + 8 * count),
    )


def _died() -> DatasetError:
    return DatasetError(
        "a process that encodes ended by itself, perhaps for lack of memory",
        "run the same command again, it goes on from here; give fewer --workers",
    )
