"""Where a run stands, and an account in it: read from the chain alone, signing nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ledger.connection import Connection
from ledger.contracts import Contracts
from ledger.contracts.registry import Role
from ledger.event_types import EpochVoided, RootFinalised, Slashed
from ledger.runs import join, load_run_file
from node.chain import RunChain
from node.settlements import Settlements
from protocol.clock import RoundClock
from protocol.ids import Address, Epoch, Hash32, Round, Slot, Units
from protocol.runfile import RunFile
from syntience.layers import Secret
from syntience.session import read_run

_LATER = 1 << 47


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountStatus:
    """An account, amounts in base units.

    Attributes:
        role: what it is, or will be from the next epoch on.
        slot: its slot in the epoch under way (in the first, before genesis); None if it has none.
        starts: the epoch with which a slot that was just taken starts; None otherwise.
        operator: the newest one; None for an account that was never registered.
        stake: active now; it counts from the next epoch's snapshot on.
        unlock_time: after this second the unbonding stake can be withdrawn.
        games: open against the account; none of its stake leaves meanwhile.
        earned: in all final settlements together.
        slashed: lost to proven faults and missed reveals.
        refunds, bonds: waiting to be collected, besides what was earned and not claimed.
    """

    account: Address
    role: str
    slot: Slot | None
    starts: Epoch | None
    operator: Address | None
    endpoint: str
    payout: Address
    stake: Units
    unbonding: Units
    unlock_time: int
    games: int
    earned: Units
    claimed: Units
    slashed: Units
    faults: int
    refunds: Units
    bonds: Units
    tokens: Units
    native_wei: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnouncedTerms:
    """From `from_epoch` on the spec with this hash applies. `is_ours`: it is the run file's."""

    from_epoch: Epoch
    spec_hash: Hash32
    judge: Address
    is_ours: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """A run at the chain's newest block.

    Attributes:
        phase: the window under way: before genesis, train, commit, publish, attest or apply.
        phase_ends_in_s: seconds of the chain until the next one.
        root: the newest finalised state root, of the start of `root_round`.
        miners, validators: slots held in the epoch under way.
        settled, void: epochs.
        windows_s: length of each phase, in order.
        min_stakes: the least stake by role.
        paused_s: how long the pause under way has lasted; None while the run goes on.
        announced: terms that start in a later epoch.
    """

    run: Hash32
    chain_id: int
    block: int
    time: int
    round: Round
    epoch: Epoch
    phase: str
    phase_ends_in_s: int
    root_round: Round | None
    root: Hash32 | None
    miners: int
    validators: int
    settled: tuple[Epoch, ...]
    void: tuple[Epoch, ...]
    rounds_per_epoch: int
    windows_s: Mapping[str, int]
    min_stakes: Mapping[str, Units]
    paused_s: int | None
    announced: tuple[AnnouncedTerms, ...]
    account: AccountStatus | None


async def read_status(
    run_file: Path, rpc_url: Secret, *, key: Address | None, events: Path | None = None
) -> RunStatus:
    """Reads everything.

    Args:
        key: an account, or the operator key of one; None for the run alone.
        events: where events are kept for the next time.
    """
    run = load_run_file(run_file)
    async with await Connection.open(rpc_url.reveal(), chain_id=run.chain_id) as connection:
        contracts = await join(run, connection)
        async with read_run(connection, contracts, run, events) as chain:
            account = None
            if key is not None:
                owner = await contracts.registry.account_of_operator(key) or key
                account = await _account(connection, contracts, chain, run, owner)
            return await _status(run, chain, account)


def phase_at(clock: RoundClock, time: int) -> tuple[str, int]:
    """The window under way and the seconds until the next one starts. Deadlines are inclusive."""
    round_ = clock.round_at(time)
    if round_ < 1:
        return "before genesis", clock.start(Round(1)) - time
    ends = {
        "train": clock.put_opens(round_),
        "commit": clock.put_deadline(round_) + 1,
        "publish": clock.publish_deadline(round_) + 1,
        "attest": clock.attest_deadline(round_) + 1,
        "apply": clock.start(Round(round_ + 1)),
    }
    return next((phase, end - time) for phase, end in ends.items() if time < end)


async def _status(run: RunFile, chain: RunChain, account: AccountStatus | None) -> RunStatus:
    params = run.spec.chain
    phase, left_s = phase_at(chain.clock, chain.time)
    snapshot = await chain.snapshot(Epoch(max(1, chain.epoch)))
    finalised = max(chain.events.events(RootFinalised), key=lambda e: e.round, default=None)
    return RunStatus(
        run=run.run,
        chain_id=run.chain_id,
        block=chain.block,
        time=chain.time,
        round=chain.round,
        epoch=chain.epoch,
        phase=phase,
        phase_ends_in_s=left_s,
        root_round=finalised.round if finalised else None,
        root=finalised.root if finalised else None,
        miners=len(snapshot.miners),
        validators=len(snapshot.validators),
        settled=tuple(sorted(chain.settled())),
        void=tuple(sorted({event.epoch for event in chain.events.events(EpochVoided)})),
        rounds_per_epoch=params.rounds_per_epoch,
        windows_s={
            "train": params.train_s,
            "commit": params.put_s,
            "publish": params.publish_s,
            "attest": params.attest_s,
            "apply": params.apply_s,
        },
        min_stakes={"miner": params.min_miner_stake, "validator": params.min_validator_stake},
        paused_s=None if chain.paused_since is None else chain.block_time - chain.paused_since,
        announced=tuple(
            AnnouncedTerms(
                from_epoch=terms.from_epoch,
                spec_hash=terms.spec_hash,
                judge=terms.judge,
                is_ours=terms.spec_hash == run.spec.hash(),
            )
            for terms in chain.schedule()
            if terms.from_epoch > max(1, chain.epoch)
        ),
        account=account,
    )


async def _account(
    connection: Connection, contracts: Contracts, chain: RunChain, run: RunFile, owner: Address
) -> AccountStatus:
    registry, vault, rewards = contracts.registry, contracts.vault, contracts.rewards
    epoch = Epoch(max(1, chain.epoch))
    role = await registry.role_of(owner)
    held = await registry.slot_of(owner, epoch)
    starts = Epoch(epoch + 1) if held is None and role is not Role.NONE else None
    unbonding = await vault.unbonding_of(owner)
    settlements = Settlements(chain, miners_bps=run.spec.chain.miners_bps)
    newest = await settlements.newest_leaf(owner)
    lost = chain.events.events(Slashed, account=owner)
    return AccountStatus(
        account=owner,
        role=role.name.lower(),
        slot=held[1] if held else None,
        starts=starts,
        operator=await registry.operator_at(owner, Round(_LATER)),
        endpoint=await registry.endpoint_of(owner),
        payout=await registry.payout_of(owner),
        stake=await vault.active_of(owner),
        unbonding=unbonding.amount,
        unlock_time=unbonding.unlock_time,
        games=await vault.locks_of(owner),
        earned=newest[1].cumulative if newest else Units(0),
        claimed=await rewards.claimed_of(owner),
        slashed=Units(sum(event.taken for event in lost)),
        faults=(await registry.faults_of(owner)).faults,
        refunds=await rewards.refunds_of(owner),
        bonds=await rewards.bonds_of(owner),
        tokens=await contracts.token.balance_of(owner),
        native_wei=await connection.balance(owner),
    )
