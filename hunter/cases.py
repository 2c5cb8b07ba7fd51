"""The hunter's cases, in the journal from the moment that the evidence is found.

A closed case keeps its evidence, so that it can be shown afterwards. Cases of earlier versions, which knew two kinds and one case per
miner and round, are read as they were stored, and keep the names that their challenges were committed under.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hunter import evidence_json
from ledger.contracts.evidence import EquivocationEvidence, Evidence, WrongDataEvidence, kind_of
from ledger.contracts.verdicts import Fault
from node.journal import Journal
from protocol import canonical, record
from protocol.errors import Bug
from protocol.ids import Address, Hash32, Round
from protocol.submission import SignedSubmission, Submission

_INDEX = "cases"
_OVER, _UNSOUND = b"\1", b"\2"
_OLD_KINDS = (Fault.EQUIVOCATION, Fault.WRONG_DATA)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One fault of one miner in one round. `key` names the case."""

    key: str
    miner: Address
    round: Round
    kind: Fault
    evidence: Evidence


class CaseBook:
    """All cases, open and closed."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._keys = self._stored_keys()
        self._open: dict[str, Case] = {}
        for key in self._keys:
            case = None if self._is_closed(key) else self._case(key)
            if case is not None:
                self._open[key] = case

    def add(self, evidence: Evidence) -> bool:
        """Opens a case, durably; returns False if there is or was one for this miner, round and kind, with sound evidence or this."""
        case, data = _case(_new_key(evidence), evidence), evidence_json.to_bytes(evidence)
        old_key = _old_key(case.miner, case.round)
        if case.kind in _OLD_KINDS and old_key in self._keys:
            return False
        if case.key in self._keys and not self._is_better(case.key, data):
            return False
        self._journal.note(f"case/{case.key}", data)
        self._journal.forget(f"closed/{case.key}")
        if case.key not in self._keys:
            self._journal.note(_INDEX, canonical.dumps([*self._keys, case.key]))
            self._keys.append(case.key)
        self._open[case.key] = case
        return True

    def open_cases(self) -> list[Case]:
        """The cases to be pursued."""
        return list(self._open.values())

    def all_cases(self) -> list[Case]:
        """Every case whose evidence is still here, in the order in which they were opened."""
        return [case for case in map(self._case, self._keys) if case is not None]

    def close(self, case: Case) -> None:
        """Ends a case, proven or lost."""
        self._end(case, _OVER)

    def drop(self, case: Case) -> None:
        """Ends a case whose evidence would be refused; nothing was at stake, and other evidence opens it again."""
        self._end(case, _UNSOUND)

    def _end(self, case: Case, how: bytes) -> None:
        self._journal.note(f"closed/{case.key}", how)
        self._open.pop(case.key, None)

    def _is_better(self, key: str, data: bytes) -> bool:
        unsound = self._journal.noted(f"closed/{key}") == _UNSOUND
        return unsound and self._journal.noted(f"case/{key}") != data

    def _is_closed(self, key: str) -> bool:
        return bool(self._journal.noted(f"closed/{key}"))

    def _case(self, key: str) -> Case | None:
        """None for a case that an earlier version closed: it dropped the evidence."""
        stored = self._journal.noted(f"case/{key}")
        return _case(key, _from_bytes(stored)) if stored else None

    def _stored_keys(self) -> list[str]:
        index = self._journal.noted(_INDEX)
        value = canonical.loads(index) if index else []
        if not isinstance(value, list):
            raise Bug("the index of cases is no list")
        return [str(key) for key in value]


def _case(key: str, evidence: Evidence) -> Case:
    accused = evidence.accused.submission
    return Case(
        key=key,
        miner=accused.miner,
        round=accused.round,
        kind=kind_of(evidence),
        evidence=evidence,
    )


def _new_key(evidence: Evidence) -> str:
    accused = evidence.accused.submission
    return f"{_old_key(accused.miner, accused.round)}/{kind_of(evidence).slug}"


def _old_key(miner: Address, round_: Round) -> str:
    return f"{miner}/{round_}"


# -- what earlier versions stored ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _OldSigned:
    submission: str
    signature: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _OldEvidence:
    """`index` is -1 for an equivocation."""

    signed: tuple[_OldSigned, ...]
    index: int
    claimed: tuple[Hash32, ...]
    true: tuple[Hash32, ...]


def _from_bytes(data: bytes) -> Evidence:
    value = canonical.loads(data)
    if isinstance(value, Mapping) and "version" in value:
        return evidence_json.from_bytes(data)
    stored = record.from_json(_OldEvidence, value)
    signed = [
        SignedSubmission(
            submission=Submission.from_json(canonical.loads(each.submission.encode())),
            signature=bytes.fromhex(each.signature),
        )
        for each in stored.signed
    ]
    if stored.index < 0:
        return EquivocationEvidence(first=signed[0], second=signed[1])
    return WrongDataEvidence(
        signed=signed[0],
        index=stored.index,
        claimed_leaf=stored.claimed[0],
        claimed_proof=stored.claimed[1:],
        true_leaf=stored.true[0],
        true_proof=stored.true[1:],
    )
