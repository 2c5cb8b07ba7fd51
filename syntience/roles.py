"""A role's process: check everything that can be wrong, wait for the account's slot, then work until stopped.

What only the operator can mend ends the process with one line. What passes by itself, such as a slot that starts with the
next epoch or validators that are not up yet, is waited for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Protocol

from ledger.connection import Connection
from ledger.contracts import Contracts
from ledger.contracts.registry import Role
from ledger.errors import EmptyBalance
from ledger.runs import join, load_run_file
from miner.settings import TrainingSettings
from node.node import Node, NodeConfig
from protocol.errors import Retryable
from protocol.ids import Address, Epoch, Round
from protocol.ports import Signer
from protocol.runfile import RunFile
from syntience.amounts import exact_tokens
from syntience.config import NodeSettings
from syntience.curves.homes import home_name
from syntience.curves.mirror import Mirror, keep_mirror
from syntience.curves.tensorboard import event_file
from syntience.errors import ConfigError, DataMissing, RoleMismatch
from syntience.files import require_writable
from syntience.health import watch
from syntience.metrics import PrometheusMetrics, serve_metrics
from syntience.ports import require_port
from syntience.staking import minimum_stake
from training.inner import InnerLoop, Loops
from transport.server import Provider

if TYPE_CHECKING:
    from training.crew import Crew

logger = logging.getLogger(__name__)

_LATER = Round(1 << 47)
_POLL_S = 2.0
_REMIND_S = 60.0
_OPEN_AGAIN_S = 3.0


class Trade(Enum):
    """What a node does. A hunter needs no slot."""

    MINER = "miner"
    VALIDATOR = "validator"
    HUNTER = "hunter"

    @property
    def role(self) -> Role:
        """The slot that it needs."""
        return {Trade.MINER: Role.MINER, Trade.VALIDATOR: Role.VALIDATOR}.get(self, Role.NONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a role's process is to do.

    Attributes:
        behaviour: how it works; anything but honest is an experiment.
        disputes: whether a hunter opens games about work that it can't reproduce.
        audits: how many accepted miners a hunter recomputes each round.
        training: how a miner trains, as far as that changes no bit.
        crew: the processes that train a miner's rounds with this one; None if it is alone.
        last_epoch: it ends when this epoch is settled and paid; None never.
    """

    trade: Trade
    behaviour: str = "honest"
    disputes: bool = False
    audits: int = 1
    training: TrainingSettings = field(default_factory=TrainingSettings)
    crew: Crew | None = None
    last_epoch: Epoch | None = None


