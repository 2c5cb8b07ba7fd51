"""Collecting what an account was paid: its share of the settled epochs, refunds for chores, released bonds,
fees for data that it showed on chain.

Anybody may send these transactions for an account; the contracts pay only whom they owe.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from ledger.transactions import Call
from node.settlements import Settlements
from protocol.ids import Address, Epoch, Units
from syntience.session import read_run
from syntience.staking import Owner, finish_earlier


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What one collection brought, in base units.

    Attributes:
        account: whose it was.
        payout: where the rewards went.
        epoch: the settlement that was claimed against; None if there was nothing to claim.
        rewards: of the settled epochs.
        refunds, bonds: of the account and of the key that sent this; bonds with what data requests owe them.
    """

    account: Address
    payout: Address
    epoch: Epoch | None
    rewards: Units
    refunds: Units
    bonds: Units

    @property
    def total(self) -> Units:
        """All of it."""
        return Units(self.rewards + self.refunds + self.bonds)


async def collect(owner: Owner, account: Address | None, *, events: Path | None) -> Collected:
    """Collects all that there is for an account.

    Args:
        owner: sends and pays for the gas.
        account: by default the one that the sender is operator of, else the sender itself.
        events: where events are kept for the next time.
    """
    await finish_earlier(owner.outbox)
    contracts, sender = owner.contracts, owner.account
    if account is None:
        account = await contracts.registry.account_of_operator(sender) or sender
    claimed = await contracts.rewards.claimed_of(account)
    epoch, claim = await _claim(owner, account, claimed, events)
    calls = [] if claim is None else [claim]
    refunds, bonds = 0, 0
    for whose in sorted({account, sender}):
        refund = await contracts.rewards.refunds_of(whose)
        bond = await contracts.rewards.bonds_of(whose)
        refunds, bonds = refunds + refund, bonds + bond
        if refund:
            calls.append(contracts.rewards.withdraw_refunds_call(whose))
        if bond:
            calls.append(contracts.rewards.withdraw_bonds_call(whose))
        owed = await contracts.requests.balance_of(whose)
        if owed:
            calls.append(contracts.requests.withdraw_call(whose))
        bonds += owed
    keys = [f"{call.label}/{secrets.token_hex(8)}" for call in calls]
    for key, call in zip(keys, calls, strict=True):
        await owner.outbox.send(call, key)
    for key in keys:
        await owner.outbox.receipt(key)
    return Collected(
        account=account,
        payout=await contracts.registry.payout_of(account),
        epoch=epoch,
        rewards=Units(await contracts.rewards.claimed_of(account) - claimed),
        refunds=Units(refunds),
        bonds=Units(bonds),
    )


async def _claim(
    owner: Owner, account: Address, claimed: Units, events: Path | None
) -> tuple[Epoch | None, Call | None]:
    """The newest settlement with a leaf of the account, and the claim against it if it pays."""
    async with read_run(owner.connection, owner.contracts, owner.run_file, events) as chain:
        settlements = Settlements(chain, miners_bps=owner.run_file.spec.chain.miners_bps)
        newest = await settlements.newest_leaf(account)
        if newest is None or newest[1].cumulative <= claimed:
            return None, None
        epoch, leaf = newest
        tree = await settlements.final(epoch)
        assert tree is not None
        return epoch, owner.contracts.rewards.claim_call(epoch, leaf, tree.proof(leaf.index))
