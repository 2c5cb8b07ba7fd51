"""What a scenario consists of: who takes part, under which rules, and what must hold afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from protocol.hashing import keccak256
from protocol.ids import UNITS_PER_TOKEN, Address, Units, to_address
from scoring.rules import Rules
from syntience.lab.claims import Claim

MECHANISM, TRAINING = "mechanism", "training"
WORLDS = (MECHANISM, TRAINING)
HONEST = "honest"
RULES = Rules(
    mu_gamma=0.95,
    mu_margin=1.25,
    phi=0.75,
    rating_mu=25.0,
    rating_sigma=25 / 3,
    rating_beta=7.0,
    rating_tau=0.1,
)
"""Those of the paper, with the luck margin of `specs`' rules."""


POT = Units(1000 * UNITS_PER_TOKEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Peers or validators of one kind.

    Attributes:
        name: as it is shown and named in claims.
        kind: of the world's peers, or of `judges`.
        strength: of a peer, the part of its assigned data that it can train in a round.
        stake: of each validator, in tokens.
        options: numbers that the kind knows.
    """

    name: str
    kind: str
    count: int = 1
    strength: float = 1.0
    stake: int = 1000
    options: Mapping[str, float] = field(default_factory=dict)

    def addresses(self, role: str) -> tuple[Address, ...]:
        """Of its members: the same in every run, so that twins can be compared."""
        return tuple(
            to_address(keccak256(f"{role}/{self.name}/{i}".encode())[:20])
            for i in range(self.count)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One experiment.

    Attributes:
        text: what is tried, in a sentence.
        world: `mechanism` (losses from a model of them) or `training` (a model is trained).
        twin: what the claims compare the run with: the same seed with the twin's peers, validators
            or world, if there is one.
        peers_per_round: that a validator evaluates.
        normalise: whether updates are scaled to the median norm; without is an experiment.
        shared_draws: whether all validators examine on one draw; that they do is an experiment.
    """

    name: str
    text: str
    world: str
    peers: Sequence[Group]
    claims: Sequence[Claim]
    validators: Sequence[Group] = (Group(name="validator", kind=HONEST, count=4),)
    twin: Scenario | None = None
    rounds: int = 300
    rounds_per_epoch: int = 10
    peers_per_round: int = 16
    top_g: int = 15
    newcomer_slots: int = 3
    seeds: int = 5
    rules: Rules = RULES
    normalise: bool = True
    shared_draws: bool = False
    pot: Units = POT
    miners_bps: int = 6000

    @property
    def epochs(self) -> int:
        """Whole epochs; rounds that make no whole one are not played."""
        return self.rounds // self.rounds_per_epoch

    def miner_accounts(self) -> dict[str, tuple[Address, ...]]:
        """The peers' addresses by group."""
        return {group.name: group.addresses("peer") for group in self.peers}

    def validator_accounts(self) -> dict[str, tuple[Address, ...]]:
        """The validators' addresses by group."""
        return {group.name: group.addresses("validator") for group in self.validators}
