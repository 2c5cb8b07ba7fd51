"""The folder store: whole or absent, within its quota, whatever happens."""

from __future__ import annotations

import os
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from protocol.errors import OperatorError
from protocol.hashing import sha256
from protocol.ids import Hash32
from tests.transport.nodes import pattern, ref_of
from transport import files
from transport.errors import BlobMissing, DownloadBusy, StorageBroken, StorageFull, WrongLength
from transport.limits import KIB, MIB
from transport.store import FolderStore

ABSENT = Hash32(bytes(32))
QUOTA = 1000


def path_of(store: FolderStore, data: bytes) -> Path:
    name = sha256(data).hex()
    return store.root / "blobs" / name[:2] / name


@pytest.mark.parametrize("size", [0, 1, 100_000, 3 * MIB])
def test_put__any_size__comes_back(size: int, store: FolderStore) -> None:
    data = pattern(size)
    ref = store.put(data)
    assert ref == ref_of(data)
    assert store.get(ref.digest) == data
    assert b"".join(store.stream(ref.digest, chunk_bytes=70_000)) == data
    assert store.size(ref.digest) == size
    assert store.has(ref.digest)
    assert FolderStore(store.root, 256 * MIB).get(ref.digest) == data


@pytest.mark.parametrize("size", [0, 1, 100_000])
def test_put_file__any_size__is_the_blob_that_put_makes(
    size: int, store: FolderStore, tmp_path: Path
) -> None:
    data, path = pattern(size), tmp_path / "file"
    path.write_bytes(data)
    for _ in range(2):  # new, then held already
        assert store.put_file(path, chunk_bytes=7_000) == ref_of(data)
        assert store.get(ref_of(data).digest) == data
        assert store.used_bytes == size
    path_of(store, data).write_bytes(data + b"x")
    assert store.put_file(path) == store.put(data)
    assert store.get(ref_of(data).digest) == data
    assert path.read_bytes() == data


