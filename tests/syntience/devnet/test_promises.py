"""A run's own promises: each one breaks on its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ledger.contracts.verdicts import Fault
from protocol.ids import Epoch, Round, Units
from syntience.devnet.picture import Verdict
from syntience.devnet.promises import Evidence, hold_promises
from syntience.report import (
    AccountingSummary,
    DevnetReport,
    HunterSummary,
    PayloadSummary,
    RootSummary,
)
from tests.specs import some_hash, tokens
from tests.syntience.views import REPORT, address, miner

HUNTER = address(21)
VERDICT = Verdict(
    kind=Fault.WRONG_DATA, round=Round(2), miner=address(4), hunter=HUNTER, bounty=tokens(21)
)
GOOD = replace(
    REPORT,
    run=replace(REPORT.run, epochs=3, rounds=2),
    roots=tuple(
        RootSummary(round=Round(number), root=some_hash("r"), nodes_agreeing=8, nodes_total=8)
        for number in (1, 2, 3)
    ),
    hunters=(HunterSummary(address=HUNTER, proofs=1, bounty=tokens(21)),),
    payload_bytes=PayloadSummary(median=1_000),
)
KEPT = Evidence(
    settled=frozenset({Epoch(1), Epoch(2), Epoch(3)}),
    unclaimed=0,
    epoch_losses=(6.9, 6.4, 6.0, 5.7),
    verdicts=(VERDICT,),
    hunters=1,
    gained=tokens(21),
    penalised=Units(0),
    parameters=430_000,
)


def broken(report: DevnetReport = GOOD, evidence: Evidence = KEPT) -> list[str]:
    return [promise.text for promise in hold_promises(report, evidence) if not promise.holds]


def test_hold_promises__a_good_run__are_all_kept() -> None:
    assert broken() == []
    assert len(hold_promises(GOOD, KEPT)) == 10


@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        (replace(KEPT, settled=frozenset({Epoch(1)})), "1 of 3 epochs settled"),
        (replace(KEPT, unclaimed=1), "not all of it"),
        (replace(KEPT, epoch_losses=(6.9, 6.4, 6.5, 5.7)), "6.400 → 6.500"),
        (replace(KEPT, epoch_losses=(6.9, 6.4, float("nan"), 5.7)), "→ ? →"),
        (replace(KEPT, penalised=tokens(10)), "validators 10.00 SYN"),
        (replace(KEPT, verdicts=()), "was not convicted"),
        (replace(KEPT, gained=tokens(20)), "bounties did not arrive"),
        (replace(KEPT, parameters=20_000), "80 times smaller"),
    ],
)
def test_hold_promises__one_thing_missing__breaks_one(evidence: Evidence, said: str) -> None:
    (text,) = broken(evidence=evidence)
    assert said in text


def test_hold_promises__an_honest_miner_without_reward__breaks() -> None:
    poor = replace(GOOD, miners=(miner(1, earned=0), *GOOD.miners[1:]))
    assert "1 of 2 honest miners claimed" in broken(poor)[0]


def test_hold_promises__a_miner_slashed_without_a_provable_fault__breaks() -> None:
    slashed = replace(GOOD, miners=(*GOOD.miners, miner(5, "late", earned=0, slashed=1)))
    assert "1 miners without a provable fault" in broken(slashed)[0]


def test_hold_promises__a_cheat_that_earns__breaks() -> None:
    rich = replace(GOOD, miners=(*GOOD.miners[:2], miner(3, "copier", earned=10), GOOD.miners[3]))
    assert "6.7% of an honest miner's reward (copier)" in broken(rich)[0]
    working = replace(GOOD, miners=(*GOOD.miners, miner(6, "scaled5", earned=150)))
    assert broken(working) == []


def test_hold_promises__one_node_with_another_root__breaks() -> None:
    alone = replace(GOOD.roots[1], nodes_agreeing=7)
    assert "2 of 3 rounds" in broken(replace(GOOD, roots=(GOOD.roots[0], alone, GOOD.roots[2])))[0]
    assert "1 rounds without a final root" in broken(replace(GOOD, roots=GOOD.roots[1:]))[0]


def test_hold_promises__a_unit_too_much__breaks() -> None:
    books = AccountingSummary(token_balance=Units(11), accounted=Units(10))
    assert "+1 units more" in broken(replace(GOOD, accounting=books))[0]


def test_hold_promises__no_hunter__expects_no_verdict() -> None:
    nobody = replace(KEPT, hunters=0, verdicts=(), gained=Units(0))
    assert broken(replace(GOOD, hunters=()), nobody) == []
