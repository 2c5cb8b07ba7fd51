"""What the operator of a devnet chooses, checked before anything starts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from syntience.devnet.presets import MOST_MINERS, PRESET_NAMES
from syntience.errors import ConfigError

MOST_VALIDATORS = 32
NO_CHEATS = "none"
_MOST_HUNTERS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class DevnetSettings:
    """A devnet to run.

    Attributes:
        miners: honest ones; the cheats come on top.
        cheats: kinds of cheating miners, one miner each.
        rogue_validators, rogue_hunters: the same of validators and hunters, on top of the honest ones.
        disputes: whether the honest hunters open games about work that they can't reproduce.
        seed: fixes keys and the model's first weights.
        model: name of a preset.
        changes: other values of the spec, ``part.field=value`` (see `syntience.devnet.changes`).
        start: a folder with the model to start from, in place of the preset's; None starts from the seed.
        data: the user's own text, None for the default one.
        work: where data sets are cached and runs have their folders.
        keep: leave the run's folder behind, with the chain's state.
        kill_every_s: mean seconds between two SIGKILLs of honest processes; None leaves them alone.
        json, svg: where to write the report and a picture of the table.
    """

    miners: int
    validators: int
    hunters: int
    epochs: int
    rounds_per_epoch: int
    cheats: tuple[str, ...]
    seed: int
    model: str
    work: Path
    rogue_validators: tuple[str, ...] = ()
    rogue_hunters: tuple[str, ...] = ()
    disputes: bool = False
    changes: tuple[str, ...] = ()
    start: Path | None = None
    data: Path | None = None
    keep: bool = False
    kill_every_s: int | None = None
    json: Path | None = None
    svg: Path | None = None

    def __post_init__(self) -> None:
        _within("--miners", self.miners, 1, MOST_MINERS - len(self.cheats))
        _within("--validators", self.validators, 1, MOST_VALIDATORS - len(self.rogue_validators))
        _within("--hunters", self.hunters, 0, _MOST_HUNTERS - len(self.rogue_hunters))
        _within("--epochs", self.epochs, 1, 1_000)
        _within("--rounds-per-epoch", self.rounds_per_epoch, 1, 1_000)
        if self.kill_every_s is not None:
            _within("--kill-every", self.kill_every_s, 1, 3_600)
        _within("--seed", self.seed, 0, (1 << 63) - 1)
        if self.start is not None and any(change.startswith("model.") for change in self.changes):
            raise ConfigError("--set changes the model to start from", "leave model.… out of --set")
        if self.model not in PRESET_NAMES:
            raise ConfigError(
                f"there is no model {self.model!r}", f"choose --model {' or '.join(PRESET_NAMES)}"
            )

    @property
    def rounds(self) -> int:
        """Rounds in all."""
        return self.epochs * self.rounds_per_epoch

    @property
    def all_cheats(self) -> tuple[str, ...]:
        """Every kind of cheat that takes part, whatever it plays."""
        return (*self.cheats, *self.rogue_validators, *self.rogue_hunters)

    @property
    def all_validators(self) -> int:
        """The honest ones and the others."""
        return self.validators + len(self.rogue_validators)

    @property
    def all_hunters(self) -> int:
        """The honest ones and the others."""
        return self.hunters + len(self.rogue_hunters)


def parse_cheats(text: str, known: Collection[str]) -> tuple[str, ...]:
    """`--cheat KIND[,KIND…]`; a kind may stand more than once, `none` stands alone.

    Raises:
        ConfigError: an unknown kind.
    """
    kinds = tuple(kind.strip() for kind in text.split(",") if kind.strip())
    if kinds == (NO_CHEATS,):
        return ()
    for kind in kinds:
        if kind not in known:
            raise ConfigError(
                f"there is no cheat {kind!r}",
                f"choose --cheat {NO_CHEATS}, or some of {','.join(known)}",
            )
    return kinds


def _within(flag: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ConfigError(f"{flag} {value} is out of range", f"give {low} to {high}")
