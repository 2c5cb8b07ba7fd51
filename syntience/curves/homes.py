"""Whose curves there are: the nodes' state folders, one by one or all of a devnet's.

STATE                 a miner's or validator's --state
DEVNET/<name>/state   what `devnet run --keep` leaves
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from node.curves import FILE, Curves, EvaluationRow, TrainingRow
from protocol.ids import Address, Hash32
from syntience.errors import DataMissing
from syntience.report import to_json

REPORT_VERSION = 1
_STATE = "state"
_DIGITS = 8
"""Of an account's address, where two homes have one name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeCurves:
    """One node's rows, oldest first. A miner has only the first kind, a validator only the second.

    Attributes:
        name: of its folder, as `home_name` shortens it.
        spec_hash: of the run's spec, when the node was started last.
    """

    name: str
    account: Address
    spec_hash: Hash32
    model: str
    training: tuple[TrainingRow, ...]
    evaluation: tuple[EvaluationRow, ...]

    @property
    def rows(self) -> tuple[TrainingRow | EvaluationRow, ...]:
        """All of them."""
        return (*self.training, *self.evaluation)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingReport:
    """One run as some of its nodes saw it. All homes have rows; miners come first, then validators, each by name."""

    version: int = REPORT_VERSION
    run: Hash32
    homes: tuple[HomeCurves, ...]

    @property
    def miners(self) -> tuple[HomeCurves, ...]:
        """Those that trained."""
        return tuple(home for home in self.homes if home.training)

    @property
    def validators(self) -> tuple[HomeCurves, ...]:
        """Those that evaluated."""
        return tuple(home for home in self.homes if home.evaluation)

    def to_json(self) -> str:
        """Indented JSON; hashes are 0x-hex, a number that is not finite is null."""
        return to_json(self)


def read_report(places: Sequence[Path]) -> TrainingReport:
    """The curves in these folders.

    Raises:
        DataMissing: a folder holds none, no round was over yet, or they are of different runs.
        StoreDamaged: one can't be read.
    """
    found = sorted(
        (home for folder in find_homes(places) for home in _read(folder)),
        key=lambda each: (not each[1].training, _natural(each[1].name)),
    )
    if not found:
        raise DataMissing(
            f"no round has been recorded in {_listed(places)} yet",
            "try again when the first round is over",
        )
    runs = sorted({run for run, _ in found})
    if len(runs) > 1:
        raise DataMissing(
            f"these nodes worked in {len(runs)} different runs "
            f"({', '.join('0x' + run.hex()[:_DIGITS] for run in runs)})",
            "report each run by itself",
        )
    return TrainingReport(run=runs[0], homes=_with_own_names([home for _, home in found]))


def find_homes(places: Iterable[Path]) -> list[Path]:
    """The folders that hold curves: these, or what lies in them."""
    homes: dict[Path, None] = {}
    for place in places:
        inside = [place, *sorted(place.glob("*")), *sorted(place.glob(f"*/{_STATE}"))]
        found = [folder.resolve() for folder in inside if (folder / FILE).is_file()]
        if not found:
            raise DataMissing(
                f"there are no curves in {place}",
                "name the --state folder of a miner or validator that has run, or the folder that "
                "`syntience devnet run --keep` left",
            )
        homes |= dict.fromkeys(found)
    return list(homes)


def home_name(folder: Path) -> str:
    """What a state folder is called: by the folder around it where it is just `state`."""
    folder = folder.resolve()
    return (folder.parent if folder.name == _STATE else folder).name or _STATE


def _read(folder: Path) -> list[tuple[Hash32, HomeCurves]]:
    """The run and the rows of a home; nothing if it has no rows (a hunter's, or a new node's)."""
    curves = Curves.open_to_read(folder / FILE)
    try:
        about = curves.about()
        home = HomeCurves(
            name=home_name(folder),
            account=about.account,
            spec_hash=about.spec_hash,
            model=about.model,
            training=curves.training(),
            evaluation=curves.evaluation(),
        )
    finally:
        curves.close()
    return [(about.run, home)] if home.training or home.evaluation else []


def _with_own_names(homes: Sequence[HomeCurves]) -> tuple[HomeCurves, ...]:
    """Names that differ, by the accounts where the folders' don't."""
    names = [home.name for home in homes]
    return tuple(
        home
        if names.count(home.name) == 1
        else replace(home, name=f"{home.name}-{home.account[2 : 2 + _DIGITS]}")
        for home in homes
    )


def _natural(name: str) -> list[str | int]:
    """Orders `miner-2` before `miner-10`: words and numbers in turn."""
    parts = re.split(r"(\d+)", name)
    return [int(part) if place % 2 else part for place, part in enumerate(parts)]


def _listed(places: Iterable[Path]) -> str:
    return ", ".join(map(str, places))
