"""What happens, in lines to read."""

from __future__ import annotations

import pytest

from ledger.contracts.verdicts import Fault
from ledger.event_types import (
    BountyPaid,
    Claimed,
    Committed,
    Convicted,
    EpochVoided,
    Event,
    Excluded,
    MissingRevealPenalised,
    PauseStarted,
    RootFinalised,
    SettlementFinalised,
)
from protocol.ids import Address, Epoch, Hash32, Round, Slot
from syntience.devnet.game_story import GameStory
from syntience.devnet.names import Names
from syntience.devnet.story import tell
from syntience.table import EventLine
from tests.specs import SPEC, some_hash, tokens
from tests.syntience.devnet.stage import CHEAT, FIRST, HONEST, HUNTER, PLAYERS
from tests.syntience.views import address

PLACE = {"block": 1, "log_index": 0, "tx_hash": some_hash("tx")}
NAMES = Names(PLAYERS)


def lines(*events: Event) -> list[EventLine]:
    return tell(events, NAMES, accepted={Round(3): (5, 8)}, games=GameStory(NAMES, SPEC.inner))


def claimed(account: Address, amount: float) -> Claimed:
    return Claimed(account=account, epoch=Epoch(1), payout=account, amount=tokens(amount), **PLACE)  # type: ignore[arg-type]


EVENTS: list[tuple[Event, str, str]] = [
    (
        Convicted(
            round=Round(2), offender=CHEAT.account, hunter=HUNTER.account, kind=Fault.WRONG_DATA,
            taken=tokens(100), bounty=tokens(40), **PLACE,
        ),
        "verdict",
        "wrong data of miner-2 (wrong-data) in round 2 proven: 100.00 SYN slashed, 40.00 held for hunter-1",
    ),
    (
        BountyPaid(
            round=Round(2), offender=CHEAT.account, hunter=HUNTER.account, amount=tokens(40), **PLACE
        ),
        "verdict",
        "hunter-1 got the bounty of 40.00 SYN for miner-2 (wrong-data) in round 2",
    ),
    (
        PauseStarted(timestamp=5, block_number=1, **PLACE),
        "warning",
        "the run is paused: its clocks stand still",
    ),
    (
        Excluded(account=CHEAT.account, faults=1, until_epoch=Epoch(5), **PLACE),
        "verdict",
        "miner-2 (wrong-data) is excluded from the next epoch on",
    ),
    (
        RootFinalised(
            round=Round(3), root=Hash32(bytes([0xAB]) * 32), stake=tokens(2), total_stake=tokens(3), **PLACE
        ),
        "info",
        "round 3: 5 of 8 submissions held by a majority, model 0xabababababab…",
    ),
    (
        SettlementFinalised(
            epoch=Epoch(1), attempt=1, root=some_hash("root"), amount=tokens(998.5), rollover=tokens(0), **PLACE
        ),
        "reward",
        "epoch 1 settled: 998.50 SYN",
    ),
    (
        EpochVoided(epoch=Epoch(2), rollover=tokens(1), **PLACE),
        "warning",
        "epoch 2 is void: its pot rolls over",
    ),
    (
        MissingRevealPenalised(
            epoch=Epoch(1), account=FIRST.account, slot=Slot(0), taken=tokens(10), **PLACE
        ),
        "warning",
        "epoch 1: validator-1 did not reveal and lost 10.00 SYN",
    ),
]  # type: ignore[arg-type, unused-ignore]  # fmt: skip


@pytest.mark.parametrize(("event", "kind", "text"), EVENTS)
def test_tell__something_that_matters__is_one_line(event: Event, kind: str, text: str) -> None:
    assert lines(event) == [EventLine(kind=kind, text=text)]


def test_tell__what_always_happens__says_nothing() -> None:
    commit = Committed(round=Round(1), operator=HONEST.operator, digest=some_hash("d"), **PLACE)  # type: ignore[arg-type]
    again = Excluded(account=CHEAT.account, faults=2, until_epoch=Epoch(5), **PLACE)  # type: ignore[arg-type]
    assert lines(commit, again) == []


def test_tell__several_claims__are_one_line() -> None:
    told = lines(claimed(HONEST.account, 1), claimed(FIRST.account, 2.5))
    assert told == [EventLine(kind="reward", text="2 claimed 3.50 SYN in all")]


def test_names__a_stranger__is_a_short_address() -> None:
    assert NAMES.of(HONEST.operator) == "miner-1"
    assert NAMES.of(address(5)) == "0x000000…0005"
