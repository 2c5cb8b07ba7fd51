"""How the players' processes are started: the commands of the real program, as an operator types them."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from protocol.ids import Epoch
from syntience.anvil import HOST
from syntience.devnet.players import Part, Player, files_of
from syntience.supervisor import ProcessSpec, child_environment

PASSWORD_FILE = "password.txt"  # noqa: S105 - a file's name
_PROGRAM = (sys.executable, "-m", "syntience")
_NEWCOMER_PORT = 7700
_FEW_ARENAS = {"MALLOC_ARENA_MAX": "2"}
"""A dozen processes share one machine: glibc would keep freed memory once for each thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What all processes of a run share.

    Attributes:
        folder: the run's.
        dataset: the prepared data set.
        last_epoch: after it everybody stops.
    """

    folder: Path
    run_file: Path
    rpc_url: str
    dataset: Path
    last_epoch: Epoch


def process_of(player: Player, scene: Scene) -> ProcessSpec:
    """A player's process."""
    return ProcessSpec(
        name=player.name,
        command=command_of(player, scene),
        log_file=files_of(player, scene.folder).log,
        environment=child_environment(os.environ, _FEW_ARENAS),
        folder=scene.folder,
    )


def command_of(player: Player, scene: Scene, *, forever: bool = False) -> tuple[str, ...]:
    """The command line of a player's process; `forever` leaves out the last epoch."""
    files = files_of(player, scene.folder)
    command = [
        *_PROGRAM, player.part.value, "run",
        "--run", str(scene.run_file),
        "--rpc", scene.rpc_url,
        "--keystore", str(files.operator_key),
        "--password-file", str(scene.folder / PASSWORD_FILE),
        "--state", str(files.state),
        "--data", str(scene.dataset),
        "--listen-host", HOST,
        "--listen-port", str(player.port),
        "--allow-private-peers",
    ]  # fmt: skip
    if not forever:
        command += ["--last-epoch", str(scene.last_epoch)]
    if not player.is_honest:
        command += ["--behaviour", player.behaviour]
    return tuple(command)


def how_to_go_on(players: Iterable[Player], scene: Scene, *, anvil: Sequence[str]) -> str:
    """What to type to bring a kept run back to life and to join it.

    Args:
        players: whoever took part.
        anvil: the command of the chain, with its saved state.
    """
    lines = [
        "# The chain, as the devnet left it. Rounds that passed meanwhile are void.",
        shlex.join(anvil),
        "",
        "# Everybody who took part; the validators first, they keep the run going.",
    ]
    ordered = sorted(players, key=lambda player: player.part is not Part.VALIDATOR)
    lines += [shlex.join(command_of(player, scene, forever=True)) for player in ordered]
    program = shlex.join(_PROGRAM)
    run = shlex.join(["--run", str(scene.run_file), "--rpc", scene.rpc_url])
    lines += [
        "",
        "# A newcomer: two keys, tokens from the deployer, a stake, a miner. `--help` tells of each.",
        f"{program} keys new --keystore my/owner.json",
        f"{program} keys new --keystore my/operator.json",
        f"{program} stake deposit {run} --keystore my/owner.json --help",
        f"{program} miner run {run} --keystore my/operator.json --state my/state "
        f"--listen-port {_NEWCOMER_PORT} --allow-private-peers",
    ]
    return "\n".join(lines) + "\n"
