"""The hunter's charges: work that it could not reproduce, in the journal before a game costs a bond.

With a charge stand the leaves that the hunter computed. A restarted hunter picks from them, and need
not have the model of that round any more.
"""

from __future__ import annotations

from dataclasses import dataclass

from node.games import Claim
from node.journal import Journal
from protocol import canonical, record
from protocol.errors import Bug
from protocol.submission import SignedSubmission, Submission

_INDEX = "charges"
_LEAF = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """A miner's signed work of a round, and what the hunter makes of that round."""

    signed: SignedSubmission
    mine: Claim

    @property
    def key(self) -> str:
        """Names the charge."""
        return f"{self.signed.submission.miner}/{self.signed.submission.round}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """A charge as it is stored: JSON text, and hex."""

    submission: str
    signature: str
    steps: str
    encode: str


class ChargeBook:
    """All charges, open and closed."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._open: dict[str, Charge] = {}
        for key in self._keys():
            stored = journal.noted(f"charge/{key}")
            if stored:
                self._open[key] = _from_bytes(stored)

    def add(self, charge: Charge) -> bool:
        """Opens a charge, durably; returns False if there is or was one for this miner and round."""
        if charge.key in self._keys():
            return False
        self._journal.note(f"charge/{charge.key}", _to_bytes(charge))
        self._journal.note(_INDEX, canonical.dumps([*self._keys(), charge.key]))
        self._open[charge.key] = charge
        return True

    def open_charges(self) -> list[Charge]:
        """The charges to be pursued."""
        return list(self._open.values())

    def count(self) -> int:
        """How many there are and were."""
        return len(self._keys())

    def close(self, charge: Charge) -> None:
        """Ends a charge, won or lost."""
        self._journal.note(f"charge/{charge.key}", b"")
        self._open.pop(charge.key, None)

    def _keys(self) -> list[str]:
        index = self._journal.noted(_INDEX)
        value = canonical.loads(index) if index else []
        if not isinstance(value, list):
            raise Bug("the index of charges is no list")
        return [str(key) for key in value]


def _to_bytes(charge: Charge) -> bytes:
    stored = _Stored(
        submission=canonical.dumps(charge.signed.submission.to_json()).decode(),
        signature=charge.signed.signature.hex(),
        steps=b"".join(charge.mine.steps).hex(),
        encode=charge.mine.encode.hex(),
    )
    return canonical.dumps(record.to_json(stored))


def _from_bytes(data: bytes) -> Charge:
    stored = record.from_json(_Stored, canonical.loads(data))
    steps = bytes.fromhex(stored.steps)
    return Charge(
        signed=SignedSubmission(
            submission=Submission.from_json(canonical.loads(stored.submission.encode())),
            signature=bytes.fromhex(stored.signature),
        ),
        mine=Claim(
            steps=tuple(steps[i : i + _LEAF] for i in range(0, len(steps), _LEAF)),
            encode=bytes.fromhex(stored.encode),
        ),
    )