class _Worker(Protocol):
    async def run(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A role, ready to start on an open node; `providers` answer listings in the board's place."""

    start: Callable[[Node], _Worker]
    providers: Mapping[str, Provider] = field(default_factory=dict)


async def run_role(job: Job, settings: NodeSettings, signer: Signer) -> None:
    """Works until cancelled or until the job is done.

    Raises:
        OperatorError: with what to mend; nothing was signed.
    """
    run_file = load_run_file(settings.run_file)
    if job.crew is not None:
        job.crew.share_of(run_file.spec.inner.batch)
    part = _part(job)
    _check_data(settings)
    _check_state(settings.state_dir)
    require_port(settings.listen_host, settings.listen_port, flag="--listen-port")
    events = _event_file(job, settings)
    metrics = PrometheusMetrics()
    with serve_metrics(metrics, host=settings.metrics_host, port=settings.metrics_port):
        await _stand_ready(job, settings, run_file, signer)
        async with _open(settings, run_file, signer, part.providers) as node:
            logger.info(
                "%s ready",
                job.trade.value,
                extra={"account": node.me, "port": settings.listen_port},
            )
            async with asyncio.TaskGroup() as group:
                onlookers = [group.create_task(watch(node, metrics, job.trade.role))]
                if events is not None:
                    onlookers.append(group.create_task(keep_mirror(Mirror(node.curves, events))))
                await part.start(node).run()
                for onlooker in onlookers:
                    onlooker.cancel()
    logger.info("%s done", job.trade.value)


def _part(job: Job) -> _Part:
    """The role with its behaviour; raises `OperatorError` for an unknown one. Imports take seconds."""
    match job.trade:
        case Trade.MINER:
            from miner.cheats import behaviour_named as miner_named
            from miner.miner import Miner

            mining = miner_named(job.behaviour)
            loops = _loops(job.crew)
            return _Part(
                start=lambda node: Miner(
                    node, mining, training=job.training, loops=loops, last_epoch=job.last_epoch
                ),
                providers=mining.providers(),
            )
        case Trade.VALIDATOR:
            from validator.cheats import behaviour_named as validator_named
            from validator.validator import Validator

            validating = validator_named(job.behaviour)
            return _Part(start=lambda node: Validator(node, validating, last_epoch=job.last_epoch))
        case Trade.HUNTER:
            from hunter.cheats import behaviour_named as hunter_named
            from hunter.hunter import Hunter

            hunting = hunter_named(job.behaviour, disputes=job.disputes, audits=job.audits)
            return _Part(start=lambda node: Hunter(node, hunting, last_epoch=job.last_epoch))


def _loops(crew: Crew | None) -> Loops:
    """What trains a miner's rounds. FSDP2 takes seconds to import."""
    if crew is None:
        return InnerLoop
    from training.sharded import ShardedLoop

    return partial(ShardedLoop, crew=crew)


def _check_data(settings: NodeSettings) -> None:
    """A folder that was named must hold a data set; the node checks later that it is the run's."""
    from training.dataset import MANIFEST

    if settings.data_dir is not None and not (settings.data_dir / MANIFEST).is_file():
        raise DataMissing(
            f"there is no data set in {settings.data_dir}",
            "make it with `syntience data prepare`, or leave out --data to fetch it from the run's validators",
        )


def _event_file(job: Job, settings: NodeSettings) -> Path | None:
    """Where TensorBoard's events go, if they are wanted and there are any: a hunter has no curves."""
    if settings.tensorboard is None or job.trade is Trade.HUNTER:
        return None
    path = event_file(settings.tensorboard, home_name(settings.state_dir))
    require_writable(path)
    return path


def _check_state(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ConfigError(
            f"can't keep the node's state in {folder} ({error.strerror or error})",
            "choose another folder with --state, or make room",
        ) from error


async def _stand_ready(job: Job, settings: NodeSettings, run_file: RunFile, signer: Signer) -> None:
    """Checks the chain and the key, and waits until the key acts for an account with a slot."""
    url = settings.rpc_url.reveal()
    async with await Connection.open(url, chain_id=run_file.chain_id) as connection:
        contracts = await join(run_file, connection)
        if not await connection.balance(signer.address):
            raise EmptyBalance(
                f"{signer.address} holds no native currency and could pay for no transaction",
                "send it some and start again",
            )
        await _warn_of_bonds(job, run_file, contracts, signer.address)
        if job.trade.role is not Role.NONE:
            account = await wait_for_slot(contracts, run_file, job.trade.role, signer.address)
            await _compare_endpoint(contracts, account, settings.public_endpoint)


async def _warn_of_bonds(
    job: Job, run_file: RunFile, contracts: Contracts, sender: Address
) -> None:
    """Bonds are paid by the key that sends; without them a proof or a settlement is left to others."""
    chain = run_file.spec.chain
    bonds = {
        Trade.VALIDATOR: ("post a settlement", chain.settlement_bond),
        Trade.HUNTER: ("prove a fraud", chain.challenge_bond),
    }
    if job.trade in bonds:
        deed, bond = bonds[job.trade]
        held = await contracts.token.balance_of(sender)
        if held < bond:
            logger.warning(
                "%s holds %s tokens and needs a bond of %s to %s; send it some",
                sender,
                exact_tokens(held),
                exact_tokens(bond),
                deed,
            )


async def wait_for_slot(
    contracts: Contracts, run_file: RunFile, role: Role, operator: Address
) -> Address:
    """Waits until an operator key acts for an account that is registered in a role.

    Returns:
        The account. Its slot may start only with the next epoch.

    Raises:
        RoleMismatch: the account has the other role, or the key was replaced.
    """
    told, told_at = "", 0.0
    loop = asyncio.get_running_loop()
    while True:
        try:
            reason = await _why_no_slot(contracts, run_file, role, operator)
        except Retryable as error:
            reason = str(error)
        if reason is None:
            break
        if reason != told or loop.time() - told_at > _REMIND_S:
            logger.warning("waiting: %s", reason)
            told, told_at = reason, loop.time()
        await asyncio.sleep(_POLL_S)
    account = await contracts.registry.account_of_operator(operator)
    assert account is not None
    epoch = (await contracts.epochs.now()).epoch
    if await contracts.registry.slot_of(account, epoch) is None:
        logger.info("the slot of %s starts with epoch %d", account, epoch + 1)
    return account


async def _why_no_slot(
    contracts: Contracts, run_file: RunFile, role: Role, operator: Address
) -> str | None:
    """What is missing until the key has a slot to work for, and how to get it; None if nothing is."""
    name = role.name.lower()
    least = exact_tokens(minimum_stake(run_file, role))
    registry = contracts.registry
    account = await registry.account_of_operator(operator)
    if account is None:
        return (
            f"the key {operator} acts for no account in this run yet; register it: "
            f"syntience stake deposit --role {name} --amount {least} --operator-keystore FILE"
        )
    present = await registry.operator_at(account, _LATER)
    if present != operator:
        raise RoleMismatch(
            f"the key {operator} no longer acts for {account}",
            f"start with the key file of its present operator {present}",
        )
    held = await registry.role_of(account)
    if held is role:
        return None
    if held is not Role.NONE:
        raise RoleMismatch(
            f"{account} is a {held.name.lower()}, not a {name}",
            f"run `syntience {held.name.lower()} run` with this key, or use another account's",
        )
    until = (await registry.faults_of(account)).until_epoch
    if (await contracts.epochs.now()).epoch < until:
        return f"{account} is excluded until epoch {until}; register again then"
    return (
        f"{account} holds no slot (any more); register it again with an active stake of at least {least}: "
        f"syntience stake deposit --role {name}"
    )


async def _compare_endpoint(contracts: Contracts, account: Address, own: str | None) -> None:
    registered = await contracts.registry.endpoint_of(account)
    if own is not None and registered != own:
        logger.warning(
            "others reach this node at %s as registered, not at %s; "
            "change the former with `syntience stake set-endpoint`",
            registered,
            own,
        )


@asynccontextmanager
async def _open(
    settings: NodeSettings, run_file: RunFile, signer: Signer, providers: Mapping[str, Provider]
) -> AsyncIterator[Node]:
    """The open node, as soon as what it needs from others can be had."""
    config = NodeConfig(
        state_dir=settings.state_dir,
        rpc_url=settings.rpc_url.reveal(),
        host=settings.listen_host,
        port=settings.listen_port,
        data_dir=settings.data_dir,
        start_dir=settings.start_dir,
        allow_private=settings.allow_private_peers,
        confirmations=settings.confirmations,
    )
    async with AsyncExitStack() as stack:
        yield await _enter(stack, lambda: Node.open(config, run_file, signer, providers=providers))


async def _enter(
    stack: AsyncExitStack, open_node: Callable[[], AbstractAsyncContextManager[Node]]
) -> Node:
    while True:
        try:
            return await stack.enter_async_context(open_node())
        except Retryable as error:
            logger.warning("not ready yet: %s; trying again", error)
        await asyncio.sleep(_OPEN_AGAIN_S)
