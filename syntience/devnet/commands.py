"""How the players' processes are started: the commands of the real program, as an operator types them."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from protocol.ids import Epoch, Units
from syntience.amounts import exact_tokens
from syntience.anvil import HOST
from syntience.devnet.players import Part, Player, files_of
from syntience.devnet.presets import MOST_MINERS
from syntience.supervisor import ProcessSpec, child_environment

PASSWORD_FILE = "password.txt"  # noqa: S105 - a file's name
_PROGRAM = (sys.executable, "-m", "syntience")
_FEW_ARENAS = {"MALLOC_ARENA_MAX": "2"}
"""A dozen processes share one machine: glibc would keep freed memory once for each thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What all processes of a run share.

    Attributes:
        folder: the run's.
        dataset: the prepared data set.
        start: the model of round 1, where it comes from a folder.
        last_epoch: after it everybody stops.
        disputes: whether honest hunters open games about work that they can't reproduce.
    """

    folder: Path
    run_file: Path
    rpc_url: str
    dataset: Path
    last_epoch: Epoch
    disputes: bool = False
    start: Path | None = None


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
    command = [*_bare_command(player, scene), "--data", str(scene.dataset)]
    if scene.start is not None:
        command += ["--start", str(scene.start)]
    if not forever:
        command += ["--last-epoch", str(scene.last_epoch)]
    if not player.is_honest:
        command += ["--behaviour", player.behaviour]
    if scene.disputes and player.part is Part.HUNTER and player.is_honest:
        command += ["--disputes", "--audits", str(MOST_MINERS)]
    return tuple(command)


def _bare_command(player: Player, scene: Scene) -> list[str]:
    """What nobody can do without."""
    files = files_of(player, scene.folder)
    return [
        *_PROGRAM, player.part.value, "run",
        "--run", str(scene.run_file),
        "--rpc", scene.rpc_url,
        "--keystore", str(files.operator_key),
        "--password-file", str(scene.folder / PASSWORD_FILE),
        "--state", str(files.state),
        "--listen-host", HOST,
        "--listen-port", str(player.port),
        "--allow-private-peers",
    ]  # fmt: skip


def _deposit_command(player: Player, scene: Scene, stake: Units) -> list[str]:
    files = files_of(player, scene.folder)
    return [
        *_PROGRAM, "stake", "deposit",
        "--run", str(scene.run_file),
        "--rpc", scene.rpc_url,
        "--role", player.part.value,
        "--amount", exact_tokens(stake),
        "--endpoint", player.endpoint,
        "--keystore", str(files.owner_key),
        "--password-file", str(scene.folder / PASSWORD_FILE),
        "--operator-keystore", str(files.operator_key),
        "--operator-password-file", str(scene.folder / PASSWORD_FILE),
    ]  # fmt: skip


def how_to_go_on(
    players: Iterable[Player], guest: Player, scene: Scene, *, stake: Units, anvil: Sequence[str]
) -> str:
    """What to type to bring a kept run back to life, and to join it, then or while it runs.

    Args:
        players: whoever took part.
        guest: a miner that has keys and money and did not take part.
        stake: what the guest may deposit.
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
    lines += [
        "",
        "# A newcomer: deposit and register, then mine from the next epoch on. It has only the run file and fetches",
        "# data set and model from the validators. This works while the devnet runs, too.",
        shlex.join(_deposit_command(guest, scene, stake)),
        shlex.join(_bare_command(guest, scene)),
    ]
    return "\n".join(lines) + "\n"
