"""Blobs from mirrors that cut, stall, lie and die."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from protocol.errors import Rejected, Retryable
from protocol.hashing import sha256
from protocol.ids import Hash32
from protocol.submission import BlobRef
from tests.transport.conftest import quick
from tests.transport.nodes import (
    Behaviour,
    Node,
    Villain,
    cuts,
    drips,
    floods,
    head,
    in_turn,
    pattern,
    ref_of,
    says,
    serves,
    stalls,
    villain,
)
from transport.client import PeerClient
from transport.errors import BlobUnavailable, StorageFull, WrongLength
from transport.limits import KIB, MIB
from transport.store import FolderStore

BIG = pattern(3 * MIB + 17)
SMALL = pattern(10_000)
NOWHERE = "http://127.0.0.1:1"


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as opened:
        yield opened


async def start(stack: AsyncExitStack, behaviour: Behaviour) -> Villain:
    return await stack.enter_async_context(villain(behaviour))


@pytest.mark.parametrize("size", [0, 1, 256 * KIB, 256 * KIB + 1, 3 * MIB + 17])
async def test_fetch_blob__honest_node__stored(
    size: int, node: Node, client: PeerClient, store: FolderStore
) -> None:
    data = pattern(size)
    ref = node.store.put(data)
    fetched = await client.fetch_blob(ref, [node.url], store)
    assert store.get(ref.digest) == data
    assert fetched.blamed == frozenset()
    assert (await client.fetch_blob(ref, [], store)).mirrors == frozenset()


@pytest.mark.parametrize("data", [SMALL, BIG], ids=["small", "big"])
async def test_fetch_blob__every_connection_cut__goes_on_where_it_stopped(
    data: bytes, client: PeerClient, store: FolderStore, stack: AsyncExitStack
) -> None:
    mirror = await start(stack, cuts(data, after=len(data) // 5 + 1))
    await client.fetch_blob(ref_of(data), [mirror.url], store)
    assert store.get(ref_of(data).digest) == data
    assert [request.start() for request in mirror.asked] == [
        i * (len(data) // 5 + 1) for i in range(5)
    ]


@pytest.mark.parametrize("data", [SMALL, BIG], ids=["small", "big"])
async def test_fetch_blob__first_dies_half_way__second_continues(
    data: bytes, client: PeerClient, store: FolderStore, stack: AsyncExitStack
) -> None:
    half = len(data) // 2
    first = await start(stack, in_turn(cuts(data, after=half), says(b"")))
    second = await start(stack, serves(data))
    fetched = await client.fetch_blob(ref_of(data), [first.url, second.url], store)
    assert store.get(ref_of(data).digest) == data
    assert fetched.mirrors == {first.url, second.url}
    assert second.asked[0].start() == half


async def test_fetch_blob__unreachable_and_missing__third_delivers(
    node: Node, client: PeerClient, store: FolderStore, tmp_path: Path
) -> None:
    ref = node.store.put(BIG)
    async with Node.running(tmp_path / "empty") as empty:
        mirrors = [NOWHERE, empty.url, node.url]
        fetched = await client.fetch_blob(ref, mirrors, store)
    assert fetched.mirrors == {node.url}
    assert [mirror for mirror, _ in fetched.failures] == mirrors[:2]


async def test_fetch_blob__stalls__next_mirror_continues(
    node: Node, client: PeerClient, store: FolderStore, stack: AsyncExitStack
) -> None:
    ref = node.store.put(BIG)
    slow = await start(stack, stalls(BIG, after=MIB))
    fetched = await client.fetch_blob(ref, [slow.url, node.url], store)
    assert store.get(ref.digest) == BIG
    assert "slow" in fetched.failures[0][1]
    assert client.trust.trust(slow.url) == 1 / 2  # a fault and a merit
    assert client.trust.trust(node.url) == 2 / 3


async def test_fetch_blob__drips__given_up_below_the_minimum_rate(
    node: Node, store: FolderStore, stack: AsyncExitStack
) -> None:
    ref = node.store.put(SMALL)
    slow = await start(stack, drips(SMALL, pause_s=0.01))
    async with PeerClient(quick(transfer_grace_s=0.3, min_bytes_per_s=1 << 30)) as client:
        fetched = await client.fetch_blob(ref, [slow.url, node.url], store)
    assert store.get(ref.digest) == SMALL
    assert "slow" in fetched.failures[0][1]


@pytest.mark.parametrize("data", [SMALL, BIG], ids=["small", "big"])
async def test_fetch_blob__wrong_bytes__liar_blamed_and_bytes_dropped(
    data: bytes, node: Node, client: PeerClient, store: FolderStore, stack: AsyncExitStack
) -> None:
    ref = node.store.put(data)
    liar = await start(stack, serves(pattern(len(data), seed=2)))
    fetched = await client.fetch_blob(ref, [liar.url, node.url], store)
    assert store.get(ref.digest) == data
    assert fetched.blamed == {liar.url}
    assert fetched.mirrors == {node.url}
    assert client.trust.trust(liar.url) < 0.5 < client.trust.trust(node.url)


@pytest.mark.parametrize("data", [SMALL, BIG], ids=["small", "big"])
async def test_fetch_blob__wrong_bytes_in_a_mixture__only_the_liar_blamed(
    data: bytes, client: PeerClient, store: FolderStore, stack: AsyncExitStack
) -> None:
    third = len(data) // 3
    bad = pattern(len(data), seed=2)
    mirrors = [
        await start(stack, in_turn(cuts(data, after=third), says(b""))),
        await start(stack, in_turn(cuts(bad, after=third), says(b""))),
        await start(stack, serves(data)),
    ]
    urls = [mirror.url for mirror in mirrors]
    fetched = await client.fetch_blob(ref_of(data), urls, store)
    assert store.get(ref_of(data).digest) == data
    assert fetched.blamed == {urls[1]}
    assert fetched.mirrors == {urls[2]}
    assert store.used_bytes == len(data)


async def test_fetch_blob__liar_finishes_an_honest_half__liar_blamed(
    client: PeerClient, store: FolderStore, stack: AsyncExitStack
) -> None:
    honest = await start(stack, in_turn(cuts(BIG, after=MIB), serves(BIG)))
    liar = await start(stack, serves(pattern(len(BIG), seed=2)))
    fetched = await client.fetch_blob(ref_of(BIG), [honest.url, liar.url], store)
    assert store.get(ref_of(BIG).digest) == BIG
    assert fetched.blamed == {liar.url}


async def test_fetch_blob__only_liars__unavailable_and_nothing_kept(
    client: PeerClient, store: FolderStore, stack: AsyncExitStack
) -> None:
    liars = [await start(stack, serves(pattern(len(BIG), seed=seed))) for seed in (2, 3)]
    with pytest.raises(BlobUnavailable) as caught:
        await client.fetch_blob(ref_of(BIG), [liar.url for liar in liars], store)
    assert isinstance(caught.value, Retryable)
    assert caught.value.blamed == {liar.url for liar in liars}
    assert not store.has(ref_of(BIG).digest)
    assert store.used_bytes == 0
    assert list(store.root.rglob("*.part")) == []


@pytest.mark.parametrize(
    "behaviour",
    [
        serves(BIG + b"more"),
        serves(BIG[:-5]),
        says(head("200 OK", Transfer_Encoding="chunked"), b"400000\r\n", BIG + b"x" * MIB),
        floods(head("200 OK"), b"x" * MIB),
        says(head("200 OK", Content_Length=0)),
    ],
    ids=["longer", "shorter", "longer-chunk", "endless", "empty"],
)
async def test_fetch_blob__lies_about_length__blamed_once_the_reference_is_proven(
    behaviour: Behaviour,
    node: Node,
    client: PeerClient,
    store: FolderStore,
    stack: AsyncExitStack,
) -> None:
    ref = node.store.put(BIG)
    liar = await start(stack, behaviour)
    fetched = await client.fetch_blob(ref, [liar.url, node.url], store)
    assert store.get(ref.digest) == BIG
    assert fetched.blamed == {liar.url}


async def test_fetch_blob__reference_with_false_size__nobody_blamed(
    node: Node, client: PeerClient, store: FolderStore
) -> None:
    true = node.store.put(BIG)
    for size in (true.size - 1, true.size + 1, 5):
        false = BlobRef(digest=true.digest, size=size)
        with pytest.raises(BlobUnavailable) as caught:
            await client.fetch_blob(false, [node.url], store)
        assert caught.value.blamed == frozenset()
    assert client.trust.trust(node.url) == 0.5
    await client.fetch_blob(true, [node.url], store)
    with pytest.raises(WrongLength):
        await client.fetch_blob(BlobRef(digest=true.digest, size=7), [node.url], store)


async def test_fetch_blob__false_reference_to_nothing__refused(
    node: Node, client: PeerClient, store: FolderStore
) -> None:
    false = BlobRef(digest=ref_of(BIG).digest, size=0)
    with pytest.raises(WrongLength):
        await client.fetch_blob(false, [node.url], store)
    empty = BlobRef(digest=Hash32(sha256(b"")), size=0)
    await client.fetch_blob(empty, [], store)
    assert store.get(empty.digest) == b""


@pytest.mark.parametrize(
    "answer",
    [
        head("206 Partial Content", Content_Length=3, Content_Range="bytes 0-2/3") + b"abc",
        head("200 OK", Content_Length=3, Content_Encoding="gzip") + b"abc",
        head("302 Found", Location="http://127.0.0.1:9/", Content_Length=0),
        head("500 Oh", Content_Length=0),
        head("200 OK", **{f"X{i}": "y" * 8000 for i in range(200)}),
        b"\0\xff garbage \r\n\r\n",
        b"",
    ],
    ids=["partial", "encoded", "redirect", "error", "huge-head", "no-http", "silence"],
)
async def test_fetch_blob__strange_answer__next_mirror(
    answer: bytes, node: Node, client: PeerClient, store: FolderStore, stack: AsyncExitStack
) -> None:
    ref = node.store.put(SMALL)
    strange = await start(stack, says(answer))
    fetched = await client.fetch_blob(ref, [strange.url, node.url], store)
    assert fetched.mirrors == {node.url}
    assert store.get(ref.digest) == SMALL


@pytest.mark.parametrize(
    "span", ["bytes 0-9/10", "bytes 5-3/10000", "nonsense", "bytes 0-9999/10000"]
)
async def test_fetch_blob__wrong_range__next_mirror_continues(
    span: str, client: PeerClient, store: FolderStore, stack: AsyncExitStack
) -> None:
    answer = head("206 Partial Content", Content_Length=10, Content_Range=span) + bytes(10)
    odd = await start(stack, in_turn(cuts(SMALL, after=5000), says(answer)))
    dead = await start(stack, in_turn(says(b""), serves(SMALL)))
    fetched = await client.fetch_blob(ref_of(SMALL), [odd.url, dead.url], store)
    assert store.get(ref_of(SMALL).digest) == SMALL
    assert dead.asked[-1].start() == 5000
    assert fetched.mirrors == {odd.url, dead.url}


async def test_fetch_blob__mirror_ignores_ranges__skips_what_it_has(
    client: PeerClient, store: FolderStore, stack: AsyncExitStack
) -> None:
    whole = says(head("200 OK", Content_Length=len(BIG)), BIG)
    mirror = await start(stack, in_turn(cuts(BIG, after=MIB + 3), whole))
    await client.fetch_blob(ref_of(BIG), [mirror.url], store)
    assert store.get(ref_of(BIG).digest) == BIG
    assert len(mirror.asked) == 2


async def test_fetch_blob__busy__waits_as_asked_and_is_no_fault(
    client: PeerClient, store: FolderStore, stack: AsyncExitStack
) -> None:
    busy = head("429 Too Many Requests", Retry_After=1, Content_Length=0)
    mirror = await start(stack, in_turn(says(busy), serves(SMALL)))
    began = asyncio.get_running_loop().time()
    await client.fetch_blob(ref_of(SMALL), [mirror.url], store)
    assert asyncio.get_running_loop().time() - began >= 1.0
    assert client.trust.trust(mirror.url) > 0.6


async def test_fetch_blob__beyond_the_limit__refused_unasked(
    store: FolderStore, stack: AsyncExitStack
) -> None:
    mirror = await start(stack, serves(BIG))
    async with PeerClient(quick(blob_bytes=MIB)) as client:
        with pytest.raises(WrongLength) as caught:
            await client.fetch_blob(ref_of(BIG), [mirror.url], store)
    assert isinstance(caught.value, Rejected)
    assert mirror.asked == []


async def test_fetch_blob__no_room__operator_told(
    node: Node, client: PeerClient, tmp_path: Path
) -> None:
    ref = node.store.put(BIG)
    with pytest.raises(StorageFull):
        await client.fetch_blob(ref, [node.url], FolderStore(tmp_path / "tiny", MIB))


async def test_fetch_blob__many_at_once__one_download(
    client: PeerClient, store: FolderStore, stack: AsyncExitStack
) -> None:
    mirror = await start(stack, serves(BIG))
    await asyncio.gather(*(client.fetch_blob(ref_of(BIG), [mirror.url], store) for _ in range(10)))
    assert len(mirror.asked) == 1


async def test_fetch_blob__cancelled__part_kept_and_usable(
    node: Node, client: PeerClient, store: FolderStore, stack: AsyncExitStack
) -> None:
    slow = await start(stack, stalls(BIG, after=2 * MIB))
    ref = node.store.put(BIG)
    task = asyncio.create_task(client.fetch_blob(ref, [slow.url], store))
    while not slow.asked:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (part,) = store.root.rglob("*.part")
    assert part.stat().st_size == 2 * MIB
    fetched = await client.fetch_blob(ref, [node.url], store)
    assert store.get(ref.digest) == BIG
    assert fetched.mirrors == {node.url}
    assert list(store.root.rglob("*.part")) == []


async def test_fetch_blob__cancelled_at_any_moment__the_next_fetch_works(
    node: Node, client: PeerClient, store: FolderStore
) -> None:
    ref = node.store.put(BIG)
    for step in range(30):
        task = asyncio.create_task(client.fetch_blob(ref, [node.url], store))
        await asyncio.sleep(step / 1000)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await client.fetch_blob(ref, [node.url], store)
    assert store.get(ref.digest) == BIG
    assert store.used_bytes == len(BIG)


_KILLED = """
import asyncio, sys
from pathlib import Path
from protocol.ids import Hash32
from protocol.submission import BlobRef
from transport.client import PeerClient
from transport.limits import ClientLimits
from transport.store import FolderStore

