"""A devnet from start to end: set the stage, found the run, start everybody, look on, close.

Whatever ends it, everything that it started ends too. Its folder stays when it failed, because the
logs are there, or when that was asked for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ledger.connection import Connection
from ledger.keys import LocalSigner
from ledger.outbox import Outbox
from protocol.ids import Epoch, Round
from protocol.spec import RunSpec
from syntience.anvil import HARD_FORK, HOST, Anvil, AnvilOptions
from syntience.devnet.changes import changed_preset, changed_run
from syntience.devnet.closing import Closer, Ending
from syntience.devnet.commands import PASSWORD_FILE, Scene, how_to_go_on, process_of
from syntience.devnet.disturber import Disturber
from syntience.devnet.launch import Founder, Founding, stake_of
from syntience.devnet.performance import Performance
from syntience.devnet.place import logging_to, run_folder, usable_cores
from syntience.devnet.players import Player, cast_guest, cast_players, write_key_files
from syntience.devnet.presets import Crowd, Preset, build_spec, preset_named
from syntience.devnet.screen import empty_view
from syntience.devnet.settings import DevnetSettings
from syntience.devnet.stage import Stage, lead_s, set_stage
from syntience.devnet.watch import Onlooker, open_reader
from syntience.display import Display
from syntience.files import require_writable, write_atomically
from syntience.supervisor import Supervisor
from syntience.toolchain import find_anvil
from transport.client import PeerClient
from transport.limits import MIB, ClientLimits
from transport.store import FolderStore

_CHAIN_STATE = "chain.json"
_GO_ON = "go-on.txt"
_VISITED_BYTES = 64 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A devnet that ran to its end. `folder` is gone unless it was kept."""

    ending: Ending
    folder: Path
    kept: bool


async def run_devnet(settings: DevnetSettings, *, cache_dir: Path, display: Display) -> Finished:
    """Runs a whole devnet.

    Args:
        cache_dir: where the default text is kept.
        display: shows the table; entered already.

    Raises:
        OperatorError: something is missing, or a process failed for good.
    """
    for output in (settings.json, settings.svg):
        if output is not None:
            require_writable(output)
    preset = changed_preset(preset_named(settings.model), settings.changes)
    with run_folder(settings.work, keep=settings.keep) as place:
        with logging_to(place.path / "devnet.log"):
            ending = await _Devnet(settings, preset, display, place.path).run(cache_dir)
        place.keep = settings.keep or not ending.kept
    if settings.json is not None:
        ending.report.write(settings.json)
    return Finished(ending=ending, folder=place.path, kept=place.keep)


