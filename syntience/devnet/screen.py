"""From what the onlooker knows to what the table shows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from protocol.clock import RoundClock
from protocol.ids import Epoch, Round
from syntience.devnet.picture import Picture
from syntience.devnet.players import Player
from syntience.devnet.settings import DevnetSettings
from syntience.devnet.summary import (
    heldout_losses,
    summarise_hunters,
    summarise_miners,
    summarise_roots,
    summarise_validators,
)
from syntience.devnet.watch import Onlooker
from syntience.supervisor import ProcessState, ProcessStatus
from syntience.table import DevnetView, EventLine

_UP = frozenset({ProcessState.RUNNING, ProcessState.DONE})


def title_of(settings: DevnetSettings) -> str:
    """What is being run."""
    parts = [
        _count(settings.miners, "miner"),
        _count(len(settings.all_cheats), "cheat"),
        _count(settings.validators, "validator"),
        _count(settings.hunters, "hunter"),
    ]
    shown = ", ".join(part for part in parts if part)
    return f"Syntience devnet: {shown}; model {settings.model}, seed {settings.seed}"


def empty_view(
    settings: DevnetSettings, phase: str, *, elapsed_s: float, events: Sequence[EventLine] = ()
) -> DevnetView:
    """Before there is a chain to look at."""
    return DevnetView(
        title=title_of(settings),
        round=0,
        rounds=settings.rounds,
        epoch=0,
        epochs=settings.epochs,
        phase=phase,
        phase_left_s=None,
        elapsed_s=elapsed_s,
        heldout=(),
        miners=(),
        validators=(),
        hunters=(),
        roots=(),
        events=tuple(events),
        nodes_up=0,
        nodes_total=settings.miners
        + settings.validators
        + settings.hunters
        + len(settings.all_cheats),
    )


def view_of(
    settings: DevnetSettings,
    players: Sequence[Player],
    onlooker: Onlooker,
    statuses: Sequence[ProcessStatus],
    *,
    first_loss: float,
    elapsed_s: float,
) -> DevnetView:
    """The table as of now."""
    picture, last = onlooker.picture, onlooker.last_round
    if picture is None:
        return empty_view(settings, "starting", elapsed_s=elapsed_s, events=onlooker.events)
    phase, left_s = phase_of(onlooker.clock, picture, last=last)
    return DevnetView(
        title=title_of(settings),
        round=min(picture.round, last),
        rounds=settings.rounds,
        epoch=min(picture.epoch, settings.epochs),
        epochs=settings.epochs,
        phase=phase,
        phase_left_s=left_s,
        elapsed_s=elapsed_s,
        heldout=tuple(
            loss
            for loss in heldout_losses(first_loss, onlooker.boards, last=last)
            if math.isfinite(loss)
        ),
        miners=summarise_miners(players, picture, onlooker.boards, last=last),
        validators=summarise_validators(players, picture),
        hunters=summarise_hunters(players, picture),
        roots=summarise_roots(players, picture, onlooker.boards, last=Round(last + 1)),
        events=tuple(onlooker.events),
        nodes_up=sum(status.state in _UP for status in statuses),
        nodes_total=len(players),
    )


def phase_of(clock: RoundClock, picture: Picture, *, last: Round) -> tuple[str, int | None]:
    """The window that is open, and the seconds until it closes."""
    round_, time = picture.round, picture.time
    if round_ == 0:
        return "starting", clock.start(Round(1)) - time
    if round_ > last:
        epoch = clock.epoch_of(last)
        return _after_the_end(clock, epoch, time, over=epoch in picture.settled | picture.void)
    ends = {
        "train": clock.put_opens(round_),
        "put": clock.put_deadline(round_),
        "publish": clock.publish_deadline(round_),
        "attest": clock.attest_deadline(round_),
        "apply": clock.start(Round(round_ + 1)),
    }
    return next((name, end - time) for name, end in ends.items() if time <= end)


def _after_the_end(
    clock: RoundClock, epoch: Epoch, time: int, *, over: bool
) -> tuple[str, int | None]:
    if over:
        return "claims", None
    for name, end in (
        ("weights", clock.weight_commit_deadline(epoch)),
        ("reveals", clock.weight_reveal_deadline(epoch)),
    ):
        if time <= end:
            return name, end - time
    return "settlement", None


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' if number != 1 else ''}" if number else ""
