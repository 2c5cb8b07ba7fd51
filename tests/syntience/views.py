"""A devnet's view and report for tests, as they look near the end of a run."""

from __future__ import annotations

from protocol.ids import Address, Hash32, Round, to_address
from syntience.report import (
    AccountingSummary,
    DevnetReport,
    HunterSummary,
    LossSummary,
    MinerSummary,
    RootSummary,
    RunSummary,
    ValidatorSummary,
    summarise_gas,
    summarise_payloads,
)
from syntience.table import DevnetView, EventLine
from tests.specs import tokens


def address(number: int) -> Address:
    return to_address(number.to_bytes(20, "big"))


def miner(
    number: int, behaviour: str = "honest", *, earned: float = 150.25, slashed: float = 0
) -> MinerSummary:
    return MinerSummary(
        address=address(number),
        behaviour=behaviour,
        rating=18.25 if behaviour == "honest" else None,
        mu=0.0123 if behaviour == "honest" else None,
        weight=61_234 if behaviour == "honest" else 0,
        earned=tokens(earned),
        claimed=tokens(earned),
        slashed=tokens(slashed),
        status="excluded" if slashed else "active",
    )


MINERS = (
    miner(1),
    miner(2),
    miner(3, "copier", earned=0),
    miner(4, "wrong-data", earned=0, slashed=50),
)
VALIDATORS = (
    ValidatorSummary(
        address=address(11),
        behaviour="honest",
        weight_agreement=0.987,
        earned=tokens(400),
        slashed=tokens(0),
    ),
)
HUNTERS = (HunterSummary(address=address(21), proofs=2, bounty=tokens(21)),)
ROOTS = (
    RootSummary(round=Round(1), root=Hash32(bytes([1] * 32)), nodes_agreeing=8, nodes_total=8),
    RootSummary(round=Round(2), root=Hash32(bytes([2] * 32)), nodes_agreeing=7, nodes_total=8),
)
HELDOUT = (6.93, 6.5, 6.2, 5.9, 5.56)
VIEW = DevnetView(
    title="Syntience devnet",
    round=5,
    rounds=9,
    epoch=2,
    epochs=3,
    phase="train",
    phase_left_s=7,
    elapsed_s=83.4,
    heldout=HELDOUT,
    miners=MINERS,
    validators=VALIDATORS,
    hunters=HUNTERS,
    roots=ROOTS,
    events=(
        EventLine(kind="info", text="round 1: 4 submissions accepted"),
        EventLine(kind="verdict", text="wrong data: 0x0000…0004 lost 50 SYN [in round 2]"),
    ),
    nodes_up=8,
    nodes_total=8,
)
REPORT = DevnetReport(
    run=RunSummary(
        params={"miners": 4, "cheat": ["copier"], "seed": None}, epochs=3, rounds=9, wall_s=101.5
    ),
    loss=LossSummary(heldout=HELDOUT),
    miners=MINERS,
    validators=VALIDATORS,
    hunters=HUNTERS,
    roots=ROOTS,
    gas=summarise_gas([("commit", 60_000), ("attest", 9), ("commit", 50_000), ("commit", 40_000)]),
    accounting=AccountingSummary(token_balance=tokens(10**9), accounted=tokens(10**9)),
    payload_bytes=summarise_payloads([11, 9, 10]),
)