class _Devnet:
    """One run in the making."""

    def __init__(
        self, settings: DevnetSettings, preset: Preset, display: Display, folder: Path
    ) -> None:
        self._settings = settings
        self._preset = preset
        self._display = display
        self._folder = folder
        self._began = time.monotonic()
        self._cores = usable_cores()

    async def run(self, cache_dir: Path) -> Ending:
        settings = self._settings
        self._say("preparing the data set")
        stage = await asyncio.to_thread(
            set_stage,
            self._preset,
            seed=settings.seed,
            start=settings.start,
            text=settings.data,
            cache_dir=cache_dir,
            work=settings.work,
        )
        players = cast_players(settings)
        spec = self._spec(stage, len(players))
        guests = (cast_guest(players, seed=settings.seed),) if settings.keep else ()
        write_key_files((*players, *guests), self._folder, self._folder / PASSWORD_FILE)
        self._say("starting the chain")
        async with AsyncExitStack() as stack:
            anvil = await stack.enter_async_context(
                Anvil.start(log_file=self._folder / "anvil.log", options=self._anvil_options())
            )
            connection = await stack.enter_async_context(await Connection.open(anvil.rpc_url))
            supervisor = await stack.enter_async_context(Supervisor())
            deployer = LocalSigner(anvil.accounts[0].private_key)
            outbox = await stack.enter_async_context(
                await Outbox.open(self._folder / "deployer.db", connection, deployer)
            )
            founder = Founder(
                connection, players, guests=guests, folder=self._folder, outbox=outbox
            )
            self._say("deploying the contracts")
            lead = lead_s(stage, processes=len(players), cores=self._cores)
            genesis_time = (await connection.head()).time + lead
            chain = replace(spec.chain, genesis_time=genesis_time)
            founding = await founder.deploy(replace(spec, chain=chain))
            scene = self._scene(founding, anvil, stage)
            for player in players:
                supervisor.start(process_of(player, scene))
            self._say("staking and registering")
            await founder.enrol(founding)
            for guest in guests:
                self._write_go_on(players, guest, founding, scene, anvil)
            onlooker = await stack.enter_async_context(
                self._onlooker(founding, players, connection)
            )
            onlooker.note("info", f"run file {founding.path}, RPC {anvil.rpc_url}")
            disturber = self._disturber(supervisor, players, onlooker)
            performance = Performance(
                settings=settings,
                stage=stage,
                players=players,
                onlooker=onlooker,
                supervisor=supervisor,
                anvil=anvil,
                connection=connection,
                display=self._display,
                began=self._began,
                disturber=disturber,
            )
            await performance.attend()
            closer = Closer(
                settings=settings,
                stage=stage,
                players=players,
                founding=founding,
                onlooker=onlooker,
                connection=connection,
                kills=disturber.kills if disturber else (),
            )
            assert onlooker.picture is not None
            wall_s = time.monotonic() - self._began
            return await closer.close(onlooker.picture, wall_s=wall_s)

    def _spec(self, stage: Stage, processes: int) -> RunSpec:
        """All of it but the genesis time, which is the chain's."""
        crowd = Crowd(
            miners=self._settings.miners + len(self._settings.cheats),
            processes=processes,
            cores=self._cores,
        )
        spec = build_spec(
            stage.preset,
            crowd,
            data=stage.data,
            genesis_root=stage.genesis_root,
            genesis_time=0,
            rounds_per_epoch=self._settings.rounds_per_epoch,
        )
        return changed_run(spec, self._settings.changes)

    def _say(self, phase: str) -> None:
        elapsed_s = time.monotonic() - self._began
        self._display.update(empty_view(self._settings, phase, elapsed_s=elapsed_s))

    @asynccontextmanager
    async def _onlooker(
        self, founding: Founding, players: Sequence[Player], connection: Connection
    ) -> AsyncIterator[Onlooker]:
        reader = await open_reader(connection, founding, self._folder)
        try:
            async with PeerClient(ClientLimits(allow_private=True), name="onlooker") as client:
                yield Onlooker(
                    founding,
                    players,
                    reader=reader,
                    client=client,
                    store=FolderStore(self._folder / "visited", _VISITED_BYTES),
                    last_epoch=Epoch(self._settings.epochs),
                )
        finally:
            reader.close()

    def _disturber(
        self, supervisor: Supervisor, players: Sequence[Player], onlooker: Onlooker
    ) -> Disturber | None:
        if self._settings.kill_every_s is None:
            return None
        return Disturber(
            supervisor,
            players,
            every_s=self._settings.kill_every_s,
            seed=self._settings.seed,
            round_now=lambda: onlooker.picture.round if onlooker.picture else Round(0),
        )

    def _scene(self, founding: Founding, anvil: Anvil, stage: Stage) -> Scene:
        return Scene(
            folder=self._folder,
            run_file=founding.path,
            rpc_url=anvil.rpc_url,
            dataset=stage.dataset,
            last_epoch=Epoch(self._settings.epochs),
            disputes=self._settings.disputes,
            start=self._settings.start,
        )

    def _anvil_options(self) -> AnvilOptions:
        state = self._folder / _CHAIN_STATE if self._settings.keep else None
        return AnvilOptions(state_file=state)

    def _write_go_on(
        self,
        players: Sequence[Player],
        guest: Player,
        founding: Founding,
        scene: Scene,
        anvil: Anvil,
    ) -> None:
        command = [
            str(find_anvil()), "--host", HOST, "--port", str(anvil.port), "--hardfork", HARD_FORK,
            "--block-time", "1", "--state", str(self._folder / _CHAIN_STATE),
        ]  # fmt: skip
        text = how_to_go_on(
            players,
            guest,
            scene,
            stake=stake_of(guest, founding.run_file.spec.chain),
            anvil=command,
        )
        write_atomically(self._folder / _GO_ON, text.encode())
