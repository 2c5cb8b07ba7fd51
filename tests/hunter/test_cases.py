"""Cases survive a restart with their evidence to the byte, and are opened once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hunter.cases import CaseBook
from hunter.evidence import wrong_data
from ledger.contracts.evidence import (
    EquivocationEvidence,
    Evidence,
    WrongDataEvidence,
    WrongSpecEvidence,
)
from ledger.contracts.verdicts import Fault
from miner.work import Work
from node.journal import Journal
from protocol import canonical
from protocol.ids import Round
from protocol.merkle import merkle_root
from protocol.submission import SignedSubmission
from tests.bench import Desk, desk_over
from tests.specs import some_hash
from tests.subnet.stepped import key_named
from training.dataset import TokenDataset

MINER, OTHER = key_named("miner").address, key_named("other").address
KEY = key_named("operator")


@pytest.fixture(scope="module")
def desk(text: TokenDataset) -> Desk:
    return desk_over(text)


@pytest.fixture(scope="module")
def work(desk: Desk) -> Work:
    return desk.work("zero", MINER)[0]


@pytest.fixture(scope="module")
def equivocation(desk: Desk, work: Work) -> EquivocationEvidence:
    first, second = (desk.publish(work, KEY, steps=steps).signed for steps in (1, 2))
    return EquivocationEvidence(first=first, second=second)


@pytest.fixture(scope="module")
def lie(desk: Desk, work: Work) -> Evidence:
    leaves = [some_hash(f"leaf {index}") for index in range(desk.spec.chain.samples_per_round)]
    signed = desk.publish(
        work, KEY, miner=OTHER, round=Round(2), data_root=merkle_root(leaves)
    ).signed
    found = wrong_data(signed, leaves, desk.dataset)
    assert found is not None
    return found


@contextmanager
def opened(folder: Path) -> Iterator[CaseBook]:
    journal = Journal.open(folder / "journal.db")
    yield CaseBook(journal)
    journal.close()


def test_cases__after_a_restart__have_the_same_evidence(
    tmp_path: Path, equivocation: Evidence, lie: Evidence
) -> None:
    with opened(tmp_path) as book:
        assert book.open_cases() == []
        assert book.add(equivocation)
        assert book.add(lie)
        before = book.open_cases()
    with opened(tmp_path) as book:
        assert book.open_cases() == before
        assert [case.evidence for case in book.open_cases()] == [equivocation, lie]
        assert [(case.miner, case.round) for case in before] == [(MINER, 1), (OTHER, 2)]


def test_add__same_miner_and_round__is_one_case_also_once_closed(
    tmp_path: Path, equivocation: EquivocationEvidence
) -> None:
    turned = EquivocationEvidence(first=equivocation.second, second=equivocation.first)
    with opened(tmp_path) as book:
        assert book.add(equivocation)
        assert not book.add(turned)
        assert [case.evidence for case in book.open_cases()] == [equivocation]
        book.close(book.open_cases()[0])
        assert not book.add(turned)
    with opened(tmp_path) as book:
        assert book.open_cases() == []
        assert not book.add(equivocation)


def test_close__one_of_two__leaves_the_other(
    tmp_path: Path, equivocation: Evidence, lie: Evidence
) -> None:
    with opened(tmp_path) as book:
        book.add(equivocation)
        book.add(lie)
        book.close(book.open_cases()[0])
    with opened(tmp_path) as book:
        assert [case.evidence for case in book.open_cases()] == [lie]


def test_add__another_kind__is_a_case_of_its_own(
    tmp_path: Path, equivocation: EquivocationEvidence
) -> None:
    other = WrongSpecEvidence(signed=equivocation.first)
    with opened(tmp_path) as book:
        assert book.add(equivocation)
        assert book.add(other)
        assert [case.key for case in book.open_cases()] == [
            f"{MINER}/1/equivocation",
            f"{MINER}/1/wrong-spec",
        ]


def test_drop__unsound_evidence__makes_room_for_other_but_not_for_itself(
    tmp_path: Path, equivocation: EquivocationEvidence
) -> None:
    turned = EquivocationEvidence(first=equivocation.second, second=equivocation.first)
    with opened(tmp_path) as book:
        book.add(equivocation)
        book.drop(book.open_cases()[0])
        assert not book.add(equivocation)
    with opened(tmp_path) as book:
        assert book.open_cases() == []
        assert book.add(turned)
        assert not book.add(equivocation), "one is open"
    with opened(tmp_path) as book:
        assert [case.evidence for case in book.open_cases()] == [turned]
        assert len(book.all_cases()) == 1


def test_all_cases__closed_ones__are_still_there(tmp_path: Path, equivocation: Evidence) -> None:
    with opened(tmp_path) as book:
        book.add(equivocation)
        book.close(book.open_cases()[0])
    with opened(tmp_path) as book:
        assert book.open_cases() == []
        assert [case.evidence for case in book.all_cases()] == [equivocation]


def test_cases__of_earlier_versions__keep_their_names_and_evidence(
    tmp_path: Path, equivocation: EquivocationEvidence, lie: Evidence
) -> None:
    assert isinstance(lie, WrongDataEvidence)
    stored: dict[str, canonical.Json] = {
        f"{MINER}/1": {
            "signed": [old(equivocation.first), old(equivocation.second)],
            "index": -1,
            "claimed": [],
            "true": [],
        },
        f"{OTHER}/2": {
            "signed": [old(lie.signed)],
            "index": lie.index,
            "claimed": [each.hex() for each in (lie.claimed_leaf, *lie.claimed_proof)],
            "true": [each.hex() for each in (lie.true_leaf, *lie.true_proof)],
        },
    }
    journal = Journal.open(tmp_path / "journal.db")
    for key, value in stored.items():
        journal.note(f"case/{key}", canonical.dumps(value))
    journal.note(f"case/{MINER}/3", b"")
    journal.note("cases", canonical.dumps([*stored, f"{MINER}/3"]))
    journal.close()
    with opened(tmp_path) as book:
        assert [case.key for case in book.open_cases()] == list(stored)
        assert [case.evidence for case in book.open_cases()] == [equivocation, lie]
        assert book.all_cases() == book.open_cases(), "closed ones have lost their evidence"
        assert not book.add(equivocation)
        assert book.add(WrongSpecEvidence(signed=equivocation.first)), "they knew nothing of it"
        book.close(book.open_cases()[0])
    with opened(tmp_path) as book:
        assert [case.kind for case in book.open_cases()] == [Fault.WRONG_DATA, Fault.WRONG_SPEC]


def old(signed: SignedSubmission) -> dict[str, canonical.Json]:
    """A submission as earlier versions stored it."""
    text = canonical.dumps(signed.submission.to_json()).decode()
    return {"submission": text, "signature": signed.signature.hex()}
