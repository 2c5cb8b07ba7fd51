"""What a validator tells the world about a round: seeds, losses and ratings, for anyone to replay.

Floats travel as the hexadecimal form of their exact bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from protocol import canonical, record
from protocol.errors import Rejected
from protocol.ids import Address, Epoch, Hash32, Round
from scoring.book import ScoreBook
from scoring.evaluation import Evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerReport:
    """One miner after a round. Floats in hexadecimal.

    Attributes:
        ordinal: LossRating, mean - 3 sigma.
        mu: the proof-of-computation average, before the luck margin.
        score: the peer score of the epoch so far.
        barred: the fault that bars it from pay in this epoch, or "".
    """

    miner: Address
    ordinal: str
    mu: str
    score: str
    barred: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LossReport:
    """The losses that one evaluation measured, in nats per token, hexadecimal."""

    miner: Address
    rand_before: str
    rand_after: str
    own_before: str
    own_after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundReport:
    """A validator's report of one round.

    Attributes:
        beacon: the evaluation beacon that all draws come from; zero for a void round.
        heldout_loss: of the model at the end of the round.
        random: data set indices of D_rand.
    """

    round: Round
    epoch: Epoch
    validator: Address
    beacon: Hash32
    heldout_loss: str
    random: tuple[int, ...]
    losses: tuple[LossReport, ...]
    peers: tuple[PeerReport, ...]

    def to_bytes(self) -> bytes:
        """Canonical JSON."""
        return canonical.dumps(record.to_json(self))

    @classmethod
    def from_bytes(cls, data: bytes) -> RoundReport:
        """Strict inverse of `to_bytes`; raises `Rejected`."""
        report = record.from_json(cls, canonical.loads(data))
        floats = [report.heldout_loss]
        for loss in report.losses:
            floats += [loss.rand_before, loss.rand_after, loss.own_before, loss.own_after]
        for peer in report.peers:
            floats += [peer.ordinal, peer.mu, peer.score]
        if not all(_is_exact(text) for text in floats):
            raise Rejected("report: not a hexadecimal float")
        return report


def losses_of(evaluations: Sequence[Evaluation]) -> tuple[LossReport, ...]:
    """The measured losses as reported."""
    return tuple(
        LossReport(
            miner=each.miner,
            rand_before=each.rand_before.hex(),
            rand_after=each.rand_after.hex(),
            own_before=each.own_before.hex(),
            own_after=each.own_after.hex(),
        )
        for each in evaluations
    )


def peers_of(book: ScoreBook) -> tuple[PeerReport, ...]:
    """Every known miner as the book stands."""
    return tuple(
        PeerReport(
            miner=miner,
            ordinal=record_.rating.ordinal.hex(),
            mu=record_.computation.mean.hex(),
            score=book.score(miner).total.hex(),
            barred=str(record_.barred or ""),
        )
        for miner, record_ in sorted(book.miners.items())
    )


def _is_exact(text: str) -> bool:
    """Whether it is the one spelling of a float that `float.hex` gives."""
    try:
        return float.fromhex(text).hex() == text
    except (ValueError, OverflowError):
        return False
