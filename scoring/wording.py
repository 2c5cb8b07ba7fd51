"""An explanation of a score as lines for an operator."""

from __future__ import annotations

from collections.abc import Sequence

from protocol.ids import Round
from scoring.explain import Explanation
from scoring.weights import FULL_WEIGHT


def in_words(found: Explanation) -> list[str]:
    """The explanation, a line per fact."""
    lines = [
        f"{found.miner} in epoch {found.epoch}, as {found.validator} sees it",
        f"accepted     {len(found.accepted)} of {len(found.rounds)} rounds"
        + (f"; missed {_listed(found.missed)}" if found.missed else ""),
    ]
    lines += [f"fault        round {each.round}: {each.fault}" for each in found.faults]
    lines.append(
        f"evaluated    {found.evaluations} times, own data gained more in {found.won}"
        + (
            f"; mean gain {found.mean_gain:+.5f} nats per token on unknown data"
            if found.mean_gain is not None
            else ""
        )
        + (f", {found.mean_own_gain:+.5f} on its own" if found.mean_own_gain is not None else "")
    )
    lines += [
        f"computation  {found.computation:.4f} = μ {found.mu:+.4f} less {found.margin:.4f} that luck could give, at least 0",
        f"improvement  {found.improvement:+.4f}, must be above 0",
        f"rating       {found.rating:.3f} from the ordinal {found.ordinal:+.3f}; doing nothing has {found.null_ordinal:+.3f}",
        f"standing     {found.standing:.4f} with {found.strikes} strikes",
        f"presence     {found.presence:.4f}",
    ]
    if found.barred:
        lines.append(f"barred       no pay in this epoch: {found.barred}")
    lines.append(
        f"score        {found.score:.5f}, squared {found.score**2:.6f}: {found.share:.2%} of all squares"
    )
    if found.weight is not None:
        lines.append(
            f"weight       {found.weight} of {FULL_WEIGHT}, as this validator committed it"
        )
    if found.settled is not None:
        lines.append(
            f"settled      consensus weight {found.settled.consensus_weight}, pay {found.settled.amount} base units"
        )
    return lines + _advised(found)


def _advised(found: Explanation) -> list[str]:
    if not found.changes:
        return ["nothing      would have raised it but better updates than everybody's"]
    lines = ["what would have raised it, most first:"]
    lines += [
        f"  {change.factor:<12} score {change.score:.5f} ({change.score - found.score:+.5f}): {change.advice}"
        for change in found.changes
    ]
    told = {each.fault: each.advice for each in found.faults}
    return lines + [f"  {fault}: {advice}" for fault, advice in sorted(told.items())]


def _listed(rounds: Sequence[Round]) -> str:
    return "round" + ("s " if len(rounds) > 1 else " ") + ", ".join(map(str, rounds))
