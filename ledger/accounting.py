"""The books of a run: what its contracts hold in tokens against what they owe, to the unit, at one block.

Held: token balances of all the run's contracts. Owed: active and unbonding stake of everybody who ever deposited, the
distributor's bonds, unclaimed rewards, rollover and fees, the hunters' and the games' bonds, bounties that wait, and bonds
and fees of data requests. Chore refunds that are not withdrawn stand on neither side: they are minted when they are. Tokens
that somebody sent to a contract by mistake show as a difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from ledger.contracts import Contracts
from ledger.event_types import Claimed, Deposited
from ledger.events import EventReader
from protocol.ids import Address, Units


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """Both sides as of a block, in base units; `held` by contract."""

    block: int
    held: dict[str, Units]
    stakes: Units
    rewards: Units
    hunters_bonds: Units
    bounties: Units
    games_bonds: Units
    requests: Units

    @property
    def token_balance(self) -> Units:
        """All that the contracts hold."""
        return Units(sum(self.held.values()))

    @property
    def accounted(self) -> Units:
        """All that the contracts owe."""
        return Units(sum(self._owing.values()))

    @property
    def balanced(self) -> bool:
        """Whether every contract holds exactly what it owes."""
        return all(amount == self._owing.get(name, 0) for name, amount in self.held.items())

    @property
    def _owing(self) -> dict[str, Units]:
        return {
            "vault": self.stakes,
            "rewards": self.rewards,
            "faults": self.hunters_bonds,
            "verdicts": self.bounties,
            "disputes": self.games_bonds,
            "requests": self.requests,
        }


async def take_books(contracts: Contracts, reader: EventReader) -> Books:
    """The books as of the last block that the reader has read; its node must still have that block's state."""
    depositors = {event.account for event in reader.events(Deposited)}
    claimed = Units(sum(event.amount for event in reader.events(Claimed)))
    return await books_at(contracts, depositors, claimed, reader.complete_upto)


async def books_at(
    contracts: Contracts, depositors: Iterable[Address], claimed: Units, block: int
) -> Books:
    """The books as of a block.

    Args:
        contracts: the run's.
        depositors: everybody who deposited up to that block.
        claimed: all rewards that were claimed up to that block.
        block: all views are read as of this block, or they would not fit together.
    """
    names = [item.name for item in fields(contracts.addresses)]
    holders = [getattr(contracts.addresses, name) for name in names]
    balances = await contracts.token.balances_of(holders, block=block)
    stakes = await contracts.vault.held_for(sorted(depositors), block=block)
    owed = await contracts.rewards.owed(block=block)
    return Books(
        block=block,
        held=dict(zip(names, balances, strict=True)),
        stakes=Units(sum(stakes.values())),
        rewards=owed.held(claimed),
        hunters_bonds=await contracts.faults.bonds_held(block=block),
        bounties=await contracts.verdicts.bounties_held(block=block),
        games_bonds=await contracts.disputes.bonds_held(block=block),
        requests=await contracts.requests.held(block=block),
    )