def test_put_file__no_file_or_no_room__leaves_nothing(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store", QUOTA)
    with pytest.raises(StorageBroken, match=r"can't use .*none"):
        store.put_file(tmp_path / "none")
    (tmp_path / "large").write_bytes(pattern(QUOTA + 1))
    with pytest.raises(StorageFull):
        store.put_file(tmp_path / "large")
    assert store.used_bytes == 0


def test_get__absent__none(store: FolderStore) -> None:
    assert store.get(ABSENT) is None
    assert store.size(ABSENT) is None
    assert not store.has(ABSENT)
    assert not store.delete(ABSENT)
    with pytest.raises(BlobMissing):
        store.open(ABSENT)


@pytest.mark.parametrize("damage", [b"", b"x", pattern(1000, seed=9), pattern(2000)])
def test_get__damaged_on_disk__dropped(damage: bytes, store: FolderStore) -> None:
    data = pattern(1000)
    ref = store.put(data)
    path_of(store, data).write_bytes(damage)
    assert store.get(ref.digest) is None
    assert not store.has(ref.digest)
    assert store.used_bytes == 0
    store.put(data)
    assert store.get(ref.digest) == data


def test_open__damaged_before_the_start__dropped(store: FolderStore) -> None:
    data = pattern(1000)
    ref = store.put(data)
    path_of(store, data).write_bytes(pattern(1000, seed=9))
    again = FolderStore(store.root, 256 * MIB)
    with pytest.raises(BlobMissing):
        again.open(ref.digest)
    assert not again.has(ref.digest)


def test_put__held_but_damaged__written_again(store: FolderStore) -> None:
    data = pattern(1000)
    store.put(data)
    path_of(store, data).write_bytes(pattern(1000, seed=9))
    for each in (store, FolderStore(store.root, 256 * MIB)):
        assert each.get(each.put(data).digest) == data
        assert each.used_bytes == 1000


def test_get__file_removed_behind_our_back__none_and_put_again(store: FolderStore) -> None:
    data = pattern(1000)
    for use in (store.get, store.put):
        store.put(data)
        path_of(store, data).unlink()
        use(data if use == store.put else sha256(data))  # type: ignore[arg-type]
    assert store.get(ref_of(data).digest) == data
    assert store.used_bytes == len(data)


def test_open__evicted_while_open__still_readable(tmp_path: Path) -> None:
    store = FolderStore(tmp_path, QUOTA)
    data = pattern(QUOTA)
    with store.open(store.put(data).digest) as file:
        store.put(pattern(QUOTA, seed=2))
        assert not store.has(ref_of(data).digest)
        assert file.read() == data


def test_put__killed_before_the_rename__nothing_left(
    store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(source: Path, target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "move_durably", die)
    with pytest.raises(KeyboardInterrupt):
        store.put(b"data")
    assert [path for path in store.root.rglob("*") if path.is_file()] == []
    assert store.used_bytes == 0


def test_open_store__leftovers_and_strays__cleared_or_ignored(store: FolderStore) -> None:
    ref = store.put(b"data")
    (store.root / "scratch" / "tmpabc").write_bytes(b"half")
    (store.root / "pins" / ".DS_Store").touch()
    (store.root / "parts" / "readme.txt").touch()
    (store.root / "blobs" / "ab").mkdir(exist_ok=True)
    (store.root / "blobs" / "ab" / "stray").touch()
    again = FolderStore(store.root, 256 * MIB)
    assert again.digests() == [ref.digest]
    assert list((store.root / "scratch").iterdir()) == []


def test_put__disk_full__operator_told_and_nothing_left(
    store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageFull, match="free some disk space") as caught:
        store.put(b"data")
    assert isinstance(caught.value, OperatorError)
    monkeypatch.undo()
    assert store.get(store.put(b"data").digest) == b"data"


def test_open_store__folder_is_a_file__operator_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageBroken, match="may write it"):
        FolderStore(tmp_path / "file", QUOTA)


def test_put__folder_read_only__operator_told(
    store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(StorageBroken, match="this user may write it"):
        store.put(b"data")


def test_put__over_quota__oldest_go_first(tmp_path: Path) -> None:
    store = FolderStore(tmp_path, QUOTA)
    refs = [store.put(pattern(400, seed=seed)) for seed in (1, 2)]
    store.put(pattern(400, seed=1))  # storing again makes it the newest
    third = store.put(pattern(400, seed=3))
    assert store.digests() == [refs[0].digest, third.digest]
    again = FolderStore(tmp_path, QUOTA)
    assert again.digests() == [refs[0].digest, third.digest]
    fourth = again.put(pattern(400, seed=4))
    assert again.digests() == [third.digest, fourth.digest]


def test_put__pinned__never_evicted_also_after_a_restart(tmp_path: Path) -> None:
    store = FolderStore(tmp_path, QUOTA)
    data = pattern(400)
    store.pin(ref_of(data).digest)  # before it is here
    store.put(data)
    again = FolderStore(tmp_path, QUOTA)
    again.put(pattern(500, seed=2))
    with pytest.raises(StorageFull, match="raise the quota"):
        again.put(pattern(700, seed=3))
    assert len(again.digests()) == 2  # nothing was evicted in vain
    again.put(pattern(600, seed=4))
    assert again.get(ref_of(data).digest) == data
    again.unpin(ref_of(data).digest)
    again.put(pattern(QUOTA, seed=5))
    assert not again.has(ref_of(data).digest)
    assert again.pinned() == frozenset()


def test_put__larger_than_the_quota__refused_and_nothing_evicted(tmp_path: Path) -> None:
    store = FolderStore(tmp_path, QUOTA)
    ref = store.put(pattern(QUOTA))
    with pytest.raises(StorageFull):
        store.put(pattern(QUOTA + 1))
    assert store.has(ref.digest)


def test_put__many_threads__consistent(tmp_path: Path) -> None:
    store = FolderStore(tmp_path, 50_000)
    blobs = [pattern(1000 + seed, seed=seed) for seed in range(40)]
    barrier = threading.Barrier(8)

    def work(worker: int) -> None:
        barrier.wait()
        for step in range(60):
            data = blobs[(worker * 7 + step) % len(blobs)]
            store.put(data)
            assert store.get(sha256(data)) in (None, data)  # type: ignore[arg-type]
            assert store.used_bytes <= store.quota_bytes

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    files_bytes = sum(p.stat().st_size for p in (tmp_path / "blobs").rglob("*") if p.is_file())
    assert store.used_bytes == files_bytes <= store.quota_bytes
    assert all(store.get(digest) is not None for digest in store.digests())


def test_part__kept_by_close__resumed_and_counted(store: FolderStore) -> None:
    data = pattern(MIB)
    part = store.part(ref_of(data))
    assert store.used_bytes == MIB  # room is reserved at once
    part.begin("someone")
    part.append(data[: MIB // 2])
    part.close()
    assert store.used_bytes == MIB // 2
    again = FolderStore(store.root, 256 * MIB)
    assert again.used_bytes == MIB // 2
    part = again.part(ref_of(data))
    assert part.size == MIB // 2
    assert part.sources() == {None}
    part.append(data[MIB // 2 :])
    assert again.adopt(part) == ref_of(data)
    part.close()
    assert again.get(ref_of(data).digest) == data
    assert again.used_bytes == MIB
    assert list((store.root / "parts").iterdir()) == []


def test_part__open_twice__second_refused(store: FolderStore) -> None:
    ref = ref_of(pattern(MIB))
    part = store.part(ref)
    with pytest.raises(DownloadBusy):
        store.part(ref)
    with pytest.raises(DownloadBusy):  # another process's store over the same folder
        FolderStore(store.root, 256 * MIB).part(ref)
    part.close()
    store.part(ref).close()


def test_part__more_than_the_blob__refused(store: FolderStore) -> None:
    for size in (100, MIB):
        part = store.part(ref_of(pattern(size)))
        part.append(bytes(size - 1))
        with pytest.raises(WrongLength):
            part.append(bytes(2))
        part.discard()
    assert store.used_bytes == 0


def test_part__wrong_digest__not_adopted(store: FolderStore) -> None:
    part = store.part(ref_of(pattern(100)))
    part.append(bytes(100))
    with pytest.raises(ValueError, match="digest"):
        store.adopt(part)
    part.discard()


def test_part__idle__goes_before_blobs(tmp_path: Path) -> None:
    quota = 2 * MIB
    store = FolderStore(tmp_path, quota)
    kept = store.put(pattern(MIB))
    part = store.part(ref_of(pattern(MIB, seed=2)))
    part.append(bytes(MIB // 2))
    part.close()
    store.put(pattern(MIB, seed=3))
    assert store.has(kept.digest)
    assert list((tmp_path / "parts").iterdir()) == []


def test_part__old__dropped_at_start(store: FolderStore) -> None:
    part = store.part(ref_of(pattern(MIB)))
    part.append(bytes(KIB))
    part.close()
    (path,) = (store.root / "parts").iterdir()
    os.utime(path, (0, 0))
    FolderStore(store.root, 256 * MIB)
    assert not path.exists()


class StoreMachine(RuleBasedStateMachine):
    """The store against a list: (digest, size) oldest first, and a set of pins."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.store = FolderStore(Path(self.folder.name), QUOTA)
        self.model: dict[Hash32, bytes] = {}
        self.pins: set[Hash32] = set()

    def teardown(self) -> None:
        self.folder.cleanup()

    @rule(size=st.integers(0, 500), seed=st.integers(0, 3))
    def put(self, size: int, seed: int) -> None:
        data = pattern(size, seed=seed)
        digest = ref_of(data).digest
        if digest in self.model:
            self.model[digest] = self.model.pop(digest)
            assert self.store.put(data) == ref_of(data)
            return
        kept = sum(len(blob) for key, blob in self.model.items() if key in self.pins)
        if kept + size > QUOTA:
            with pytest.raises(StorageFull):
                self.store.put(data)
            return
        for key in [key for key in self.model if key not in self.pins]:
            if sum(map(len, self.model.values())) + size <= QUOTA:
                break
            del self.model[key]
        self.store.put(data)
        self.model[digest] = data

    @precondition(lambda self: self.model)
    @rule(choice=st.integers(0, 1000), action=st.sampled_from(["pin", "unpin", "delete"]))
    def change(self, choice: int, action: str) -> None:
        digest = list(self.model)[choice % len(self.model)]
        if action == "pin":
            self.store.pin(digest)
            self.pins.add(digest)
        elif action == "unpin":
            self.store.unpin(digest)
            self.pins.discard(digest)
        else:
            assert self.store.delete(digest)
            del self.model[digest]
            self.pins.discard(digest)

    @rule()
    def restart(self) -> None:
        self.store = FolderStore(self.store.root, QUOTA)

    @invariant()
    def same_as_the_model(self) -> None:
        assert self.store.digests() == list(self.model)
        assert self.store.pinned() == self.pins
        assert self.store.used_bytes == sum(map(len, self.model.values())) <= QUOTA
        for digest, data in self.model.items():
            assert self.store.get(digest) == data


StoreMachine.TestCase.settings = settings(
    max_examples=30,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestStoreMachine = StoreMachine.TestCase
