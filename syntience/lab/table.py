"""What a scenario's runs showed, as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean, median

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from syntience.lab.run import Outcome, Trial
from syntience.lab.scenario import Scenario
from syntience.table import sparkline


def render(outcome: Outcome) -> RenderableType:
    """Claims first, then who was paid."""
    scenario = outcome.scenario
    head = Text.assemble(
        (scenario.name, "bold"), f": {scenario.text}\n",
        (f"{scenario.world}, {scenario.rounds} rounds, {len(outcome.trials)} seeds", "dim"),
    )  # fmt: skip
    return Group(head, _claims(outcome), _groups(outcome))


def catalogue(scenarios: Iterable[Scenario]) -> RenderableType:
    """Every scenario in a line."""
    table = _table("scenario", "world", ">rounds", ">seeds", "what is tried")
    for scenario in scenarios:
        table.add_row(
            scenario.name,
            scenario.world,
            str(scenario.rounds),
            str(scenario.seeds),
            Text(scenario.text, overflow="fold"),
        )
    return table


def _claims(outcome: Outcome) -> Table:
    table = _table("claim", ">figure", ">from", ">to", "target", "holds")
    for findings in zip(*(trial.findings for trial in outcome.trials), strict=True):
        figures = [finding.figure for finding in findings]
        kept = sum(finding.holds for finding in findings)
        table.add_row(
            findings[0].claim,
            f"{median(figures):.4g}",
            f"{min(figures):.4g}",
            f"{max(figures):.4g}",
            findings[0].target,
            Text(f"{kept}/{len(findings)}", "green" if kept == len(findings) else "bold red"),
        )
    return table


def _groups(outcome: Outcome) -> Table:
    """Of the first seed's run: shares of all pay in the last half, and how pay went."""
    trial = outcome.trials[0]
    history, table = trial.history, _table("who", ">number", ">pay each", ">rating", ">mu", "pay")
    whole = {
        role: sum(sum(history.pays(group)) for group in groups)
        for role, groups in (("miner", history.miners), ("validator", history.validators))
    }
    for role, groups in (("miner", history.miners), ("validator", history.validators)):
        for group, members in groups.items():
            share = fmean(history.pays(group)) / whole[role] if whole[role] else 0.0
            standings = [history.epochs[-1].standings.get(member) for member in members]
            known = [standing for standing in standings if standing is not None]
            table.add_row(
                f"{role} {group}",
                str(len(members)),
                f"{share:.2%}",
                f"{fmean(each.ordinal for each in known):.1f}" if known else "·",
                f"{fmean(each.mu for each in known):+.2f}" if known else "·",
                Text(sparkline(pay_by_epoch(trial, members)[-40:]), "cyan"),
            )
    return table


def pay_by_epoch(trial: Trial, members: Sequence[str]) -> list[float]:
    """What the members earned together, epoch by epoch."""
    return [float(sum(row.pay.get(m, 0) for m in members)) for row in trial.history.epochs]  # type: ignore[call-overload]


def _table(*columns: str) -> Table:
    """A leading ``>`` aligns a column to the right."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold dim")
    for column in columns:
        table.add_column(column.lstrip(">"), justify="right" if column.startswith(">") else "left")
    return table
