from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol import canonical
from scoring.book import ScoreBook
from scoring.book_json import dump_book, load_book
from scoring.checks import Fault
from scoring.errors import BookUnreadable
from tests.scoring.peers import RULES, evaluated, observed, peer, seen_round

losses = st.floats(allow_nan=True, allow_infinity=True)
histories = st.lists(
    st.tuples(
        st.dictionaries(st.integers(0, 5), st.tuples(losses, losses), max_size=6),
        st.dictionaries(st.integers(0, 7), st.sampled_from(list(Fault)), max_size=3),
    ),
    max_size=6,
)


def book_after(history: list[tuple[dict[int, tuple[float, float]], dict[int, Fault]]]) -> ScoreBook:
    return observed(
        *(
            seen_round(
                i + 1,
                [evaluated(peer(k), rand=rand, own=own) for k, (rand, own) in case.items()],
                faults={peer(k): (fault,) for k, fault in faults.items()},
            )
            for i, (case, faults) in enumerate(history)
        )
    )


BOOK = book_after([({0: (0.1, 0.2), 1: (-0.1, 0.2)}, {2: Fault.WRONG_DATA})])


@settings(deadline=None, max_examples=60)
@given(histories)
def test_book__any_history__is_restored_to_the_bit(
    history: list[tuple[dict[int, tuple[float, float]], dict[int, Fault]]],
) -> None:
    book = book_after(history)
    restored = load_book(dump_book(book), RULES)
    assert restored == book
    assert dump_book(restored) == dump_book(book)


def test_book__restored_in_the_middle__goes_on_as_if_nothing_had_happened() -> None:
    rounds = [
        seen_round(r, [evaluated(peer(i), rand=0.05 + 0.001 * ((i * r) % 5)) for i in range(5)])
        for r in range(1, 7)
    ]
    book = ScoreBook.empty(RULES)
    for seen in rounds:
        book = load_book(dump_book(book.observe_round(seen)), RULES)
    assert book == observed(*rounds)


def test_dump__is_canonical_and_free_of_floats() -> None:
    data = dump_book(BOOK)
    assert canonical.dumps(canonical.loads(data)) == data
    assert json.loads(data)["null"]["mu"] == BOOK.null.mu.hex()


@pytest.mark.parametrize(
    "damage",
    [
        {"version": 2},
        {"round": -1},
        {"round": "1"},
        {"epoch": True},
        {"null": {"mu": "0x1p+4"}},
        {"null": {"mu": "0x1p+4", "sigma": "nan"}},
        {"null": {"mu": "0x1p+4", "sigma": "0x1p+99999"}},
        {"null": {"mu": 1, "sigma": "0x1p+4"}},
        {"miners": []},
        {"miners": {"0x00": {}}},
        {"miners": {peer(0): {}}},
        {"payloads": {"00": [1, peer(0)]}},
        {"payloads": {"00" * 32: [1]}},
        {"payloads": {"00" * 32: [1, 2]}},
        {"extra": 1},
    ],
)
def test_load__damaged_book__tells_the_operator(damage: dict[str, object]) -> None:
    fields = json.loads(dump_book(BOOK)) | damage
    with pytest.raises(BookUnreadable, match="backup"):
        load_book(canonical.dumps(fields), RULES)


def test_load__unknown_fault__tells_the_operator() -> None:
    fields = json.loads(dump_book(BOOK))
    damages: tuple[object, ...] = ("no-such-fault", 3, [])
    for barred in damages:
        fields["miners"][peer(2)]["barred"] = barred
        with pytest.raises(BookUnreadable):
            load_book(canonical.dumps(fields), RULES)


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff", b"[1, 2]", dump_book(BOOK)[:-1]])
def test_load__other_bytes__tells_the_operator(data: bytes) -> None:
    with pytest.raises(BookUnreadable):
        load_book(data, RULES)
