"""What `stake deposit` means for an account as it stands: join, come back, or add to what is there."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from ledger.contracts.registry import Role
from protocol.ids import Address, Epoch, Round, Slot, Units
from syntience.errors import ConfigError
from syntience.staking import (
    OperatorConsent,
    Owner,
    Seat,
    consent_to,
    finish_earlier,
    take_seat,
)

logger = logging.getLogger(__name__)
_LATER = 1 << 47


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the owner asks for; None leaves it as it is.

    Attributes:
        amount: to add to the active stake.
        operator: by default the present one, and for a new account its own key.
    """

    amount: Units
    role: Role | None = None
    operator: OperatorConsent | None = None
    endpoint: str | None = None
    payout: Address | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where an account stands afterwards. `slot` counts from `from_epoch` on."""

    account: Address
    role: Role
    slot: Slot
    from_epoch: Epoch
    operator: Address
    endpoint: str
    payout: Address
    active: Units
    deposited: Units


async def enrol(owner: Owner, wish: Wish) -> Standing:
    """Fulfils a wish. If an interrupted command had left something on its way, that is finished and nothing is deposited again.

    Raises:
        ConfigError: a first registration lacks its role or endpoint.
        StakingRefused, EmptyBalance, Reverted: as `syntience.staking.join_run`.
    """
    amount = wish.amount
    if finished := await finish_earlier(owner.outbox):
        logger.warning(
            "%d transactions of an interrupted command are through now; nothing more is deposited, "
            "run the command again if it should be",
            finished,
        )
        amount = Units(0)
    seat = await _seat(owner, wish)
    await take_seat(owner, seat, deposit=amount)
    return await standing_of(owner, deposited=amount)


async def standing_of(owner: Owner, *, deposited: Units) -> Standing:
    """Reads it from the chain; the account must be registered."""
    registry, account = owner.contracts.registry, owner.account
    held = await registry.slot_of(account, Epoch(_LATER))
    assert held is not None
    epoch = (await owner.contracts.epochs.now()).epoch
    now = epoch > 0 and await registry.slot_of(account, epoch) == held
    operator = await registry.operator_at(account, Round(_LATER))
    assert operator is not None
    return Standing(
        account=account,
        role=held[0],
        slot=held[1],
        from_epoch=epoch if now else Epoch(epoch + 1),
        operator=operator,
        endpoint=await registry.endpoint_of(account),
        payout=await registry.payout_of(account),
        active=await owner.contracts.vault.active_of(account),
        deposited=deposited,
    )


async def _seat(owner: Owner, wish: Wish) -> Seat:
    registry, account = owner.contracts.registry, owner.account
    held = await registry.role_of(account)
    role = wish.role or held
    if role is Role.NONE:
        raise ConfigError(
            f"{account} has no role in this run yet", "give --role miner or validator"
        )
    endpoint = wish.endpoint or await registry.endpoint_of(account)
    if not endpoint:
        raise ConfigError(
            f"{account} has no endpoint yet, and a {role.name.lower()} serves its work to others",
            "give --endpoint http://HOST:PORT, as others reach its node",
        )
    operator = wish.operator
    if operator is None:
        present = await registry.operator_at(account, Round(_LATER))
        if present is None:
            operator = await consent_to(account, owner.signer, owner.contracts, owner.run_file)
        else:
            operator = OperatorConsent(operator=present, signature=b"")
    return Seat(role=role, operator=operator, endpoint=endpoint, payout=wish.payout)
