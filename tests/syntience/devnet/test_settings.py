"""What the operator chooses, and what is refused before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from syntience.devnet.settings import parse_cheats
from syntience.errors import ConfigError
from tests.syntience.devnet.stage import settings

KNOWN = ("copier", "noise")


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("none", ()),
        ("", ()),
        ("copier", ("copier",)),
        ("copier, noise,copier", ("copier", "noise", "copier")),
    ],
)
def test_parse_cheats__a_list__is_taken_in_order(text: str, kinds: tuple[str, ...]) -> None:
    assert parse_cheats(text, KNOWN) == kinds


@pytest.mark.parametrize("text", ["honest", "copier,nosie", "none,copier"])
def test_parse_cheats__an_unknown_kind__says_which_there_are(text: str) -> None:
    with pytest.raises(ConfigError, match="copier,noise"):
        parse_cheats(text, KNOWN)


@pytest.mark.parametrize(
    ("changes", "flag"),
    [
        ({"miners": 0}, "--miners"),
        ({"miners": 64}, "--miners"),
        ({"validators": 33}, "--validators"),
        ({"validators": 0}, "--validators"),
        ({"validators": 32, "rogue_validators": ("overpay",)}, "--validators"),
        ({"hunters": -1}, "--hunters"),
        ({"hunters": 16, "rogue_hunters": ("false-game",)}, "--hunters"),
        ({"epochs": 0}, "--epochs"),
        ({"rounds_per_epoch": 0}, "--rounds-per-epoch"),
        ({"seed": -1}, "--seed"),
        ({"model": "huge"}, "--model"),
        ({"start": Path("any"), "changes": ("model.layers=2",)}, "--set"),
    ],
)
def test_settings__out_of_range__name_the_flag(changes: dict[str, object], flag: str) -> None:
    with pytest.raises(ConfigError, match=flag):
        settings(**changes)
