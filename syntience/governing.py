"""What a run's governor may do, within the bounds that the contracts set: pause, and announce other terms epochs ahead.

What can be known to fail is refused before anything is sent; called again after a kill, a command finds what it did.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, fields, replace

from ledger.contracts.epochs import PauseState
from ledger.transactions import Call
from protocol.ids import ZERO_ADDRESS, Address, Epoch, Hash32
from protocol.spec import RunSpec
from protocol.terms import Terms, params_under, terms_at, terms_of
from syntience.errors import GovernanceRefused
from syntience.staking import Owner, finish_earlier


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """A pause.

    Attributes:
        since: block time at which it started.
        most_s: after so long anyone can end it.
    """

    since: int
    most_s: int


async def pause(owner: Owner) -> Halt:
    """Stops the run's clocks; does nothing where they stand still already.

    Raises:
        GovernanceRefused: not the governor's key, or too soon after the last pause.
    """
    epochs, chain = owner.contracts.epochs, owner.run_file.spec.chain
    await _require_governor(owner)
    state = await epochs.pause_state()
    if state.since_block is None:
        if state.last_start is not None:
            wait_s = state.last_start + chain.pause_every_s - (await owner.connection.head()).time
            if wait_s > 0:
                raise GovernanceRefused(
                    f"the run was paused too recently; the next pause can start in {wait_s:,} s",
                    "try again then",
                )
        await _send(owner, epochs.pause_call())
        state = await epochs.pause_state()
    assert state.last_start is not None
    return Halt(since=state.last_start, most_s=chain.pause_most_s)


async def resume(owner: Owner) -> PauseState:
    """Lets the clocks go on: the governor at any time, any other key once the pause lasted as long as it may.

    Raises:
        GovernanceRefused: the run is under way, or the pause may still last.
    """
    epochs = owner.contracts.epochs
    earlier = await finish_earlier(owner.outbox)
    state = await epochs.pause_state()
    if state.since_block is None:
        if earlier:
            return state
        raise GovernanceRefused("the run is under way", "there is no pause to end")
    assert state.last_start is not None
    if await epochs.governor() != owner.account:
        until = state.last_start + owner.run_file.spec.chain.pause_most_s
        wait_s = until - (await owner.connection.head()).time
        if wait_s > 0:
            raise GovernanceRefused(
                f"only the governor ends the pause now, anyone in {wait_s:,} s",
                "use the governor's key, or wait; validators end it by themselves then",
            )
    await _send(owner, epochs.resume_call())
    return await epochs.pause_state()


async def announce(
    owner: Owner, spec: RunSpec, *, from_epoch: Epoch | None, judge: Address | None
) -> Terms:
    """Announces that the run goes by another spec from an epoch on.

    Args:
        spec: the whole new spec; only what `Terms` holds of it is the contracts' business.
        from_epoch: by default the first that is possible.
        judge: decides games about a computation; by default whoever does now.

    Raises:
        GovernanceRefused: not the governor's key, too soon, or a spec that changes what nobody can.
    """
    epochs = owner.contracts.epochs
    await _require_governor(owner)
    _require_same_run(owner.run_file.spec, spec)
    schedule, now = await epochs.schedule(), await epochs.now()
    earliest = Epoch(
        max(now.epoch + owner.run_file.spec.chain.notice_epochs, schedule[-1].from_epoch + 1)
    )
    if from_epoch is not None and from_epoch < earliest:
        raise GovernanceRefused(
            f"terms announced now can start with epoch {earliest}, not with {from_epoch}",
            f"give --from-epoch {earliest} or later",
        )
    if judge is None:
        present = terms_at(schedule, Epoch(max(1, now.epoch)))
        judge = (present or schedule[0]).judge
    terms = terms_of(spec, from_epoch=from_epoch or earliest, judge=judge)
    last = schedule[-1]
    if replace(terms, from_epoch=last.from_epoch) == last:
        if last.from_epoch <= max(1, now.epoch):  # before genesis the first ones apply
            raise GovernanceRefused(
                "the run goes by these terms already", "announce another spec or another judge"
            )
        if from_epoch in (None, last.from_epoch):
            return last  # a call that was interrupted
    if last.from_epoch > now.epoch and terms.spec_hash == last.spec_hash:
        raise GovernanceRefused(
            f"this spec is announced from epoch {last.from_epoch} on, decided by {last.judge}",
            "to change that, `syntience governor withdraw` it first",
        )
    await _send(owner, epochs.announce_terms_call(terms))
    return terms


async def withdraw_announced(owner: Owner) -> tuple[Epoch, Hash32]:
    """Takes back the terms that were announced last; returns their first epoch and their spec's hash.

    Raises:
        GovernanceRefused: not the governor's key, nothing was announced, or the terms are too close.
    """
    epochs = owner.contracts.epochs
    await _require_governor(owner)
    last, now = (await epochs.schedule())[-1], await epochs.now()
    if last.from_epoch <= now.epoch + 1:
        raise GovernanceRefused(
            "no terms are announced that could be withdrawn: those of this epoch and the next stay",
            "announce others for a later epoch",
        )
    await _send(owner, epochs.withdraw_terms_call())
    return last.from_epoch, last.spec_hash


def _require_same_run(old: RunSpec, new: RunSpec) -> None:
    """Parameters that are no terms are final, and the model goes on as it is."""
    allowed = params_under(old.chain, terms_of(new, from_epoch=Epoch(1), judge=ZERO_ADDRESS))
    final = [
        item.name
        for item in fields(allowed)
        if getattr(allowed, item.name) != getattr(new.chain, item.name)
    ]
    if final or old.model != new.model:
        what = ", ".join(f"chain.{name}" for name in final) or "the model"
        raise GovernanceRefused(
            f"the new spec has another {what}, which is final", "take it from the present spec"
        )


async def _require_governor(owner: Owner) -> None:
    await finish_earlier(owner.outbox)
    governor = await owner.contracts.epochs.governor()
    if governor is None:
        raise GovernanceRefused("this run has no governor", "its parameters are final")
    if governor != owner.account:
        raise GovernanceRefused(
            f"{owner.account} is not the governor of this run, {governor} is",
            "give that key with --keystore",
        )


async def _send(owner: Owner, call: Call) -> None:
    await owner.outbox.submit(call, f"{call.label}/{secrets.token_hex(8)}")
