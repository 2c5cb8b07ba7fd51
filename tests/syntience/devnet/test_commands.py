"""The command lines of the players."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from protocol.ids import Epoch
from syntience.devnet.commands import Scene, command_of, how_to_go_on, process_of
from syntience.devnet.players import cast_guest
from tests.specs import tokens
from tests.syntience.devnet.stage import CHEAT, FIRST, HONEST, HUNTER, PLAYERS

SCENE = Scene(
    folder=Path("/runs/one"),
    run_file=Path("/runs/one/run.json"),
    rpc_url="http://127.0.0.1:8545",
    dataset=Path("/sets/text"),
    last_epoch=Epoch(3),
)


def value(command: tuple[str, ...], flag: str) -> str:
    return command[command.index(flag) + 1]


def test_command_of__an_honest_miner__is_what_an_operator_types() -> None:
    command = command_of(HONEST, SCENE)
    assert command[1:5] == ("-m", "syntience", "miner", "run")
    assert value(command, "--run") == "/runs/one/run.json"
    assert value(command, "--keystore") == "/runs/one/miner-1/operator.json"
    assert value(command, "--state") == "/runs/one/miner-1/state"
    assert value(command, "--listen-port") == str(HONEST.port)
    assert value(command, "--last-epoch") == "3"
    assert "--behaviour" not in command


def test_command_of__a_start__is_handed_to_everybody_but_the_guest() -> None:
    started = replace(SCENE, start=Path("/models/one"))
    for player in PLAYERS:
        assert value(command_of(player, started), "--start") == "/models/one"
        assert "--start" not in command_of(player, SCENE)
    guest = cast_guest(PLAYERS, seed=7)
    lines = how_to_go_on(PLAYERS, guest, started, stake=tokens(1), anvil=["anvil"]).splitlines()
    assert "--start" not in lines[-1]


def test_command_of__a_cheat__names_its_behaviour() -> None:
    assert value(command_of(CHEAT, SCENE), "--behaviour") == "wrong-data"


def test_command_of__disputes__is_said_to_honest_hunters_alone() -> None:
    disputed = replace(SCENE, disputes=True)
    false = replace(HUNTER, behaviour="false-game")
    assert "--disputes" in command_of(HUNTER, disputed)
    assert "--disputes" not in command_of(HUNTER, SCENE)
    assert "--disputes" not in command_of(FIRST, disputed)
    assert "--disputes" not in command_of(false, disputed)
    assert value(command_of(false, disputed), "--behaviour") == "false-game"


def test_command_of__forever__has_no_last_epoch() -> None:
    assert "--last-epoch" not in command_of(FIRST, SCENE, forever=True)


def test_process_of__anybody__computes_with_one_thread() -> None:
    process = process_of(HUNTER, SCENE)
    assert process.name == "hunter-1"
    assert process.environment["OMP_NUM_THREADS"] == "1"
    assert process.log_file == Path("/runs/one/hunter-1/log.txt")


def test_how_to_go_on__a_kept_run__starts_chain_validators_and_a_newcomer() -> None:
    guest = cast_guest(PLAYERS, seed=7)
    text = how_to_go_on(PLAYERS, guest, SCENE, stake=tokens(200), anvil=["anvil", "--state", "a b"])
    lines = text.splitlines()
    assert "anvil --state 'a b'" in lines
    roles = [line.split(" -m syntience ")[1].split()[0] for line in lines if " run --run" in line]
    assert roles == ["validator", "validator", "miner", "miner", "hunter", "miner"]
    (deposit,) = [line for line in lines if " stake deposit " in line]
    assert "--role miner --amount 200 " in deposit
    assert "/runs/one/miner-3/owner.json" in deposit
    assert "--data" not in lines[-1]
