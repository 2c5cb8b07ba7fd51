"""The small pure parts: ranges, rates, pages."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transport.errors import BadAnswer
from transport.listing import Page, page_of, page_wire_bytes
from transport.ranges import Unsatisfiable, parse_content_range, parse_range
from transport.rate import RateLimiter, peer_of, retry_after


@given(
    size=st.integers(0, 50),
    first=st.integers(0, 60) | st.none(),
    last=st.integers(0, 60) | st.none(),
)
def test_parse_range__any__as_the_rfc_says(size: int, first: int | None, last: int | None) -> None:
    data = bytes(range(size))
    header = f"bytes={'' if first is None else first}-{'' if last is None else last}"
    if first is not None:
        expected = data[first:] if last is None else data[first : last + 1]
        ignored = last is not None and last < first
    else:
        expected = data[max(0, size - (last or 0)) :]
        ignored = last is None
    try:
        span = parse_range(header, size)
    except Unsatisfiable:
        assert expected == b""
        assert not ignored
        return
    assert (span is None) == ignored
    if span is not None:
        assert data[span[0] : span[1]] == expected
        assert 0 <= span[0] < span[1] <= size


@given(st.text(max_size=40))
@example("bytes=٣-٤")
@example("bytes=1-2\n")
@example("bytes=" + "9" * 5000 + "-")
def test_parse_range__any_text__never_fails(text: str) -> None:
    try:
        span = parse_range(text, 100)
    except Unsatisfiable:
        return
    assert span is None or 0 <= span[0] < span[1] <= 100


@given(start=st.integers(0, 10**17), length=st.integers(1, 100), rest=st.integers(0, 100))
def test_parse_content_range__well_formed__read(start: int, length: int, rest: int) -> None:
    stop, size = start + length, start + length + rest
    assert parse_content_range(f"bytes {start}-{stop - 1}/{size}") == (start, stop, size)


@pytest.mark.parametrize("text", ["", "bytes */5", "bytes 0-5/5", "bytes 3-2/9", "bytes 0-1/*"])
def test_parse_content_range__malformed__none(text: str) -> None:
    assert parse_content_range(text) is None


def test_rate__burst_then_steady__per_peer() -> None:
    now = [100.0]
    rate = RateLimiter(per_s=2.0, burst=3, clock=lambda: now[0])
    assert [rate.draw("a") for _ in range(3)] == [0, 0, 0]
    assert rate.draw("a") == pytest.approx(0.5)
    assert rate.draw("b") == 0
    now[0] += 0.5
    assert rate.draw("a") == 0
    assert rate.draw("a") > 0
    now[0] += 1000
    assert [rate.draw("a") > 0 for _ in range(4)] == [False, False, False, True]


def test_rate__charged_into_debt__pays_it_off() -> None:
    now = [0.0]
    rate = RateLimiter(per_s=10.0, burst=20, clock=lambda: now[0])
    rate.charge("a", 50)
    assert rate.debt_s("a") == pytest.approx(3.0)
    now[0] += 3.0
    assert rate.debt_s("a") == 0


def test_rate__ten_thousand_peers__table_stays_small() -> None:
    rate = RateLimiter(per_s=1.0, burst=1, clock=lambda: 0.0)
    for number in range(10_000):
        rate.draw(str(number))
    assert len(rate._levels) == 4096
    assert rate.draw("9999") > 0


def test_peer_of__addresses__one_peer_per_v4_and_v6_network() -> None:
    assert peer_of("8.8.8.8") == peer_of("::ffff:8.8.8.8") == "8.8.8.8"
    assert peer_of("2001:db8:1:2:3::4") == peer_of("2001:db8:1:2:ffff::")
    assert peer_of("2001:db8:1:2::") != peer_of("2001:db8:1:3::")
    assert peer_of("fe80::1%eth0") == "fe80::/64"
    assert peer_of("") == ""


def test_retry_after__any_wait__whole_seconds() -> None:
    assert [retry_after(wait) for wait in (0.01, 1.0, 1.2)] == ["1", "1", "2"]


@given(
    records=st.lists(st.binary(max_size=20), max_size=20),
    max_bytes=st.integers(1, 60),
    max_records=st.integers(1, 8),
)
def test_page_of__walked_through__each_record_once(
    records: list[bytes], max_bytes: int, max_records: int
) -> None:
    now = list(records)
    seen: list[bytes] = []
    before: int | None = None
    while True:
        page = page_of(now, before=before, max_bytes=max_bytes, max_records=max_records)
        wire = page.to_bytes()
        assert len(wire) <= page_wire_bytes(max_bytes=max(max_bytes, 20), max_records=max_records)
        assert Page.from_bytes(wire, record_bytes=20) == page
        seen += page.records
        now.insert(0, b"arrived meanwhile")
        if page.next is None:
            break
        before = page.next
    assert seen == records


@given(st.binary(max_size=60))
def test_page__any_bytes__read_or_refused(data: bytes) -> None:
    try:
        page = Page.from_bytes(data, record_bytes=100)
    except BadAnswer:
        return
    assert page.to_bytes() == data