async def main(root, digest, size, mirror):
    ref = BlobRef(digest=Hash32(bytes.fromhex(digest)), size=int(size))
    async with PeerClient(ClientLimits(allow_private=True)) as client:
        await client.fetch_blob(ref, [mirror], FolderStore(Path(root), 1 << 30))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("damaged", [False, True], ids=["intact", "damaged"])
async def test_fetch_blob__process_killed_half_way__restart_resumes(
    damaged: bool, client: PeerClient, tmp_path: Path, stack: AsyncExitStack
) -> None:
    slow = await start(stack, stalls(BIG, after=2 * MIB))
    root = tmp_path / "killed"
    ref = ref_of(BIG)
    process = subprocess.Popen(
        [sys.executable, "-c", _KILLED, str(root), ref.digest.hex(), str(ref.size), slow.url],
        cwd=Path(__file__).parents[2],
    )
    try:
        part = root / "parts" / f"{ref.digest.hex()}.part"
        while not part.exists() or part.stat().st_size < MIB:
            assert process.poll() is None
            await asyncio.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    if damaged:
        with part.open("r+b") as file:
            file.write(b"rotten")
    left = part.stat().st_size
    store = FolderStore(root, 1 << 30)
    assert not store.has(ref.digest)
    mirror = await start(stack, serves(BIG))
    fetched = await client.fetch_blob(ref, [mirror.url], store)
    assert store.get(ref.digest) == BIG
    assert fetched.blamed == frozenset()
    assert [request.start() for request in mirror.asked] == ([left, 0] if damaged else [left])


async def test_fetch_blob__complete_part_left_behind__judged_without_asking(
    client: PeerClient, store: FolderStore, stack: AsyncExitStack
) -> None:
    ref = ref_of(BIG)
    path = store.root / "parts" / f"{ref.digest.hex()}.part"
    path.write_bytes(BIG)
    assert (await client.fetch_blob(ref, [], store)).mirrors == frozenset()
    assert store.get(ref.digest) == BIG
    store.delete(ref.digest)
    for leftover in (os.urandom(len(BIG)), BIG + b"more"):
        path.write_bytes(leftover)
        mirror = await start(stack, serves(BIG))
        await client.fetch_blob(ref, [mirror.url], store)
        assert store.get(ref.digest) == BIG
        store.delete(ref.digest)
