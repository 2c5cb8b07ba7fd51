"""A process that sends payments and dies where it is told to; run by `test_outbox_kill`.

    python -m tests.ledger.outbox_child URL FOLDER KEY RECIPIENT COUNT [STEP:NUMBER]

It pays COUNT times one wei under the keys pay/0, pay/1, … and prints "done". With STEP:NUMBER it kills itself with
SIGKILL when that step is reached for the NUMBER-th time.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ledger import outbox_pump
from ledger.broadcast import broadcast
from ledger.connection import Connection
from ledger.keys import LocalSigner
from ledger.outbox import Outbox
from ledger.outbox_pump import OutboxSettings
from ledger.outbox_store import OutboxStore
from ledger.transactions import Call
from protocol.ids import to_address

STEPS = (
    "before-add",
    "after-add",
    "after-broadcast",
    "before-mined",
    "after-mined",
    "before-final",
)


def _die_at(step: str, number: int) -> None:
    seen: Counter[str] = Counter()

    def reached(name: str) -> None:
        seen[name] += 1
        if name == step and seen[name] == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def wrap(name: str, before: str | None, after: str | None) -> None:
        inner: Callable[..., Any] = getattr(OutboxStore, name)

        def outer(*args: Any, **kwargs: Any) -> Any:
            if before:
                reached(before)
            result = inner(*args, **kwargs)
            if after:
                reached(after)
            return result

        setattr(OutboxStore, name, outer)

    wrap("add", "before-add", "after-add")
    wrap("mark_mined", "before-mined", "after-mined")
    wrap("mark_final", "before-final", None)

    async def announced(*args: Any) -> Any:
        result = await broadcast(*args)
        reached("after-broadcast")
        return result

    vars(outbox_pump)["broadcast"] = announced


async def _pay(url: str, folder: Path, key: bytes, recipient: str, count: int) -> None:
    settings = OutboxSettings(poll_s=0.02, finality_blocks=2, rebroadcast_s=0.3)
    call = Call(to=to_address(recipient), data=b"", label="pay", value=1)
    async with (
        await Connection.open(url) as connection,
        await Outbox.open(
            folder / "outbox.sqlite3", connection, LocalSigner(key), settings=settings
        ) as outbox,
    ):
        async with asyncio.TaskGroup() as group:
            for number in range(count):
                group.create_task(outbox.submit(call, f"pay/{number}"))
        # Until two blocks came after and everything is final.
        await asyncio.sleep(3.3 if len(sys.argv) > 6 and "final" in sys.argv[6] else 0.1)
    sys.stdout.write("done\n")


if __name__ == "__main__":
    if len(sys.argv) > 6:
        where, _, nth = sys.argv[6].partition(":")
        _die_at(where, int(nth))
    asyncio.run(
        _pay(
            sys.argv[1],
            Path(sys.argv[2]),
            bytes.fromhex(sys.argv[3]),
            sys.argv[4],
            int(sys.argv[5]),
        )
    )
