"""Names, keys and ports of those who take part."""

from __future__ import annotations

import stat
from pathlib import Path

from ledger.keys import load_key_file
from syntience.devnet.players import PASSWORD, Part, cast_players, files_of, write_key_files
from tests.syntience.devnet.stage import PLAYERS, settings


def test_cast_players__a_devnet__has_everybody_once() -> None:
    players = cast_players(settings(miners=2, cheats=("copier", "noise")))
    assert [player.name for player in players] == [
        "miner-1", "miner-2", "miner-3", "miner-4", "validator-1", "validator-2", "hunter-1",
    ]  # fmt: skip
    behaviours = [player.behaviour for player in players if player.part is Part.MINER]
    assert behaviours == ["honest", "honest", "copier", "noise"]
    assert len({player.port for player in players}) == len(players)
    keys = {account for player in players for account in (player.account, player.operator)}
    assert len(keys) == 2 * len(players) - 1  # a hunter has one key


def test_cast_players__rogues__come_after_the_honest_of_their_part() -> None:
    players = cast_players(settings(rogue_validators=("overpay",), rogue_hunters=("false-game",)))
    assert [(player.name, player.behaviour) for player in players[2:]] == [
        ("validator-1", "honest"),
        ("validator-2", "honest"),
        ("validator-3", "overpay"),
        ("hunter-1", "honest"),
        ("hunter-2", "false-game"),
    ]


def test_cast_players__the_same_seed__gives_the_same_keys() -> None:
    again = cast_players(settings())
    other = cast_players(settings(seed=8))
    assert [player.operator for player in again] == [player.operator for player in PLAYERS]
    assert not {player.account for player in other} & {player.account for player in PLAYERS}


def test_write_key_files__everybody__can_open_theirs(tmp_path: Path) -> None:
    write_key_files(PLAYERS, tmp_path, tmp_path / "password.txt")
    assert (tmp_path / "password.txt").read_text().strip() == PASSWORD
    assert stat.S_IMODE((tmp_path / "password.txt").stat().st_mode) == 0o600
    for player in PLAYERS:
        files = files_of(player, tmp_path)
        assert load_key_file(files.operator_key, PASSWORD).address == player.operator
        if player.part is Part.HUNTER:
            assert not files.owner_key.exists()
        else:
            assert load_key_file(files.owner_key, PASSWORD).address == player.account


def test_player__shown__keeps_its_keys_to_itself() -> None:
    assert PLAYERS[0].operator_key.hex() not in repr(PLAYERS[0])
    assert str(PLAYERS[0].operator_key) not in repr(PLAYERS[0])
