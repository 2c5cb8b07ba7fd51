"""What an owner account does: deposit and register, change its operator or endpoint, leave, withdraw.

Every action first waits for what an interrupted command left in the outbox, then looks at the chain and sends only what is
still missing. So all of them may be repeated, also after a kill in the middle. What can be known to fail is refused before
anything is sent.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, replace

from ledger.connection import Connection
from ledger.contracts import Contracts
from ledger.contracts.registry import Role
from ledger.errors import BadSignature, ReceiptTimeout
from ledger.outbox import Outbox
from ledger.recover import recover
from ledger.transactions import Call
from protocol.ids import Address, Epoch, Hash32, Round, Units
from protocol.ports import Signer
from protocol.runfile import RunFile
from protocol.submission import operator_consent_digest
from syntience.amounts import exact_tokens
from syntience.errors import StakingRefused

REGISTER_GAS = 800_000
"""More than any registration takes: one that is sent right behind its deposit can't be estimated yet."""
_PERMIT_S = 86_400
_LATER = 1 << 47
"""A round or epoch after everything that is decided by now."""
_EARLIER_TIMEOUT_S = 120.0
_POLL_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """An owner account at work in a run. `outbox` sends with the key of `signer`."""

    connection: Connection
    contracts: Contracts
    run_file: RunFile
    outbox: Outbox
    signer: Signer

    @property
    def account(self) -> Address:
        """The account itself."""
        return self.signer.address


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorConsent:
    """An operator key and its signature that it will act for a certain account."""

    operator: Address
    signature: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """What an account wants to be: its role, who operates it, where it serves, who is paid (None: the account)."""

    role: Role
    operator: OperatorConsent
    endpoint: str
    payout: Address | None = None


async def join_run(  # noqa: PLR0913 - a participant is all of this
    *,
    connection: Connection,
    contracts: Contracts,
    run_file: RunFile,
    owner_outbox: Outbox,
    owner_signer: Signer,
    operator_signer: Signer,
    role: Role,
    stake: Units,
    endpoint: str,
    payout: Address | None = None,
) -> None:
    """Makes an account a participant: brings its active stake up to `stake` and takes a slot, in one block.

    The slot counts from the next epoch on (before genesis: from the first). An account that has all of it already sends
    nothing.

    Raises:
        StakingRefused: too small a stake, too few tokens, a role or key that stands in the way; nothing was sent.
        EmptyBalance: the account can't pay for gas.
        Reverted: the registry refuses, such as for want of a slot; the stake is deposited then.
    """
    owner = Owner(
        connection=connection,
        contracts=contracts,
        run_file=run_file,
        outbox=owner_outbox,
        signer=owner_signer,
    )
    await finish_earlier(owner_outbox)
    active = await contracts.vault.active_of(owner.account)
    consent = await consent_to(owner.account, operator_signer, contracts, run_file)
    seat = Seat(role=role, operator=consent, endpoint=endpoint, payout=payout)
    await take_seat(owner, seat, deposit=Units(max(0, stake - active)))


async def take_seat(owner: Owner, seat: Seat, *, deposit: Units) -> None:
    """Deposits this much more and registers, unless the account is registered; raises as `join_run`."""
    held = await owner.contracts.registry.role_of(owner.account)
    if held not in (Role.NONE, seat.role):
        raise StakingRefused(
            f"{owner.account} is a {held.name.lower()} already",
            "use another account for the other role, or leave with `syntience stake exit` first",
        )
    await _require_minimum(owner, seat.role, deposit)
    await _require_tokens(owner, deposit)
    await _require_free_key(owner, seat)
    if held is Role.NONE:
        await _require_not_suspended(owner)
    calls = []
    if deposit:
        calls.append(await _deposit_call(owner, deposit))
    if held is Role.NONE:
        register = owner.contracts.registry.register_call(
            seat.role,
            operator=seat.operator.operator,
            consent=seat.operator.signature,
            payout=seat.payout,
            endpoint=seat.endpoint,
        )
        calls.append(replace(register, gas=REGISTER_GAS) if deposit else register)
    else:
        calls += await _corrections(owner, seat)
    await _send(owner, calls)


async def deposit_more(owner: Owner, amount: Units) -> Units:
    """Adds to the active stake; returns what it is then. It counts from the next epoch's snapshot on."""
    await finish_earlier(owner.outbox)
    await _require_tokens(owner, amount)
    await _send(owner, [await _deposit_call(owner, amount)])
    return await owner.contracts.vault.active_of(owner.account)


