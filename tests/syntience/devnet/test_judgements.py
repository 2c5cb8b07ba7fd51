"""What a run with rogues promises: each thing that fails is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ledger.contracts.committee import Ruling
from ledger.contracts.disputes import GameOutcome
from protocol.ids import Epoch, Round, Units
from syntience.devnet.judgements import (
    fake_convicted,
    innocent_acquitted,
    liars_fined,
    overpayment_struck,
)
from syntience.devnet.trials import Posting, Trial
from tests.specs import some_hash, tokens
from tests.syntience.views import address

STRUCK = Posting(
    epoch=Epoch(1),
    poster=address(11),
    bond=tokens(50),
    challenged=True,
    struck=True,
    bounty=tokens(20),
    burned=tokens(30),
    made_good=True,
)
LAST = Epoch(3)


def test_overpayment_struck__all_fell__holds() -> None:
    again = replace(STRUCK, epoch=Epoch(3))
    open_yet = replace(STRUCK, epoch=Epoch(4), struck=False, made_good=False)
    promise = overpayment_struck([STRUCK, again, open_yet], last=LAST)
    assert promise.holds
    assert promise.text.endswith("struck, bond paid, honest one final (epochs 1, 3)")


@pytest.mark.parametrize(
    ("posting", "said"),
    [
        (replace(STRUCK, challenged=False, struck=False), "not challenged in epoch 1"),
        (replace(STRUCK, struck=False), "challenged and not struck"),
        (replace(STRUCK, bounty=Units(0)), "was not paid out"),
        (replace(STRUCK, burned=tokens(29)), "was not paid out"),
        (replace(STRUCK, made_good=False), "no honest one became final"),
    ],
)
def test_overpayment_struck__one_thing_missing__is_said(posting: Posting, said: str) -> None:
    promise = overpayment_struck([STRUCK, posting], last=LAST)
    assert not promise.holds
    assert said in promise.text


def test_overpayment_struck__none_posted__is_broken() -> None:
    promise = overpayment_struck([], last=LAST)
    assert (promise.holds, promise.text) == (False, "overpaying settlement: none was posted")


TRIAL = Trial(
    game=some_hash("game"),
    defendant=address(3),
    challenger=address(21),
    round=Round(2),
    lists=2,
    ruling=Ruling.GUILTY,
    guilty=frozenset({address(11), address(12), address(13)}),
    not_guilty=frozenset({address(14), address(15)}),
    fined=frozenset({address(14), address(15)}),
    taken=tokens(40),
    bounty=tokens(5),
    outcome=GameOutcome.CHALLENGER_WON,
    to_defendant=Units(0),
    to_challenger=tokens(10),
)
ACQUITTAL = replace(
    TRIAL,
    ruling=Ruling.NOT_GUILTY,
    guilty=TRIAL.not_guilty,
    not_guilty=TRIAL.guilty,
    taken=Units(0),
    bounty=Units(0),
    outcome=GameOutcome.DEFENDANT_WON,
    to_defendant=tokens(0.3),
    to_challenger=Units(0),
)
LIARS = TRIAL.not_guilty


def test_fake_convicted__a_majority__holds() -> None:
    lost = replace(TRIAL, outcome=GameOutcome.UNDECIDED)
    promise = fake_convicted("noise", address(3), [lost, TRIAL])
    assert promise.holds
    assert "3 of 5 voted guilty, 40.00 SYN slashed, bounty 5.00" in promise.text


@pytest.mark.parametrize(
    ("trials", "said"),
    [
        ([], "no game was opened"),
        ([replace(TRIAL, defendant=address(4))], "no game was opened"),
        ([ACQUITTAL], "no game about it was won"),
        ([replace(TRIAL, taken=Units(0))], "· SYN slashed"),
        ([replace(TRIAL, ruling=None)], "voted guilty"),
        ([replace(TRIAL, lists=0)], "voted guilty"),
    ],
)
def test_fake_convicted__one_thing_missing__is_said(trials: list[Trial], said: str) -> None:
    promise = fake_convicted("noise", address(3), trials)
    assert not promise.holds
    assert said in promise.text


def test_innocent_acquitted__bond_gone_and_nobody_slashed__holds() -> None:
    promise = innocent_acquitted(address(21), [ACQUITTAL])
    assert promise.holds
    assert "2 of 5 voted guilty, nobody slashed" in promise.text


@pytest.mark.parametrize(
    "trials", [[], [TRIAL], [replace(ACQUITTAL, outcome=GameOutcome.UNDECIDED)]]
)
def test_innocent_acquitted__anything_else__is_broken(trials: list[Trial]) -> None:
    assert not innocent_acquitted(address(21), trials).holds


def test_liars_fined__all_of_them_and_nobody_else__holds() -> None:
    assert liars_fined(LIARS, [TRIAL, ACQUITTAL]).holds
    assert not liars_fined(LIARS, []).holds
    assert not liars_fined(LIARS, [replace(TRIAL, fined=frozenset())]).holds
    assert not liars_fined(LIARS, [replace(TRIAL, fined=LIARS | {address(11)})]).holds
    assert not liars_fined(LIARS | {address(16)}, [TRIAL]).holds


def test_trial__unfined__until_everybody_outvoted_has_paid() -> None:
    assert not TRIAL.unfined
    assert replace(TRIAL, fined=frozenset({address(14)})).unfined
    assert not replace(TRIAL, ruling=None, fined=frozenset()).unfined
    assert not replace(TRIAL, ruling=Ruling.UNDECIDED, fined=frozenset()).unfined
