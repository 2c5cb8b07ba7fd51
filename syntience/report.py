"""What a devnet leaves behind as JSON (`devnet run --json FILE`): the run's outcome in numbers that a script can check.

Amounts are decimal strings in base units, because JSON readers turn large numbers into floats; hashes are 0x-hex. A value that
never came to be (a rating of a miner that was never rated) is null.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from statistics import median_low
from typing import get_type_hints

from protocol.canonical import Json
from protocol.ids import Address, Hash32, Round, Units
from syntience.files import write_atomically

REPORT_VERSION = 1
HONEST = "honest"
"""The behaviour of whoever doesn't cheat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """`params` are the run's settings as the command line and the spec name them."""

    params: Mapping[str, Json]
    epochs: int
    rounds: int
    wall_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LossSummary:
    """Held-out loss of the agreed model in nats per token: before round 1, then after each round."""

    heldout: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MinerSummary:
    """A miner.

    Attributes:
        behaviour: `HONEST` or the kind of cheat.
        rating: OpenSkill's ordinal as the validators' median sees it.
        mu: how much more a miner's own data gains than other data, the validators' median.
        weight: consensus weight in the last settled epoch.
        earned: what the settlements granted; `claimed` of it has been paid out.
        slashed: stake taken, burned or paid as a bounty.
        status: one or two words, for example `active` or `excluded`.
    """

    address: Address
    behaviour: str
    rating: float | None
    mu: float | None
    weight: int
    earned: Units
    claimed: Units
    slashed: Units
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatorSummary:
    """A validator.

    Attributes:
        behaviour: `HONEST` or the kind of cheat.
        weight_agreement: the share of its weights that the consensus kept, from 0 to 1.
        slashed: stake taken, as a fine or otherwise.
    """

    address: Address
    behaviour: str
    weight_agreement: float | None
    earned: Units
    slashed: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class HunterSummary:
    """Faults that it proved on chain, and what it got for them."""

    address: Address
    proofs: int
    bounty: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class RootSummary:
    """The finalised state root at the start of a round, and how many of the honest nodes computed it."""

    round: Round
    root: Hash32
    nodes_agreeing: int
    nodes_total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GasSummary:
    """Gas that the transactions of one contract function used."""

    median: int
    max: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountingSummary:
    """Tokens that the contracts hold, and what they owe to somebody; equal to the unit."""

    token_balance: Units
    accounted: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadSummary:
    """Size of a published update on the wire."""

    median: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DevnetReport:
    """The whole document."""

    version: int = REPORT_VERSION
    run: RunSummary
    loss: LossSummary
    miners: tuple[MinerSummary, ...]
    validators: tuple[ValidatorSummary, ...]
    hunters: tuple[HunterSummary, ...]
    roots: tuple[RootSummary, ...]
    gas: Mapping[str, GasSummary]
    accounting: AccountingSummary
    payload_bytes: PayloadSummary

    def to_json(self) -> str:
        """Indented JSON, keys in the order of the fields."""
        return to_json(self)

    def write(self, path: Path) -> None:
        """Writes the file whole or not at all.

        Raises:
            UnwritableOutput: it can't be written.
        """
        write_atomically(path, self.to_json().encode())


def to_json(report: object) -> str:
    """A report of dataclasses as indented JSON, by the rules that the module names."""
    return json.dumps(_encode(report, None), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def summarise_gas(used: Iterable[tuple[str, int]]) -> dict[str, GasSummary]:
    """From (function, gas) of each transaction, sorted by function."""
    by_function: dict[str, list[int]] = {}
    for function, gas in used:
        by_function.setdefault(function, []).append(gas)
    return {
        function: GasSummary(median=median_low(gas), max=max(gas), count=len(gas))
        for function, gas in sorted(by_function.items())
    }


def summarise_payloads(sizes: Sequence[int]) -> PayloadSummary:
    """From the size of each payload; 0 if there was none."""
    return PayloadSummary(median=median_low(sizes) if sizes else 0)


def _encode(value: object, hint: object) -> object:
    if hint is Units:
        return str(value)
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type):
        hints = get_type_hints(type(value))
        return {f.name: _encode(getattr(value, f.name), hints[f.name]) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _encode(item, None) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_encode(item, None) for item in value]
    return value
