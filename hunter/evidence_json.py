"""Evidence as canonical JSON: in the journal, and in the files that hunters hand to each other.

A document says its version and kind, the signed submissions (the accused one first) and what the kind needs besides. What is read
is as strange as any stranger's: it is refused unless it is exactly what would be written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ledger.contracts.epochs import Ballot
from ledger.contracts.evidence import (
    BadEncodingEvidence,
    EquivocationEvidence,
    Evidence,
    LocalStateEvidence,
    WrongDataEvidence,
    WrongSpecEvidence,
    kind_of,
)
from ledger.contracts.verdicts import Fault
from protocol import canonical, record
from protocol.canonical import Json
from protocol.errors import Rejected
from protocol.ids import Hash32, Slot
from protocol.submission import SignedSubmission, Submission

VERSION = 1
_UINT32 = 1 << 32


@dataclass(frozen=True, slots=True, kw_only=True)
class _Data:
    index: int
    claimed_leaf: Hash32
    claimed_proof: tuple[Hash32, ...]
    true_leaf: Hash32
    true_proof: tuple[Hash32, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ballot:
    slot: int
    root: Hash32
    bitmap: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Local:
    ballots: tuple[_Ballot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chunk:
    chunk: int
    leaf: str
    proof: tuple[Hash32, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Nothing: ...


_Details: TypeAlias = _Data | _Local | _Chunk | _Nothing

_DETAILS: Mapping[Fault, tuple[type[_Details], tuple[int, ...]]] = {
    Fault.EQUIVOCATION: (_Nothing, (2,)),
    Fault.WRONG_SPEC: (_Nothing, (1,)),
    Fault.WRONG_DATA: (_Data, (1,)),
    Fault.LOCAL_STATE: (_Local, (1, 2)),
    Fault.BAD_ENCODING: (_Chunk, (1,)),
}
"""What a kind needs besides, and how many submissions."""

KINDS = tuple(kind.slug for kind in _DETAILS)
"""The names of all kinds of evidence."""


def kind_named(name: str) -> Fault:
    """The kind with this name; raises `Rejected` for an unknown one."""
    for kind in _DETAILS:
        if kind.slug == name:
            return kind
    raise Rejected(f"unknown kind of evidence {name!r}; there are {', '.join(KINDS)}")


def to_bytes(evidence: Evidence) -> bytes:
    """The evidence as canonical JSON."""
    signed, details = _parts(evidence)
    return canonical.dumps(
        {
            "version": VERSION,
            "kind": kind_of(evidence).slug,
            "submissions": [signed_to_json(each) for each in signed],
            "details": record.to_json(details),
        }
    )


def from_bytes(data: bytes) -> Evidence:
    """Strict inverse of `to_bytes`; raises `Rejected` saying what is wrong."""
    value = canonical.loads(data)
    if not isinstance(value, Mapping):
        raise Rejected("evidence: expected an object")
    if value.get("version") != VERSION:
        raise Rejected(f"evidence: version {value.get('version')!r} is not known here")
    if set(value) != {"version", "kind", "submissions", "details"}:
        raise Rejected("evidence: expected version, kind, submissions and details")
    kind = kind_named(str(value["kind"]))
    shape, counts = _DETAILS[kind]
    submissions = value["submissions"]
    if not isinstance(submissions, list) or len(submissions) not in counts:
        raise Rejected(f"evidence: {kind.slug} has {' or '.join(map(str, counts))} submissions")
    signed = [signed_from_json(each) for each in submissions]
    evidence = _whole(kind, signed, record.from_json(shape, value["details"]))
    if to_bytes(evidence) != data:
        raise Rejected("evidence: not in canonical form")
    return evidence


def signed_to_json(signed: SignedSubmission) -> dict[str, Json]:
    """A submission and its signature."""
    return {"submission": signed.submission.to_json(), "signature": signed.signature.hex()}


def signed_from_json(value: Json) -> SignedSubmission:
    """Strict inverse of `signed_to_json`; raises `Rejected`."""
    if not isinstance(value, Mapping) or set(value) != {"submission", "signature"}:
        raise Rejected("evidence: expected a submission and its signature")
    return SignedSubmission(
        submission=Submission.from_json(value["submission"]),
        signature=_bytes(str(value["signature"])),
    )


def _parts(evidence: Evidence) -> tuple[tuple[SignedSubmission, ...], _Details]:
    match evidence:
        case EquivocationEvidence():
            return (evidence.first, evidence.second), _Nothing()
        case WrongSpecEvidence():
            return (evidence.signed,), _Nothing()
        case WrongDataEvidence():
            data = _Data(
                index=evidence.index,
                claimed_leaf=evidence.claimed_leaf,
                claimed_proof=evidence.claimed_proof,
                true_leaf=evidence.true_leaf,
                true_proof=evidence.true_proof,
            )
            return (evidence.signed,), data
        case LocalStateEvidence():
            ballots = tuple(
                _Ballot(slot=each.slot, root=each.root, bitmap=each.bitmap.hex())
                for each in evidence.ballots
            )
            shown = () if evidence.other is None else (evidence.other,)
            return (evidence.signed, *shown), _Local(ballots=ballots)
        case BadEncodingEvidence():
            chunk = _Chunk(
                chunk=evidence.chunk, leaf=evidence.leaf.hex(), proof=tuple(evidence.proof)
            )
            return (evidence.signed,), chunk


def _whole(kind: Fault, signed: list[SignedSubmission], details: _Details) -> Evidence:
    match details:
        case _Nothing():
            if kind is Fault.EQUIVOCATION:
                return EquivocationEvidence(first=signed[0], second=signed[1])
            return WrongSpecEvidence(signed=signed[0])
        case _Data():
            _require(0 <= details.index < _UINT32, "index")
            return WrongDataEvidence(
                signed=signed[0],
                index=details.index,
                claimed_leaf=details.claimed_leaf,
                claimed_proof=details.claimed_proof,
                true_leaf=details.true_leaf,
                true_proof=details.true_proof,
            )
        case _Local():
            _require(all(0 <= each.slot < _UINT32 for each in details.ballots), "slot")
            ballots = tuple(
                Ballot(slot=Slot(each.slot), root=each.root, bitmap=_bytes(each.bitmap))
                for each in details.ballots
            )
            other = signed[1] if len(signed) > 1 else None
            return LocalStateEvidence(signed=signed[0], other=other, ballots=ballots)
        case _Chunk():
            _require(0 <= details.chunk < 1 << 256, "chunk")
            return BadEncodingEvidence(
                signed=signed[0],
                chunk=details.chunk,
                leaf=_bytes(details.leaf),
                proof=details.proof,
            )


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise Rejected("evidence: expected hex digits") from error


def _require(holds: bool, name: str) -> None:
    if not holds:
        raise Rejected(f"evidence: {name} out of range")
