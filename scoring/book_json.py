"""The score book as canonical JSON and back, to the bit.

Floats are written as C99 hexadecimal strings, so a restored book equals the stored one exactly and
a validator that restarts goes on as if it had not. The rules are not stored: they are the run's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from protocol import canonical
from protocol.canonical import Json
from protocol.errors import Rejected
from protocol.ids import Epoch, Round, to_address, to_hash32
from scoring.book import MinerRecord, ScoreBook
from scoring.checks import Fault
from scoring.computation import SignAverage
from scoring.errors import BookUnreadable
from scoring.rating import Rating
from scoring.rules import Rules
from scoring.uniqueness import Origin, PayloadMemory

_VERSION = 1


def dump_book(book: ScoreBook) -> bytes:
    """The book's canonical bytes."""
    return canonical.dumps(
        {
            "version": _VERSION,
            "round": book.round,
            "epoch": book.epoch,
            "rounds": book.rounds,
            "null": _rating(book.null),
            "miners": {miner: _record(record) for miner, record in book.miners.items()},
            "payloads": {
                root.hex(): [origin.round, origin.miner]
                for root, origin in book.payloads.seen.items()
            },
        }
    )


def load_book(data: bytes, rules: Rules) -> ScoreBook:
    """Inverse of `dump_book`; raises `BookUnreadable`."""
    try:
        top = _fields(
            canonical.loads(data),
            ("version", "round", "epoch", "rounds", "null", "miners", "payloads"),
        )
        if top["version"] != _VERSION:
            raise ValueError(f"version {top['version']} is not {_VERSION}")
        return ScoreBook(
            rules=rules,
            null=_to_rating(top["null"]),
            round=Round(_whole(top["round"])),
            epoch=Epoch(_whole(top["epoch"])),
            rounds=_whole(top["rounds"]),
            miners={
                to_address(miner): _to_record(record)
                for miner, record in _mapping(top["miners"]).items()
            },
            payloads=PayloadMemory(
                seen={
                    to_hash32(root): _to_origin(origin)
                    for root, origin in _mapping(top["payloads"]).items()
                }
            ),
        )
    except (Rejected, ValueError, OverflowError) as error:
        raise BookUnreadable(str(error)) from error


def _rating(rating: Rating) -> Json:
    return {"mu": rating.mu.hex(), "sigma": rating.sigma.hex()}


def _to_rating(value: Json) -> Rating:
    parts = _fields(value, ("mu", "sigma"))
    return Rating(mu=_real(parts["mu"]), sigma=_real(parts["sigma"]))


def _average(average: SignAverage) -> Json:
    return {"mean": average.mean.hex(), "count": average.count}


def _to_average(value: Json) -> SignAverage:
    parts = _fields(value, ("mean", "count"))
    return SignAverage(mean=_real(parts["mean"]), count=_whole(parts["count"]))


def _record(record: MinerRecord) -> Json:
    return {
        "rating": _rating(record.rating),
        "computation": _average(record.computation),
        "improvement": _average(record.improvement),
        "strikes": record.strikes,
        "last_evaluated": record.last_evaluated,
        "accepted": record.accepted,
        "barred": record.barred.value if record.barred is not None else None,
    }


def _to_record(value: Json) -> MinerRecord:
    parts = _fields(
        value,
        (
            "rating",
            "computation",
            "improvement",
            "strikes",
            "last_evaluated",
            "accepted",
            "barred",
        ),
    )
    barred = parts["barred"]
    if not isinstance(barred, str | None):
        raise ValueError("barred is the name of a fault or null")
    return MinerRecord(
        rating=_to_rating(parts["rating"]),
        computation=_to_average(parts["computation"]),
        improvement=_to_average(parts["improvement"]),
        strikes=_whole(parts["strikes"]),
        last_evaluated=Round(_whole(parts["last_evaluated"])),
        accepted=_whole(parts["accepted"]),
        barred=None if barred is None else Fault(barred),
    )


def _to_origin(value: Json) -> Origin:
    if not isinstance(value, Sequence) or len(value) != 2 or not isinstance(value[1], str):
        raise ValueError("a payload's origin is a round and a miner")
    return Origin(round=Round(_whole(value[0])), miner=to_address(value[1]))


def _mapping(value: Json) -> Mapping[str, Json]:
    if not isinstance(value, Mapping):
        raise ValueError("expected an object")
    return value


def _fields(value: Json, names: Sequence[str]) -> Mapping[str, Json]:
    found = _mapping(value)
    if found.keys() != set(names):
        raise ValueError(f"expected the fields {', '.join(names)}")
    return found


def _whole(value: Json) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("expected a whole number")
    return value


def _real(value: Json) -> float:
    if not isinstance(value, str):
        raise ValueError("expected a hexadecimal float")
    number = float.fromhex(value)
    if not math.isfinite(number):
        raise ValueError("expected a finite float")
    return number
