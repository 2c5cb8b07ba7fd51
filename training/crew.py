"""The processes that train one miner's rounds together, one for each device, and how the first leads the others.

`torchrun` starts them. Rank 0 is the miner. The others know nothing of run, chain or keys: they wait for its orders, which travel over
gloo as plain numbers and text, on sockets that close with the process that held them. So whoever dies is missed at once by
all that wait for it; whoever hangs, after `stalled_s`. Nothing is mended: all end, and torchrun or its caller starts them again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from threading import Lock

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from protocol import canonical
from training.errors import CrewError

STALLED_S = 600.0
"""No exchange between processes that are well takes as long; a first one waits until all have started."""
_LEADER = 0
_DISMISSED = "it was dismissed"
_IDLE = timedelta(days=365)
"""A miner may wait for its next round for as long as it likes: that it died is known by its socket."""


class Order(IntEnum):
    """What rank 0 says; each but DISMISS concerns one loop."""

    DISMISS = 0
    BEGIN = 1
    LOAD = 2
    STEP = 3
    GATHER = 4
    DROP = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a process stands: its rank among `size`, and among the `local_size` on its own machine."""

    rank: int
    size: int
    local_rank: int
    local_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """An order as it arrives. `details`: what there is to know besides."""

    order: Order
    loop: int
    details: Mapping[str, canonical.Json]


class Crew:
    """All processes of one miner, seen from one of them. Made by `join`."""

    def __init__(
        self, place: Place, device: torch.device, orders: dist.ProcessGroup, stalled_s: float
    ) -> None:
        self.place, self.device = place, device
        self.mesh: DeviceMesh = init_device_mesh(device.type, (place.size,))
        self._orders, self._stalled = orders, timedelta(seconds=stalled_s)
        self._turn = Lock()
        self._over: str | None = None
        self._loops = 0

    @classmethod
    @contextmanager
    def join(cls, place: Place, *, stalled_s: float = STALLED_S) -> Iterator[Crew]:
        """The crew, once all its processes are there; when rank 0 leaves, the others are told that it is over.

        The environment says where they meet (MASTER_ADDR, MASTER_PORT), as torchrun sets it. There is one crew in a process.

        Raises:
            CrewError: fewer devices than processes, or not all came.
        """
        device = _device(place)
        try:
            dist.init_process_group(
                "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo",
                rank=place.rank,
                world_size=place.size,
                timeout=timedelta(seconds=stalled_s),
            )
            crew = cls(place, device, dist.new_group(backend="gloo", timeout=_IDLE), stalled_s)
        except (RuntimeError, ValueError) as error:
            raise _failure(error, place) from error
        try:
            yield crew
        finally:
            crew._leave()

    def _leave(self) -> None:
        if self.leads:
            with suppress(CrewError), self.order(Order.DISMISS):
                self._over = _DISMISSED
        # A crew that broke has nothing to take leave of, and might wait for it: our sockets close with us.
        if self._over == _DISMISSED:
            dist.destroy_process_group()

    @property
    def leads(self) -> bool:
        """Whether this process is rank 0."""
        return self.place.rank == _LEADER

    @property
    def engine(self) -> str:
        """What computes, as far as the bits depend on it."""
        name = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else "cpu"
        return f"{self.place.size} x {name}"

    def share_of(self, batch: int) -> int:
        """How many samples of a batch each process takes; raises CrewError where they can't be shared evenly."""
        if batch % self.place.size:
            raise CrewError(
                f"{self.place.size} processes can't share a batch of {batch} samples evenly",
                f"give torchrun an --nproc-per-node that divides {batch}",
            )
        return batch // self.place.size

    def new_loop(self) -> int:
        """A number for another loop."""
        self._loops += 1
        return self._loops

    @contextmanager
    def order(
        self, order: Order, loop: int = 0, details: Mapping[str, canonical.Json] | None = None
    ) -> Iterator[None]:
        """Rank 0's: gives an order; the body is its own part of the work. One order at a time, whichever thread gives it.

        Raises:
            CrewError: a process failed or is gone. Nothing more can be ordered then.
        """
        with self._turn:
            if self._over is not None:
                raise CrewError(f"the crew trains no more, {self._over}", "start all of it again")
            text = canonical.dumps(dict(details or {}))
            try:
                self._send(torch.tensor([order, loop, len(text)]))
                self._send(_bytes(text))
                yield
            except RuntimeError as error:
                self._over = "one of its processes failed"
                raise _failure(error, self.place) from error

    @contextmanager
    def obeying(self) -> Iterator[None]:
        """The others' twin of `order`: turns what the exchange with a process that is gone raises into `CrewError`."""
        try:
            yield
        except RuntimeError as error:
            raise _failure(error, self.place) from error

    def hear(self) -> Heard:
        """Waits for rank 0's next order."""
        head = torch.zeros(3, dtype=torch.int64)
        dist.broadcast(head, _LEADER, group=self._orders)
        order, loop, length = head.tolist()
        text = torch.empty(length, dtype=torch.uint8)
        dist.broadcast(text, _LEADER, group=self._orders)
        details = canonical.loads(text.numpy().tobytes())
        assert isinstance(details, dict)
        if order == Order.DISMISS:
            self._over = _DISMISSED
        return Heard(order=Order(order), loop=loop, details=details)

    def deal(self, batch: Tensor | None, part: Tensor) -> Tensor:
        """Fills `part` with this process's samples of rank 0's batch (the others give None), and returns it on the device."""
        parts = None if batch is None else list(torch.split(batch, len(part)))
        work = dist.scatter(part, parts, _LEADER, group=self._orders, async_op=True)
        work.wait(self._stalled)
        return part.to(self.device)

    def sum(self, values: Sequence[float]) -> list[float]:
        """The sum over all processes, number by number, in fp64; every one gets the same bits."""
        total = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(total)
        summed: list[float] = total.tolist()
        return summed

    def _send(self, message: Tensor) -> None:
        work = dist.broadcast(message, _LEADER, group=self._orders, async_op=True)
        work.wait(self._stalled)


def _device(place: Place) -> torch.device:
    """A GPU of its own where there are GPUs, else the processor.

    A miner whose work is disputed has to reach the same bits once more, so torch's deterministic kernels are asked for;
    where an operation has none, it warns.
    """
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not gpus:
        return torch.device("cpu")
    if place.local_size > gpus:
        raise CrewError(
            f"{place.local_size} processes, but {gpus} GPUs",
            f"start torchrun with --nproc-per-node {gpus}",
        )
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    device = torch.device("cuda", place.local_rank)
    torch.cuda.set_device(device)
    return device


def _failure(error: Exception, place: Place) -> CrewError:
    first = (str(error).splitlines() or [type(error).__name__])[0]
    # Gloo says "[file:line] what happened. Advice."
    told = re.sub(r"^\[[^]]*\] ", "", first).split(". ")[0]
    return CrewError(
        f"rank {place.rank} of {place.size} can't go on with the others ({told})",
        "the process that ended first says why, if it could; start all of them again",
    )


def _bytes(text: bytes) -> Tensor:
    return torch.from_numpy(np.frombuffer(text, np.uint8).copy())
