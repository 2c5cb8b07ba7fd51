"""Who takes part in a devnet: names, keys and ports, fixed before the first process starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from ledger.keys import SCRYPT_COST_MINIMUM, LocalSigner, create_key_file
from protocol.hashing import keccak256
from protocol.ids import Address
from syntience.anvil import HOST
from syntience.devnet.settings import DevnetSettings
from syntience.ports import free_port
from syntience.report import HONEST

PASSWORD = "devnet"  # noqa: S105 - these keys are worth nothing anywhere else
_PORT_DRAWS = 100


class Part(StrEnum):
    """What a player plays; also the name of its command."""

    MINER = "miner"
    VALIDATOR = "validator"
    HUNTER = "hunter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Player:
    """One participant. A hunter has one key, which is its account and its operator.

    Attributes:
        behaviour: `HONEST` or a kind of cheat.
        owner, operator: the signers of the two keys.
        port: where its node serves.
    """

    part: Part
    number: int
    behaviour: str = HONEST
    port: int
    owner_key: bytes = field(repr=False)
    operator_key: bytes = field(repr=False)
    account: Address
    operator: Address

    @property
    def name(self) -> str:
        """Unique within the devnet."""
        return f"{self.part}-{self.number}"

    @property
    def endpoint(self) -> str:
        """Where its node serves, as others reach it."""
        return f"http://{HOST}:{self.port}"

    @property
    def is_honest(self) -> bool:
        """False for a cheat."""
        return self.behaviour == HONEST


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayerFiles:
    """Where a player's files lie."""

    folder: Path

    @property
    def owner_key(self) -> Path:
        """Key file of the owner."""
        return self.folder / "owner.json"

    @property
    def operator_key(self) -> Path:
        """Key file of the operator."""
        return self.folder / "operator.json"

    @property
    def state(self) -> Path:
        """The node's state."""
        return self.folder / "state"

    @property
    def log(self) -> Path:
        """What its process says."""
        return self.folder / "log.txt"


def cast_players(settings: DevnetSettings) -> tuple[Player, ...]:
    """All players: miners, validators, hunters, of each the honest ones first."""
    behaviours = {
        Part.MINER: [HONEST] * settings.miners + list(settings.cheats),
        Part.VALIDATOR: [HONEST] * settings.validators + list(settings.rogue_validators),
        Part.HUNTER: [HONEST] * settings.hunters + list(settings.rogue_hunters),
    }
    parts = [(part, behaviour) for part in Part for behaviour in behaviours[part]]
    ports = _free_ports(len(parts))
    numbers = dict.fromkeys(Part, 0)
    players = []
    for part, behaviour in parts:
        numbers[part] += 1
        players.append(_player(part, numbers[part], behaviour, next(ports), seed=settings.seed))
    return tuple(players)


def cast_guest(players: Sequence[Player], *, seed: int) -> Player:
    """A miner that has keys and tokens, but joins only if somebody lets it: after the run, or in the middle."""
    number = 1 + sum(player.part is Part.MINER for player in players)
    return _player(Part.MINER, number, HONEST, free_port(HOST), seed=seed)


def write_key_files(players: Sequence[Player], run_folder: Path, password_file: Path) -> None:
    """Writes everybody's key files, cheaply encrypted, and their password."""
    password_file.parent.mkdir(parents=True, exist_ok=True)
    password_file.touch(mode=0o600)
    password_file.write_text(PASSWORD + "\n")
    for player in players:
        files = files_of(player, run_folder)
        keys = {files.operator_key: player.operator_key}
        if player.account != player.operator:
            keys[files.owner_key] = player.owner_key
        for path, key in keys.items():
            create_key_file(path, PASSWORD, private_key=key, scrypt_cost=SCRYPT_COST_MINIMUM)


def files_of(player: Player, run_folder: Path) -> PlayerFiles:
    """A player's files in the run's folder."""
    return PlayerFiles(folder=run_folder / player.name)


def _player(part: Part, number: int, behaviour: str, port: int, *, seed: int) -> Player:
    operator_key = _key(seed, f"{part}-{number}", "operator")
    owner_key = operator_key if part is Part.HUNTER else _key(seed, f"{part}-{number}", "owner")
    return Player(
        part=part,
        number=number,
        behaviour=behaviour,
        port=port,
        owner_key=owner_key,
        operator_key=operator_key,
        account=LocalSigner(owner_key).address,
        operator=LocalSigner(operator_key).address,
    )


def _key(seed: int, name: str, purpose: str) -> bytes:
    return keccak256(f"syntience.devnet.key.v1/{seed}/{name}/{purpose}".encode())


def _free_ports(count: int) -> Iterator[int]:
    """Distinct ports that were free a moment ago."""
    found: dict[int, None] = {}
    for _ in range(_PORT_DRAWS + count):
        if len(found) == count:
            break
        found[free_port(HOST)] = None
    yield from found
