"""A devnet's players and facts for tests, made up but of the right form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from protocol.ids import Address, Epoch, Hash32, Round
from protocol.submission import BlobRef
from scoring.report import AverageReport, PeerReport, RatingReport, RoundReport, bits
from syntience.devnet.boards import Boards
from syntience.devnet.picture import Picture
from syntience.devnet.players import Part, Player, cast_players
from syntience.devnet.settings import DevnetSettings
from tests.scoring.reports import REPORT
from transport.client import PeerClient
from transport.store import FolderStore
from validator.shelf import REPORT as REPORT_PART
from validator.shelf import locator, round_topic


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
    return replace(
        REPORT,
        round=Round(round_),
        validator=validator.account,
        heldout_loss=bits(heldout),
        peers=peers,
    )


def peer(miner: Address, *, ordinal: float = 1.0, mu: float = 0.5, barred: str = "") -> PeerReport:
    """What a report says of a miner."""
    return PeerReport(
        miner=miner,
        rating=RatingReport(mu=bits(ordinal), sigma=bits(0.0)),
        computation=AverageReport(mean=bits(mu), count=1),
        improvement=AverageReport(mean=bits(0.0), count=0),
        strikes=0,
        last_evaluated=Round(1),
        accepted=1,
        barred=barred,
        score=bits(0.0),
    )


class FakeBoards:
    """The nodes' boards by endpoint and topic; stands in for a client."""

    def __init__(self) -> None:
        self.records: dict[tuple[str, str], list[bytes]] = {}
        self.blobs: dict[Hash32, bytes] = {}
        self.asked: list[tuple[str, str]] = []
        self.silent: set[str] = set()

    def put(self, player: Player, topic: str, record: bytes) -> None:
        self.records.setdefault((player.endpoint, topic), []).append(record)

    def put_report(self, player: Player, report: RoundReport) -> None:
        data = report.to_bytes()
        self.blobs[report.digest] = data
        ref = BlobRef(digest=report.digest, size=len(data))
        self.put(player, round_topic(report.round), locator({REPORT_PART: ref}))

    async def fetch_blob(self, ref: BlobRef, mirrors: Sequence[str], store: FolderStore) -> None:
        assert ref.digest in self.blobs

    def get(self, digest: Hash32) -> bytes | None:
        return self.blobs.get(digest)

    async def fetch_records(self, endpoint: str, topic: str) -> list[bytes]:
        from transport.errors import PeerUnavailable

        self.asked.append((endpoint, topic))
        if endpoint in self.silent:
            raise PeerUnavailable("no answer")
        return self.records.get((endpoint, topic), [])


def boards_of(nodes: FakeBoards) -> Boards:
    """What is read of these nodes; they stand in for the store too."""
    return Boards(cast(PeerClient, nodes), PLAYERS, cast(FolderStore, nodes))
