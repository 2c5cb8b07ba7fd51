"""The hunter's cases, in the journal from the moment that the evidence is found."""

from __future__ import annotations

from dataclasses import dataclass

from ledger.contracts.faults import EquivocationEvidence, Evidence, WrongDataEvidence
from node.journal import Journal
from protocol import canonical, record
from protocol.errors import Bug
from protocol.ids import Address, Hash32, Round
from protocol.submission import SignedSubmission, Submission

_INDEX = "cases"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One fault of one miner in one round. The contract judges each (miner, round) once."""

    miner: Address
    round: Round
    evidence: Evidence

    @property
    def key(self) -> str:
        """Names the case."""
        return f"{self.miner}/{self.round}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Signed:
    """A signed submission as JSON text and hex."""

    submission: str
    signature: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """Evidence as it is stored; `index` is -1 for an equivocation."""

    signed: tuple[_Signed, ...]
    index: int
    claimed: tuple[Hash32, ...]
    true: tuple[Hash32, ...]


class CaseBook:
    """All cases, open and closed."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._open: dict[str, Case] = {}
        for key in self._keys():
            stored = journal.noted(f"case/{key}")
            if stored:
                case = _case(_from_bytes(stored))
                self._open[case.key] = case

    def add(self, evidence: Evidence) -> bool:
        """Opens a case, durably; returns False if there is or was one for this miner and round."""
        case = _case(evidence)
        if case.key in self._keys():
            return False
        self._journal.note(f"case/{case.key}", _to_bytes(evidence))
        self._journal.note(_INDEX, canonical.dumps([*self._keys(), case.key]))
        self._open[case.key] = case
        return True

    def open_cases(self) -> list[Case]:
        """The cases to be pursued."""
        return list(self._open.values())

    def close(self, case: Case) -> None:
        """Ends a case, proven or lost."""
        self._journal.note(f"case/{case.key}", b"")
        self._open.pop(case.key, None)

    def _keys(self) -> list[str]:
        index = self._journal.noted(_INDEX)
        value = canonical.loads(index) if index else []
        if not isinstance(value, list):
            raise Bug("the index of cases is no list")
        return [str(key) for key in value]


def _case(evidence: Evidence) -> Case:
    signed = evidence.first if isinstance(evidence, EquivocationEvidence) else evidence.signed
    return Case(miner=signed.submission.miner, round=signed.submission.round, evidence=evidence)


def _to_bytes(evidence: Evidence) -> bytes:
    if isinstance(evidence, EquivocationEvidence):
        stored = _Stored(
            signed=(_sign_out(evidence.first), _sign_out(evidence.second)),
            index=-1,
            claimed=(),
            true=(),
        )
    else:
        stored = _Stored(
            signed=(_sign_out(evidence.signed),),
            index=evidence.index,
            claimed=(evidence.claimed_leaf, *evidence.claimed_proof),
            true=(evidence.true_leaf, *evidence.true_proof),
        )
    return canonical.dumps(record.to_json(stored))


def _from_bytes(data: bytes) -> Evidence:
    stored = record.from_json(_Stored, canonical.loads(data))
    signed = [_sign_in(each) for each in stored.signed]
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


def _sign_out(signed: SignedSubmission) -> _Signed:
    text = canonical.dumps(signed.submission.to_json()).decode()
    return _Signed(submission=text, signature=signed.signature.hex())


def _sign_in(stored: _Signed) -> SignedSubmission:
    return SignedSubmission(
        submission=Submission.from_json(canonical.loads(stored.submission.encode())),
        signature=bytes.fromhex(stored.signature),
    )
