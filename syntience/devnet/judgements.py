"""What a run with rogue validators or games promises: false settlements fall, committees judge right. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ledger.contracts.committee import Ruling
from ledger.contracts.disputes import GameOutcome
from protocol.ids import Address, Epoch
from syntience.devnet.promise import Promise
from syntience.devnet.trials import Posting, Trial
from syntience.table import show_tokens

OVERPAYING = "overpay"
"""The validator that posts settlements which pay itself too much."""
FALSE_VOTING = "false-vote"
"""The validator that votes against what it found."""
FALSE_ACCUSING = "false-game"
"""The hunter that opens a game about honest work."""
FAKED = frozenset({"noise", "zero", "lazy"})
"""Miners whose accepted work is plainly not the training: a game about it convicts them."""
DISPUTABLE = FAKED | {"copier", "scaled2", "scaled5", "scaled1000"}
"""Miners that a game may convict."""


def overpayment_struck(postings: Sequence[Posting], *, last: Epoch) -> Promise:
    """Every settlement of an overpayer fell, its bond was paid, and the honest one became final.

    Args:
        postings: the overpayers'.
        last: the run's last epoch; what is posted for a later one is not waited for.
    """
    posted = [posting for posting in postings if posting.epoch <= last]
    broken = next((text for posting in posted for text in [_missing(posting)] if text), "")
    if not posted:
        broken = "none was posted"
    epochs = ", ".join(str(posting.epoch) for posting in posted)
    return Promise(
        holds=not broken,
        text=f"overpaying settlement: {broken}"
        if broken
        else f"overpaying settlement: challenged, struck, bond paid, honest one final (epochs {epochs})",
    )


def fake_convicted(behaviour: str, miner: Address, trials: Sequence[Trial]) -> Promise:
    """A game about faked work was bisected, a majority voted guilty, and the verdict was carried out.

    Args:
        behaviour: the kind of cheat.
        miner: its account.
        trials: the run's.
    """
    mine = [trial for trial in trials if trial.defendant == miner]
    won = [trial for trial in mine if trial.outcome is GameOutcome.CHALLENGER_WON]
    if not won:
        why = "no game was opened" if not mine else "no game about it was won"
        return Promise(holds=False, text=f"{behaviour} ({miner}) was not convicted: {why}")
    trial = won[0]
    holds = trial.ruling is Ruling.GUILTY and trial.lists > 0 and trial.taken > 0
    return Promise(
        holds=holds and trial.bounty > 0,
        text=f"{behaviour}: a game about round {trial.round} bisected, {_count(trial)} voted guilty, "
        f"{show_tokens(trial.taken)} SYN slashed, bounty {show_tokens(trial.bounty)}",
    )


def innocent_acquitted(challenger: Address, trials: Sequence[Trial]) -> Promise:
    """A game about honest work ended without a slash, and its challenger lost the bond."""
    mine = [trial for trial in trials if trial.challenger == challenger]
    if not mine:
        return Promise(holds=False, text=f"{FALSE_ACCUSING}: no game was opened")
    trial = mine[0]
    lost = trial.outcome is GameOutcome.DEFENDANT_WON and not trial.to_challenger
    holds = lost and trial.ruling is Ruling.NOT_GUILTY and not trial.taken
    return Promise(
        holds=holds,
        text=f"{FALSE_ACCUSING}: {_count(trial)} voted guilty, nobody slashed, the challenger's bond gone, "
        f"{show_tokens(trial.to_defendant)} SYN of it to the defendant"
        if holds
        else f"{FALSE_ACCUSING}: the game about round {trial.round} ended as {trial.outcome.name.lower()}",
    )


def liars_fined(liars: frozenset[Address], trials: Sequence[Trial]) -> Promise:
    """Whoever voted against a majority paid for it, and nobody else did."""
    closed = [trial for trial in trials if trial.ruling in (Ruling.GUILTY, Ruling.NOT_GUILTY)]
    right = all(trial.outvoted == trial.fined == liars for trial in closed)
    return Promise(
        holds=bool(closed) and right,
        text=f"{len(liars)} false voters were outvoted and fined in {len(closed)} games"
        if closed and right
        else f"of {len(closed)} votes not all false voters, or others, were fined",
    )


def _count(trial: Trial) -> str:
    return f"{len(trial.guilty)} of {len(trial.guilty | trial.not_guilty)}"


def _missing(posting: Posting) -> str:
    """What did not happen to an overpaying settlement; empty if all did."""
    if not posting.challenged:
        return f"not challenged in epoch {posting.epoch}"
    if not posting.struck:
        return f"challenged and not struck in epoch {posting.epoch}"
    if not posting.bounty or posting.bounty + posting.burned != posting.bond:
        return f"its bond of epoch {posting.epoch} was not paid out"
    if not posting.made_good:
        return f"no honest one became final in epoch {posting.epoch}"
    return ""