async def exit_run(owner: Owner) -> Units:
    """Asks for the whole active stake back; the slot ends with this epoch.

    Returns:
        All that is on its way out, earlier requests included.
    """
    await finish_earlier(owner.outbox)
    vault = owner.contracts.vault
    active = await vault.active_of(owner.account)
    unbonding = await vault.unbonding_of(owner.account)
    if not active and not unbonding.amount:
        raise StakingRefused(f"{owner.account} has nothing at stake", "check --keystore and --run")
    if active:
        await _send(owner, [vault.request_unbond_call(active)])
        unbonding = await vault.unbonding_of(owner.account)
    return unbonding.amount


async def withdraw(owner: Owner) -> Units:
    """Takes out what has waited long enough; returns how much that was.

    Raises:
        StakingRefused: nothing is on its way out, or it can't leave yet.
        Reverted: the same, as the vault says it: the epoch of the exit is not settled.
    """
    finished = await finish_earlier(owner.outbox)
    vault = owner.contracts.vault
    unbonding = await vault.unbonding_of(owner.account)
    if not unbonding.amount:
        if finished:
            return Units(0)
        raise StakingRefused(
            f"{owner.account} has nothing to withdraw",
            "ask for an exit first: syntience stake exit",
        )
    amount, now = exact_tokens(unbonding.amount), await owner.contracts.epochs.now()
    if now.paused:
        raise StakingRefused(
            f"the run is paused, and no stake leaves it meanwhile ({amount} tokens wait)",
            "withdraw when it goes on (see `syntience status`)",
        )
    wait_s = unbonding.unlock_time - now.time
    if wait_s >= 0:
        raise StakingRefused(
            f"{amount} tokens are locked for {wait_s + 1:,} s more", "withdraw after that time"
        )
    games = await vault.locks_of(owner.account)
    if games:
        raise StakingRefused(
            f"{games} games against {owner.account} are open, and none of its stake leaves meanwhile",
            "withdraw when they are over; keep the node running, for it defends itself",
        )
    await _send(owner, [vault.withdraw_call()])
    return unbonding.amount


async def set_endpoint(owner: Owner, endpoint: str) -> Address:
    """Tells everybody where the account's node serves from now on; the owner's key or its operator's may.

    Returns:
        The account.
    """
    await finish_earlier(owner.outbox)
    registry = owner.contracts.registry
    account = await _account_behind(owner)
    if await registry.endpoint_of(account) != endpoint:
        await _send(owner, [registry.set_endpoint_call(account, endpoint)])
    return account


async def rotate_operator(owner: Owner, operator: OperatorConsent) -> Round:
    """Hands the account's work to another key; returns the round from which on that key signs."""
    await finish_earlier(owner.outbox)
    await _require_registered_once(owner)
    registry = owner.contracts.registry
    if await registry.operator_at(owner.account, Round(_LATER)) != operator.operator:
        await _require_usable(owner, operator)
        await _send(owner, [registry.rotate_operator_call(operator.operator, operator.signature)])
    return Round((await owner.contracts.epochs.now()).round + 1)


async def consent_to(
    account: Address, operator: Signer, contracts: Contracts, run_file: RunFile
) -> OperatorConsent:
    """The operator key's signed consent to act for an account, good for its next change of operator."""
    digest = await _consent_digest(account, contracts, run_file)
    return OperatorConsent(operator=operator.address, signature=operator.sign_digest(digest))


async def finish_earlier(outbox: Outbox) -> int:
    """Waits for the transactions that an interrupted command left on their way; returns how many there were.

    Raises:
        ReceiptTimeout: they are still in no block.
    """
    left = outbox.waiting()
    try:
        async with asyncio.timeout(_EARLIER_TIMEOUT_S):
            while outbox.waiting():  # noqa: ASYNC110 - the outbox is a file, it raises no event
                await asyncio.sleep(_POLL_S)
    except TimeoutError as error:
        raise ReceiptTimeout(
            f"{outbox.waiting()} transactions of an earlier command are in no block yet; "
            f"see that {outbox.address} can pay for gas, and try again"
        ) from error
    return left


def minimum_stake(run_file: RunFile, role: Role) -> Units:
    """The least active stake that holds a slot."""
    chain = run_file.spec.chain
    return chain.min_miner_stake if role is Role.MINER else chain.min_validator_stake


async def _consent_digest(account: Address, contracts: Contracts, run_file: RunFile) -> Hash32:
    return operator_consent_digest(
        domain=run_file.domain,
        run=run_file.run,
        account=account,
        nonce=await contracts.registry.operator_count(account),
    )


async def _send(owner: Owner, calls: list[Call]) -> None:
    """Sends all calls on each other's heels, then waits for each."""
    keys = [f"{call.label}/{secrets.token_hex(8)}" for call in calls]
    for key, call in zip(keys, calls, strict=True):
        await owner.outbox.send(call, key)
    for key in keys:
        await owner.outbox.receipt(key)


