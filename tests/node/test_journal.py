"""The journal refuses contradictions, over any number of restarts."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node.errors import Contradiction
from node.journal import Journal
from tests.specs import some_hash

KINDS = ("submission", "attestation", "weights")


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(KINDS),
            st.integers(1, 3),
            st.integers(1, 3),
            st.booleans(),
        ),
        max_size=25,
    )
)
def test_sign_once__any_history_with_restarts__keeps_the_first_digest_for_ever(
    history: list[tuple[str, int, int, bool]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        journal = Journal.open(path)
        first: dict[tuple[str, str], tuple[bytes, bytes]] = {}
        for kind, number, version, restarts in history:
            key, digest = str(number), some_hash(f"digest {version}")
            body = f"body {kind} {number} {version}".encode()
            known = first.setdefault((kind, key), (digest, body))
            if known[0] == digest:
                journal.sign_once(kind, key, digest, body)
            else:
                with pytest.raises(Contradiction):
                    journal.sign_once(kind, key, digest, body)
            if restarts:
                journal.close()
                journal = Journal.open(path)
            assert journal.signed(kind, key) == known[1]
        journal.close()


def test_sign_once__same_digest_again__keeps_the_first_body(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path / "journal.db")
    journal.sign_once("submission", "1", some_hash("a"), b"first")
    journal.sign_once("submission", "1", some_hash("a"), b"second")
    assert journal.signed("submission", "1") == b"first"
    journal.close()


def test_sign_once__two_processes__only_one_digest_wins(tmp_path: Path) -> None:
    one, other = (Journal.open(tmp_path / "journal.db") for _ in range(2))
    one.sign_once("submission", "1", some_hash("a"), b"one")
    with pytest.raises(Contradiction):
        other.sign_once("submission", "1", some_hash("b"), b"other")
    assert other.signed("submission", "1") == b"one"
    one.close()
    other.close()


def test_signed__nothing__is_none(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path / "journal.db")
    assert journal.signed("submission", "1") is None
    assert journal.noted("book") is None
    journal.forget("book")
    journal.close()


def test_note__again__replaces_and_is_forgotten_when_told(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path / "journal.db")
    journal.note("book", b"one")
    journal.note("book", b"two")
    journal.close()
    journal = Journal.open(tmp_path / "journal.db")
    assert journal.noted("book") == b"two"
    journal.forget("book")
    assert journal.noted("book") is None
    journal.close()
