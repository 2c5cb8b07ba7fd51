"""What is shown and reported of the players: pure functions of the chain's picture and the boards."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median, median_low

from protocol.ids import Address, Epoch, Hash32, Round, Units
from scoring.report import PeerReport, value_of
from syntience.devnet.boards import Boards
from syntience.devnet.picture import Picture
from syntience.devnet.players import Part, Player
from syntience.report import HunterSummary, MinerSummary, RootSummary, ValidatorSummary

_NOTHING = Units(0)


def summarise_miners(
    players: Sequence[Player], picture: Picture, boards: Boards, *, last: Round
) -> tuple[MinerSummary, ...]:
    """The miners, in the order of the players."""
    peers = _peers(boards, last)
    return tuple(
        MinerSummary(
            address=player.account,
            behaviour=player.behaviour,
            rating=_median(peer.rating.rating().ordinal for peer in peers.get(player.account, ())),
            mu=_median(value_of(peer.computation.mean) for peer in peers.get(player.account, ())),
            weight=picture.weights.get(player.account, 0),
            earned=picture.earned.get(player.account, _NOTHING),
            claimed=picture.claimed.get(player.account, _NOTHING),
            slashed=picture.slashed.get(player.account, _NOTHING),
            status=_status(player.account, picture, peers.get(player.account, ())),
        )
        for player in players
        if player.part is Part.MINER
    )


def summarise_validators(
    players: Sequence[Player], picture: Picture
) -> tuple[ValidatorSummary, ...]:
    """The validators, in the order of the players."""
    return tuple(
        ValidatorSummary(
            address=player.account,
            behaviour=player.behaviour,
            weight_agreement=picture.agreement.get(player.account),
            earned=picture.earned.get(player.account, _NOTHING),
            slashed=picture.slashed.get(player.account, _NOTHING),
        )
        for player in players
        if player.part is Part.VALIDATOR
    )


def summarise_hunters(players: Sequence[Player], picture: Picture) -> tuple[HunterSummary, ...]:
    """The hunters, in the order of the players."""
    return tuple(
        HunterSummary(
            address=player.account,
            proofs=sum(verdict.hunter == player.account for verdict in picture.verdicts),
            bounty=Units(
                sum(
                    verdict.bounty
                    for verdict in picture.verdicts
                    if verdict.hunter == player.account
                )
            ),
        )
        for player in players
        if player.part is Part.HUNTER
    )


def summarise_roots(
    players: Sequence[Player], picture: Picture, boards: Boards, *, last: Round
) -> tuple[RootSummary, ...]:
    """Every finalised root up to round `last`, with the honest nodes that told just that one."""
    honest = [player.name for player in players if player.is_honest]
    return tuple(
        RootSummary(
            round=round_,
            root=root,
            nodes_agreeing=_agreeing(honest, root, boards.roots(round_)),
            nodes_total=len(honest),
        )
        for round_, root in sorted(picture.final_roots.items())
        if round_ <= last
    )


def heldout_losses(first: float, boards: Boards, *, last: Round) -> tuple[float, ...]:
    """The held-out loss before round 1 and after each round that was reported; NaN for a gap."""
    losses = [first]
    for number in range(1, last + 1):
        told = [value_of(report.heldout_loss) for report in boards.reports(Round(number)).values()]
        losses.append(median_low(told) if told else math.nan)
    while math.isnan(losses[-1]) and len(losses) > 1:
        losses.pop()
    return tuple(losses)


def epoch_ends(losses: Sequence[float], *, rounds_per_epoch: int, last: Epoch) -> list[float]:
    """The losses at the start and at the end of each epoch; NaN for one that is not known."""
    wanted = [epoch * rounds_per_epoch for epoch in range(last + 1)]
    return [losses[place] if place < len(losses) else math.nan for place in wanted]


def _agreeing(names: Iterable[str], root: Hash32, told: Mapping[str, frozenset[Hash32]]) -> int:
    return sum(told.get(name) == frozenset({root}) for name in names)


def _peers(boards: Boards, last: Round) -> dict[Address, list[PeerReport]]:
    """What the validators' newest reports say of each miner."""
    found: dict[Address, list[PeerReport]] = {}
    for report in boards.newest_reports(last=last).values():
        for peer in report.peers:
            found.setdefault(peer.miner, []).append(peer)
    return found


def _status(account: Address, picture: Picture, peers: Sequence[PeerReport]) -> str:
    if account in picture.excluded:
        return "excluded"
    if account in picture.gone:
        return "left"
    barred = sorted(peer.barred for peer in peers if peer.barred)
    if 2 * len(barred) > len(peers):
        return barred[len(barred) // 2]
    return "active"


def _median(values: Iterable[float]) -> float | None:
    found = [value for value in values if math.isfinite(value)]
    return median(found) if found else None