async def _deposit_call(owner: Owner, amount: Units) -> Call:
    permit = await owner.contracts.token.sign_permit(
        owner.signer,
        spender=owner.contracts.vault.address,
        amount=amount,
        deadline=(await owner.connection.head()).time + _PERMIT_S,
    )
    return owner.contracts.vault.deposit_with_permit_call(permit)


async def _corrections(owner: Owner, seat: Seat) -> list[Call]:
    """What a registered account has to change to sit as it wants to."""
    registry, account = owner.contracts.registry, owner.account
    calls = []
    if await registry.endpoint_of(account) != seat.endpoint:
        calls.append(registry.set_endpoint_call(account, seat.endpoint))
    if seat.payout is not None and await registry.payout_of(account) != seat.payout:
        calls.append(registry.set_payout_call(seat.payout))
    return calls


async def _account_behind(owner: Owner) -> Address:
    """The account whose endpoint this key may set: its own, or the one that it operates in this round."""
    registry = owner.contracts.registry
    operates = await registry.account_of_operator(owner.account)
    if operates in (None, owner.account) or await registry.operator_count(owner.account):
        await _require_registered_once(owner)
        return owner.account
    assert operates is not None
    round_ = (await owner.contracts.epochs.now()).round
    if await registry.operator_at(operates, round_) != owner.account:
        raise StakingRefused(
            f"{owner.account} does not act for {operates} in round {round_}",
            "sign with the owner's key, or try again in the next round if the key is new",
        )
    return operates


async def _require_minimum(owner: Owner, role: Role, deposit: Units) -> None:
    least = minimum_stake(owner.run_file, role)
    active = await owner.contracts.vault.active_of(owner.account)
    if active + deposit < least:
        raise StakingRefused(
            f"a {role.name.lower()} needs a stake of at least {exact_tokens(least)} tokens, this would be "
            f"{exact_tokens(Units(active + deposit))}",
            f"deposit at least {exact_tokens(Units(least - active))}",
        )


async def _require_tokens(owner: Owner, amount: Units) -> None:
    balance = await owner.contracts.token.balance_of(owner.account)
    if balance < amount:
        raise StakingRefused(
            f"{owner.account} holds {exact_tokens(balance)} tokens, too few to deposit {exact_tokens(amount)}",
            f"send it tokens of {owner.contracts.token.address}, or deposit less",
        )


async def _require_free_key(owner: Owner, seat: Seat) -> None:
    """The operator key must be the account's present one, or a key that nobody used before."""
    registry, account = owner.contracts.registry, owner.account
    present = await registry.operator_at(account, Round(_LATER))
    if present == seat.operator.operator:
        return
    if await registry.role_of(account) is not Role.NONE:
        raise StakingRefused(
            f"{account} is registered with another operator, {present}",
            "change it with `syntience stake rotate-operator`",
        )
    await _require_usable(owner, seat.operator)


async def _require_usable(owner: Owner, consent: OperatorConsent) -> None:
    """The registry takes a fresh key alone, and only with its own signature."""
    taken_by = await owner.contracts.registry.account_of_operator(consent.operator)
    if taken_by is not None:
        whose = "this account" if taken_by == owner.account else taken_by
        raise StakingRefused(
            f"the operator key {consent.operator} served {whose} before",
            "make a fresh one with `syntience keys new`: a key belongs to one account for ever",
        )
    digest = await _consent_digest(owner.account, owner.contracts, owner.run_file)
    try:
        signer = recover(digest, consent.signature)
    except BadSignature:
        signer = None
    if signer != consent.operator:
        raise StakingRefused(
            f"the consent was not signed by {consent.operator} for {owner.account} as it is now",
            f"make it with `syntience stake consent --account {owner.account}` and that key",
        )


async def _require_not_suspended(owner: Owner) -> None:
    until = (await owner.contracts.registry.faults_of(owner.account)).until_epoch
    epoch = (await owner.contracts.epochs.now()).epoch
    if epoch < until:
        for_ever = until > Epoch(_LATER)
        raise StakingRefused(
            f"{owner.account} is excluded from the run {'for ever' if for_ever else f'until epoch {until}'}",
            "a fault was proven; use another account" if for_ever else "register again then",
        )


async def _require_registered_once(owner: Owner) -> None:
    if not await owner.contracts.registry.operator_count(owner.account):
        raise StakingRefused(
            f"{owner.account} was never registered in this run",
            "join with `syntience stake deposit`, or check --keystore and --run",
        )
