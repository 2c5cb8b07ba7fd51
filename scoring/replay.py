"""Recomputes what a validator reported: its draws, its book round by round, its weights; to the bit, on any machine.

    book before + RoundReport.observation() --observe_round--> book after == the reported one
    book after the epoch + slots + slashed  --weights-->       the reported vector

Losses are taken as reported here; what they come from takes a model and is recomputed elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from protocol import record
from protocol.assignment import assigned_samples
from protocol.canonical import Json
from protocol.ids import ZERO32, Address, Epoch, Hash32, Round
from scoring.book import ScoreBook
from scoring.checks import Fault
from scoring.errors import Contradiction
from scoring.report import (
    EpochReport,
    RatingReport,
    RoundReport,
    book_digest,
    peers_of,
)
from scoring.sampling import evaluation_draw, own_samples, random_samples, sample_peers
from scoring.uniqueness import copies, overlap_threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Something reported that is not what follows.

    Attributes:
        where: the round or epoch.
        miner: whose; None if it is nobody's in particular.
        factor: what differs, such as ``rating.mu`` or ``accepted``.
        reported, recomputed: both values as they are published; "" for none.
    """

    where: str
    miner: Address | None
    factor: str
    reported: str
    recomputed: str

    def __str__(self) -> str:
        whose = "" if self.miner is None else f"{self.miner} "
        return (
            f"{self.where}: {whose}{self.factor}: reported {_shown(self.reported)}, "
            f"recomputed {_shown(self.recomputed)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What replaying came to.

    Attributes:
        book: as recomputed after the last round that was replayed.
        rounds: that were recomputed to equal bits, in order.
        epochs: whose weights were.
        differences: of the first round that differs, and of weights; what follows a difference was not replayed.
    """

    book: ScoreBook
    rounds: tuple[Round, ...]
    epochs: tuple[Epoch, ...]
    differences: tuple[Difference, ...]


def replay(
    reports: Sequence[RoundReport], before: ScoreBook, weights: Sequence[EpochReport] = ()
) -> Replay:
    """Recomputes a chain of reports of one validator, and the weights of the epochs that end in it.

    Args:
        reports: ascending by round, each beginning with the book that the one before ended with.
        before: the book before the first of them; `ScoreBook.empty` for a validator's first report.
        weights: epoch reports; those taken from a book outside of the chain are left alone.
    """
    book, rounds, differences = before, list[Round](), list[Difference]()
    books: dict[Hash32, ScoreBook] = {}
    for report in reports:
        differences += _kin(report, reports[0])
        after, found = replay_round(report, book)
        differences += found
        if differences or after is None:
            break
        book = after
        rounds.append(report.round)
        books[report.book_after] = book
    epochs = []
    for epoch in weights:
        if epoch.book in books:
            found = replay_weights(epoch, books[epoch.book])
            differences += found
            if not found:
                epochs.append(epoch.epoch)
    return Replay(
        book=book, rounds=tuple(rounds), epochs=tuple(epochs), differences=tuple(differences)
    )


def replay_round(
    report: RoundReport, before: ScoreBook
) -> tuple[ScoreBook | None, tuple[Difference, ...]]:
    """The book after a round as its report's observation makes it of the book before; None if nothing follows."""
    where = f"round {report.round}"
    start: dict[str, Json] = {
        "book before": book_digest(before).hex(),
        "round before": before.round,
    }
    told: dict[str, Json] = {
        "book before": report.book_before.hex(),
        "round before": report.previous,
    }
    found = list(_compared(where, None, told, start))
    if found:
        return None, tuple(found)
    found += _draws(report, before)
    found += _copies(report)
    try:
        after = before.observe_round(report.observation())
    except Contradiction as error:
        impossible = Difference(
            where=where, miner=None, factor="observation", reported=str(error), recomputed=""
        )
        return None, (*found, impossible)
    told = {
        "null rating": record.to_json(report.null),
        "rounds of the epoch": report.rounds,
    }
    ours: dict[str, Json] = {
        "null rating": record.to_json(RatingReport.of(after.null)),
        "rounds of the epoch": after.rounds,
    }
    found += _compared(where, None, told, ours)
    reported = {peer.miner: record.to_json(peer) for peer in report.peers}
    recomputed = {peer.miner: record.to_json(peer) for peer in peers_of(after)}
    for miner in sorted({*reported, *recomputed}):
        found += _compared(where, miner, reported.get(miner, {}), recomputed.get(miner, {}))
    told, ours = {"book after": report.book_after.hex()}, {"book after": book_digest(after).hex()}
    found += _compared(where, None, told, ours)
    return after, tuple(found)


def replay_weights(report: EpochReport, book: ScoreBook) -> tuple[Difference, ...]:
    """Whether the weights of an epoch follow from the book."""
    weights = book.weights(
        report.epoch,
        slots={each.slot: each.miner for each in report.slots},
        slot_count=len(report.weights),
        slashed=report.slashed,
    )
    holders = {each.slot: each.miner for each in report.slots}
    return tuple(
        Difference(
            where=f"epoch {report.epoch}",
            miner=next((holders[holder] for holder in holders if holder == slot), None),
            factor="weight",
            reported=str(told),
            recomputed=str(ours),
        )
        for slot, (told, ours) in enumerate(zip(report.weights, weights, strict=True))
        if told != ours
    )


def own_batch(report: RoundReport, miner: Address) -> list[int]:
    """Data set indices of a peer's own evaluated batch: all that it was assigned, ascending."""
    assigned = _assigned(report, miner)
    draw = evaluation_draw(report.evaluation, report.validator)
    return own_samples(assigned, miner=miner, count=len(assigned), draw=draw)


def _kin(report: RoundReport, first: RoundReport) -> Iterator[Difference]:
    """All reports of a chain are one validator's, of one run and spec."""

    def origin(of: RoundReport) -> dict[str, Json]:
        return {"run": of.run.hex(), "spec": of.spec_hash.hex(), "validator": of.validator}

    return _compared(f"round {report.round}", None, origin(report), origin(first))


def _draws(report: RoundReport, before: ScoreBook) -> Iterator[Difference]:
    """Whom the validator had to evaluate, and on what."""
    if report.void or ZERO32 in (report.assignment, report.evaluation):
        expected: dict[str, Json] = {"sampled peers": [], "D_rand": []}
    else:
        draw = evaluation_draw(report.evaluation, report.validator)
        assigned = {sample for each in report.slots for sample in _assigned(report, each.miner)}
        peers = sample_peers(
            report.accepted,
            ordinals=before.ordinals(),
            last_evaluated=before.last_evaluated(),
            round_=report.round,
            count=report.scoring.peers_per_round,
            draw=draw,
        )
        random = random_samples(
            train_samples=report.train_samples,
            assigned=assigned,
            count=report.scoring.rand_samples,
            draw=draw,
        )
        expected = {"sampled peers": peers, "D_rand": random}
    told: dict[str, Json] = {
        "sampled peers": [each.miner for each in report.losses],
        "D_rand": list(report.random),
    }
    return _compared(f"round {report.round}", None, told, expected)


def _assigned(report: RoundReport, miner: Address) -> tuple[int, ...]:
    return assigned_samples(
        run=report.run,
        round_=report.round,
        beacon=report.assignment,
        miner=miner,
        count=report.samples_per_round,
        train_samples=report.train_samples,
    )


def _copies(report: RoundReport) -> Iterator[Difference]:
    """Who is a copy follows from overlaps and losses."""
    shares = report.overlap_shares()
    gains = {each.miner: each.evaluation().own_score for each in report.losses}
    found = copies(shares, gains, threshold=overlap_threshold(list(shares.values())))
    told = {each.miner for each in report.faults if Fault.OVERLAP.value in each.faults}
    for miner in sorted(found ^ told):
        yield Difference(
            where=f"round {report.round}",
            miner=miner,
            factor="overlap fault",
            reported=str(miner in told),
            recomputed=str(miner in found),
        )


def _compared(
    where: str, miner: Address | None, told: Mapping[str, Json], ours: Mapping[str, Json]
) -> Iterator[Difference]:
    """The leaves that differ, named by the path to them."""
    for name in sorted({*told, *ours}):
        one, other = told.get(name), ours.get(name)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            for deeper in _compared(where, miner, one, other):
                yield Difference(
                    where=where,
                    miner=miner,
                    factor=f"{name}.{deeper.factor}",
                    reported=deeper.reported,
                    recomputed=deeper.recomputed,
                )
        elif one != other:
            yield Difference(
                where=where, miner=miner, factor=name, reported=_text(one), recomputed=_text(other)
            )


def _text(value: Json) -> str:
    return "" if value is None else str(value)


def _shown(value: str) -> str:
    """A float with its decimal form."""
    if value.lstrip("-").startswith("0x") and "p" in value:
        return f"{value} ({float.fromhex(value):.6g})"
    return value or "nothing"
