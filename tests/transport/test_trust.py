"""Trust by transfers: the formula, the choices, and what randomness keeps open."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.beacon import Draw
from protocol.errors import Rejected
from protocol.hashing import sha256
from protocol.ids import Hash32
from transport.trust import TrustBook

PEERS = [f"http://peer{number}.example" for number in range(12)]


def draw_of(number: int) -> Draw:
    return Draw(Hash32(sha256(number.to_bytes(4, "big"))))


def book_of(counts: dict[str, tuple[int, int]]) -> TrustBook:
    book = TrustBook()
    for peer, (good, bad) in counts.items():
        for ok in [True] * good + [False] * bad:
            book.observe(peer, ok=ok)
    return book


@given(good=st.integers(0, 30), bad=st.integers(0, 30))
def test_trust__few_transfers__the_formula(good: int, bad: int) -> None:
    book = book_of({"a": (good, bad)})
    assert book.trust("a") == (good + 1) / (good + bad + 2)
    assert book.trust("stranger") == 0.5


def test_trust__long_history__can_still_change() -> None:
    book = book_of({"a": (10_000, 0)})
    assert book.trust("a") > 0.97
    for _ in range(64):
        book.observe("a", ok=False)
    assert book.trust("a") < 0.4
    for _ in range(64):
        book.observe("a", ok=True)
    assert book.trust("a") > 0.6


def test_order__earned_trust__good_before_strangers_before_bad() -> None:
    book = book_of({PEERS[0]: (20, 0), PEERS[1]: (0, 20)})
    firsts: Counter[str] = Counter()
    lasts: Counter[str] = Counter()
    for number in range(400):
        order = book.order(PEERS, draw_of(number))
        assert sorted(order) == sorted(PEERS)
        firsts[order[0]] += 1
        lasts[order[-1]] += 1
    assert 0.8 < firsts[PEERS[0]] / 400 < 0.95  # one time in eight a random one comes first
    assert lasts[PEERS[1]] / 400 > 0.9
    assert set(firsts) == set(PEERS)


def test_order__equals__shared_out_evenly() -> None:
    firsts = Counter(TrustBook().order(PEERS, draw_of(number))[0] for number in range(1200))
    assert all(60 < firsts[peer] < 140 for peer in PEERS)


def test_order__same_seed__same_order_whatever_the_input_order() -> None:
    book = book_of({PEERS[3]: (2, 1)})
    first = book.order(PEERS, draw_of(1))
    assert first == book.order(list(reversed(PEERS)) + PEERS, draw_of(1))
    assert TrustBook().order([], draw_of(1)) == []


def test_neighbours__thresholds__hysteresis() -> None:
    book = book_of({PEERS[0]: (9, 10), PEERS[1]: (2, 4), PEERS[2]: (4, 1), PEERS[3]: (0, 30)})
    current = [PEERS[0], PEERS[1]]
    kept: Counter[str] = Counter()
    for number in range(200):
        chosen = book.neighbours(PEERS, current, 8, draw_of(number))
        assert len(chosen) == len(set(chosen)) == 8
        kept.update(chosen)
    assert kept[PEERS[0]] == 200  # at .48: stays, though it would not join before strangers
    assert kept[PEERS[2]] == 200  # at .71: joins
    assert 0 < kept[PEERS[1]] < 120  # at .38: left, and back only as a random edge
    assert 0 < kept[PEERS[3]] < 120


@given(degree=st.integers(0, 20), count=st.integers(0, 12), seed=st.integers(0, 50))
def test_neighbours__any_degree__as_many_as_there_are(degree: int, count: int, seed: int) -> None:
    chosen = TrustBook().neighbours(PEERS[:count], [], degree, draw_of(seed))
    assert len(chosen) == len(set(chosen)) == min(degree, count)
    assert set(chosen) <= set(PEERS[:count])


def test_neighbours__gone_peer__not_kept() -> None:
    book = book_of({PEERS[0]: (9, 0)})
    assert PEERS[0] not in book.neighbours(PEERS[1:], [PEERS[0]], 12, draw_of(1))


def test_network__a_fifth_malicious__first_try_success_grows_to_one() -> None:
    bad = set(PEERS[:3])
    book = TrustBook()
    success = []
    for number in range(300):
        first = book.order(PEERS, draw_of(number))[0]
        book.observe(first, ok=first not in bad)
        success.append(first not in bad)
    assert sum(success[-100:]) >= 93  # what is left are the random first tries
    assert sum(success[-100:]) > sum(success[:20]) / 20 * 100 - 10


def test_bytes__both_ways__same_book() -> None:
    book = book_of({PEERS[0]: (3, 1), PEERS[1]: (0, 2)})
    again = TrustBook.from_bytes(book.to_bytes())
    assert again.to_bytes() == book.to_bytes()
    assert again.trust(PEERS[0]) == book.trust(PEERS[0])
    book.forget([PEERS[1]])
    assert book.trust(PEERS[0]) == 0.5


@pytest.mark.parametrize(
    "data", [b"", b"[]", b'{"a":1}', b'{"a":[1]}', b'{"a":[-1,0]}', b'{"a":[0,65]}', b'{"a":"bc"}']
)
def test_from_bytes__anything_else__refused(data: bytes) -> None:
    with pytest.raises(Rejected):
        TrustBook.from_bytes(data)
