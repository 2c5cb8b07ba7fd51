"""From an empty chain to a run in which everybody is registered.

The devnet owns all keys here, so that it funds, deposits and registers for the players before their
processes start: they find their slots taken in the first epoch, and no time is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ledger.connection import Connection, Request
from ledger.contracts import Contracts
from ledger.contracts.registry import Role
from ledger.deploy import deploy
from ledger.keys import LocalSigner
from ledger.outbox import Outbox
from ledger.runs import join, write_run_file
from protocol.ids import Address, Units
from protocol.runfile import RunFile
from protocol.spec import ChainParams, RunSpec
from syntience.devnet.players import Part, Player, files_of
from syntience.devnet.presets import GENESIS_ALLOCATION, STAKE_FACTOR, TOKEN_CAP
from syntience.staking import join_run

RUN_FILE = "run.json"
_ETHER = 10**18
_GAS_MONEY = 100 * _ETHER
_BONDS = 10
"""So many bonds at once can a validator or hunter pay."""
_ROLES = {Part.MINER: Role.MINER, Part.VALIDATOR: Role.VALIDATOR}


@dataclass(frozen=True, slots=True, kw_only=True)
class Founding:
    """A run on chain: its file, where that lies, and the contracts."""

    run_file: RunFile
    path: Path
    contracts: Contracts


class Founder:
    """Sets up a run from a rich account of the devnet's own chain.

    Args:
        connection: to the chain.
        players: who is to take part.
        guests: who gets money, but no stake and no slot.
        folder: the run's; the run file is written there.
    """

    def __init__(
        self,
        connection: Connection,
        players: Sequence[Player],
        *,
        guests: Sequence[Player] = (),
        folder: Path,
        outbox: Outbox,
    ) -> None:
        self._connection = connection
        self._players = players
        self._all = (*players, *guests)
        self._folder = folder
        self._outbox = outbox

    async def deploy(self, spec: RunSpec) -> Founding:
        """Deploys the run and gives everybody what transactions cost; processes may start then.

        Args:
            spec: the run's; its genesis lies far enough ahead.
        """
        accounts = {
            account for player in self._all for account in (player.account, player.operator)
        }
        await self._connection.batch(
            [
                Request("anvil_setBalance", [account, hex(_GAS_MONEY)])
                for account in sorted(accounts)
            ]
        )
        run_file = await deploy(
            self._connection,
            self._outbox,
            spec,
            cap=TOKEN_CAP,
            genesis_allocation=GENESIS_ALLOCATION,
        )
        path = self._folder / RUN_FILE
        write_run_file(path, run_file)
        contracts = await join(run_file, self._connection)
        return Founding(run_file=run_file, path=path, contracts=contracts)

    async def enrol(self, founding: Founding) -> None:
        """Hands out tokens, deposits everybody's stake and registers, in a few blocks."""
        chain = founding.run_file.spec.chain
        calls = [
            founding.contracts.token.transfer_call(account, amount)
            for account, amount in _gifts(self._all, chain)
        ]
        for number, call in enumerate(calls):
            await self._outbox.send(call, f"gift/{number}")
        for number in range(len(calls)):
            await self._outbox.receipt(f"gift/{number}")
        async with asyncio.TaskGroup() as group:
            for player in self._players:
                if player.part in _ROLES:
                    group.create_task(self._register(founding, player))

    async def _register(self, founding: Founding, player: Player) -> None:
        owner = LocalSigner(player.owner_key)
        path = files_of(player, self._folder).folder / "owner.db"
        async with await Outbox.open(path, self._connection, owner) as outbox:
            await join_run(
                connection=self._connection,
                contracts=founding.contracts,
                run_file=founding.run_file,
                owner_outbox=outbox,
                owner_signer=owner,
                operator_signer=LocalSigner(player.operator_key),
                role=_ROLES[player.part],
                stake=stake_of(player, founding.run_file.spec.chain),
                endpoint=player.endpoint,
            )


def stake_of(player: Player, chain: ChainParams) -> Units:
    """What a player has at stake."""
    minimum = {
        Part.MINER: chain.min_miner_stake,
        Part.VALIDATOR: chain.min_validator_stake,
        Part.HUNTER: Units(0),
    }
    return Units(STAKE_FACTOR * minimum[player.part])


def bonds_of(player: Player, chain: ChainParams) -> Units:
    """What a player's operator key holds to pay bonds with."""
    bonds = {
        Part.MINER: Units(0),
        Part.VALIDATOR: Units(_BONDS * (chain.settlement_bond + chain.challenge_bond)),
        Part.HUNTER: Units(_BONDS * (chain.challenge_bond + chain.game_bond)),
    }
    return bonds[player.part]


def _gifts(players: Iterable[Player], chain: ChainParams) -> Iterable[tuple[Address, Units]]:
    """What each account gets to start with."""
    for player in players:
        for account, amount in (
            (player.account, stake_of(player, chain)),
            (player.operator, bonds_of(player, chain)),
        ):
            if amount:
                yield account, amount
