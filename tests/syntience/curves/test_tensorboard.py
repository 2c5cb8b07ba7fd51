"""TensorBoard's files as its own readers see them."""

from __future__ import annotations

import math
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensorboardX.crc32c import _crc32c as reference_crc32c

from protocol.ids import Round
from syntience.curves.homes import read_report
from syntience.curves.tensorboard import (
    Event,
    crc32c,
    encoded,
    event_file,
    events_of,
    write_events,
    write_report,
)
from syntience.errors import UnwritableOutput
from tests.syntience.curves.events import events_in, scalars_in
from tests.syntience.curves.homes import STEPS, evaluation_row, make_devnet, training_row


def fp32(value: float) -> float:
    packed: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return packed


def test_crc32c__vectors_of_rfc_3720__are_met() -> None:
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert crc32c(b"123456789") == 0xE3069283


@given(st.binary(max_size=300))
def test_crc32c__any_bytes__equals_another_implementation(data: bytes) -> None:
    assert crc32c(data) == reference_crc32c(data)


TAGS = st.text(min_size=1, max_size=200)
EVENTS = st.builds(
    Event,
    at=st.floats(allow_nan=False),
    step=st.integers(0, (1 << 63) - 1),
    scalars=st.lists(
        st.tuples(TAGS, st.floats(width=32, allow_nan=False)), min_size=1, max_size=20
    ).map(tuple),
)


@given(st.lists(EVENTS, max_size=5))
def test_encoded__any_events__are_read_back_by_protobuf(events: list[Event]) -> None:
    read = list(events_in(encoded(events)))
    assert [
        Event(
            at=event.wall_time,
            step=event.step,
            scalars=tuple((value.tag, value.simple_value) for value in event.summary.value),
        )
        for event in read
    ] == events


def test_events_of__miner_s_row__has_its_rounds_and_its_inner_steps() -> None:
    row = training_row(3)
    *steps, whole, judged = events_of(row)
    assert [event.step for event in steps] == [2 * STEPS + step for step in range(1, STEPS + 1)]
    assert [event.scalars for event in steps] == [(("loss/step", loss),) for loss in row.losses]
    assert (whole.step, judged.step) == (3, 3)
    assert dict(whole.scalars)["codec/ratio"] == row.dense_bytes / row.payload_bytes
    assert judged.scalars == (("round/was_accepted", True),)
    assert len(list(events_of(replace(row, accepted=None)))) == STEPS + 1


def test_write_report__devnet__gives_each_node_a_file_that_tensorboard_reads(
    tmp_path: Path,
) -> None:
    report = read_report([make_devnet(tmp_path / "run")])
    folder = tmp_path / "events"
    written = write_report(report, folder)
    assert [path.parent.name for path in written] == [home.name for home in report.homes]
    assert all("tfevents" in path.name for path in written), "what TensorBoard looks for"
    miner = scalars_in(event_file(folder, "miner-1"))
    rows = report.miners[0].training
    assert miner["loss/training"] == [(row.round, fp32(row.mean_loss)) for row in rows]
    assert miner["codec/error"] == [(row.round, fp32(row.compression_error)) for row in rows]
    assert miner["bytes/payload"] == [(row.round, row.payload_bytes) for row in rows]
    assert len(miner["loss/step"]) == STEPS * len(rows)
    refused = scalars_in(event_file(folder, "miner-2"))["round/was_accepted"]
    assert [step for step, value in refused if not value] == [3]
    validator = scalars_in(event_file(folder, "validator-2"))
    evaluated = report.validators[1].evaluation
    assert validator["loss/heldout"] == [(row.round, fp32(row.heldout_loss)) for row in evaluated]
    assert validator["rate/alpha"] == [(row.round, 1.25) for row in evaluated]


def test_write_report__again__replaces_the_files(tmp_path: Path) -> None:
    report = read_report([make_devnet(tmp_path / "run")])
    before = [path.read_bytes() for path in write_report(report, tmp_path / "events")]
    after = [path.read_bytes() for path in write_report(report, tmp_path / "events")]
    assert before == after
    assert len(list((tmp_path / "events").rglob("*tfevents*"))) == len(after)


def test_write_events__a_loss_that_is_not_finite__is_written_as_it_is(tmp_path: Path) -> None:
    row = replace(evaluation_row(1), heldout_loss=math.inf, round=Round(1 << 40))
    path = tmp_path / "tfevents"
    write_events(path, list(events_of(row)))
    assert scalars_in(path)["loss/heldout"] == [(1 << 40, math.inf)]


def test_write_report__folder_that_is_a_file__says_so(tmp_path: Path) -> None:
    (tmp_path / "events").write_text("")
    report = read_report([make_devnet(tmp_path / "run")])
    with pytest.raises(UnwritableOutput, match="can't write"):
        write_report(report, tmp_path / "events")
