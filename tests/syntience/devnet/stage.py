"""A devnet's players and facts for tests, made up but of the right form."""

from __future__ import annotations

from pathlib import Path

from protocol.ids import Address, Epoch, Hash32, Round
from syntience.devnet.picture import Picture
from syntience.devnet.players import Part, Player, cast_players
from syntience.devnet.settings import DevnetSettings
from validator.report import PeerReport, RoundReport

BEACON = Hash32(bytes([9]) * 32)


def settings(folder: Path = Path("work"), **changes: object) -> DevnetSettings:
    """A small devnet: one honest miner, one cheat that a hunter proves."""
    chosen: dict[str, object] = {
        "miners": 1,
        "validators": 2,
        "hunters": 1,
        "epochs": 2,
        "rounds_per_epoch": 2,
        "cheats": ("wrong-data",),
        "seed": 7,
        "model": "tiny",
        "work": folder,
        **changes,
    }
    return DevnetSettings(**chosen)  # type: ignore[arg-type]


PLAYERS = cast_players(settings())
HONEST, CHEAT, FIRST, SECOND, HUNTER = PLAYERS


def picture(**changes: object) -> Picture:
    """A run of which nothing has happened yet."""
    chosen: dict[str, object] = {
        "block": 100,
        "time": 1_000,
        "round": Round(1),
        "epoch": Epoch(1),
        "final_roots": {},
        "settled": frozenset(),
        "void": frozenset(),
        "earned": {},
        "claimed": {},
        "slashed": {},
        "weights": {},
        "agreement": {},
        "verdicts": (),
        "excluded": frozenset(),
        "gone": frozenset(),
        **changes,
    }
    return Picture(**chosen)  # type: ignore[arg-type]


def report(
    validator: Player, round_: int, *, heldout: float = 6.0, peers: tuple[PeerReport, ...] = ()
) -> RoundReport:
    """A validator's report of a round."""
    assert validator.part is Part.VALIDATOR
    return RoundReport(
        round=Round(round_),
        epoch=Epoch(1),
        validator=validator.account,
        beacon=BEACON,
        heldout_loss=heldout.hex(),
        random=(),
        losses=(),
        peers=peers,
    )


def peer(miner: Address, *, ordinal: float = 1.0, mu: float = 0.5, barred: str = "") -> PeerReport:
    """What a report says of a miner."""
    return PeerReport(
        miner=miner, ordinal=ordinal.hex(), mu=mu.hex(), score=(0.0).hex(), barred=barred
    )


class FakeBoards:
    """The nodes' boards by endpoint and topic; stands in for a client."""

    def __init__(self) -> None:
        self.records: dict[tuple[str, str], list[bytes]] = {}
        self.asked: list[tuple[str, str]] = []
        self.silent: set[str] = set()

    def put(self, player: Player, topic: str, record: bytes) -> None:
        self.records.setdefault((player.endpoint, topic), []).append(record)

    async def fetch_records(self, endpoint: str, topic: str) -> list[bytes]:
        from transport.errors import PeerUnavailable

        self.asked.append((endpoint, topic))
        if endpoint in self.silent:
            raise PeerUnavailable("no answer")
        return self.records.get((endpoint, topic), [])
