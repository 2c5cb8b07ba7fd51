"""A node: its store, its server, its view of the run and the model that it holds.

`Node.open` puts the parts together; `Node.tick` keeps them up to date. What to do with them is the
roles' affair.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from ledger.connection import Connection
from ledger.events import EventReader
from ledger.outbox import Outbox
from ledger.outbox_pump import OutboxSettings
from ledger.runs import join
from node.chain import RunChain
from node.checkpoints import Checkpoints
from node.curves import FILE as CURVES
from node.curves import About, Curves
from node.dataset import open_dataset
from node.exchange import Exchange
from node.follower import Follower, Step
from node.journal import Journal
from node.settlements import Settlements
from node.watch import RunWatch
from protocol.clock import RoundClock
from protocol.errors import Rejected, Retryable
from protocol.ids import Address, Hash32, Round
from protocol.model_spec import LlamaSpec
from protocol.ports import Signer
from protocol.runfile import RunFile
from protocol.spec import ChainParams
from training.dataset import TokenDataset
from training.parameters import parameter_count
from training.threads import pin_threads
from transport.board import RecordBoard
from transport.client import PeerClient
from transport.limits import ClientLimits, ServerLimits
from transport.server import NodeServer, Provider
from transport.store import FolderStore

logger = logging.getLogger(__name__)

POLL_S = 0.4
BLOBS, BOARD = "blobs", "board"
"""In a node's state."""
_DATED = ("audits", "roots", "states")
"""Families of topics that are of no use once a round's fraud window is over."""
_PATIENCE_S = 60.0
"""So long a node waits at its start for somebody to offer the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """How an operator runs a node.

    Attributes:
        state_dir: everything that the node keeps.
        host, port: where it listens; port 0 takes a free one.
        data_dir: the run's data set; None fetches it from validators into `state_dir`.
        start_dir: the model of round 1, where the run starts from a checkpoint; None fetches it from validators.
        allow_private: talk to private addresses, as on a devnet.
        confirmations: blocks after which an event counts.
        store_bytes: most that the blob store may take on disk.
        outbox: how transactions are watched; None as usual.
    """

    state_dir: Path
    rpc_url: str
    host: str = "127.0.0.1"
    port: int = 0
    data_dir: Path | None = None
    start_dir: Path | None = None
    allow_private: bool = False
    confirmations: int = 0
    store_bytes: int = 20 << 30
    outbox: OutboxSettings | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The open parts of a node. `me` is the account that it acts for."""

    run_file: RunFile
    signer: Signer
    me: Address
    config: NodeConfig
    connection: Connection
    chain: RunChain
    outbox: Outbox
    journal: Journal
    curves: Curves
    store: FolderStore
    board: RecordBoard
    client: PeerClient
    server: NodeServer
    exchange: Exchange
    follower: Follower
    settlements: Settlements
    dataset: TokenDataset
    watch: RunWatch

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        config: NodeConfig,
        run_file: RunFile,
        signer: Signer,
        *,
        providers: Mapping[str, Provider] | None = None,
    ) -> AsyncIterator[Node]:
        """Opens a node and its server, up to date with the chain.

        Raises:
            OperatorError: whatever the operator has to mend, with how.
            Retryable: nobody offers the model or the data set just now.
        """
        spec = run_file.spec
        pin_threads(spec.compute.threads)
        config.state_dir.mkdir(parents=True, exist_ok=True)
        async with AsyncExitStack() as stack:
            connection, chain = await _follow_chain(config, run_file, stack)
            watch = RunWatch(chain, spec.hash())
            watch.look()
            registry = chain.contracts.registry
            me = await registry.account_of_operator(signer.address) or signer.address
            outbox = await stack.enter_async_context(
                await Outbox.open(
                    config.state_dir / "outbox.db", connection, signer, settings=config.outbox
                )
            )
            journal = Journal.open(config.state_dir / "journal.db")
            stack.callback(journal.close)
            curves = Curves.open(config.state_dir / CURVES, _about(run_file, me))
            stack.callback(curves.close)
            store = FolderStore(config.state_dir / BLOBS, config.store_bytes)
            board = RecordBoard(config.state_dir / BOARD)
            client = await stack.enter_async_context(
                PeerClient(client_limits(spec.chain, config.allow_private), name=me)
            )
            server = await _serve(config, store, board, providers, stack)
            dataset = await open_dataset(
                spec.data,
                folder=config.data_dir or config.state_dir / "dataset",
                store=store,
                client=client,
                endpoints=await chain.validator_endpoints(without=me),
            )
            exchange = Exchange(run_file=run_file, board=board, store=store, client=client)
            checkpoints = Checkpoints(
                spec=spec,
                board=board,
                store=store,
                client=client,
                keep=2 * spec.chain.rounds_per_epoch + 2,
            )
            follower = Follower(
                run_file=run_file,
                chain=chain,
                exchange=exchange,
                checkpoints=checkpoints,
                me=me,
                start=config.start_dir,
            )
            node = cls(
                run_file=run_file,
                signer=signer,
                me=me,
                config=config,
                connection=connection,
                chain=chain,
                outbox=outbox,
                journal=journal,
                curves=curves,
                store=store,
                board=board,
                client=client,
                server=server,
                exchange=exchange,
                follower=follower,
                settlements=Settlements(chain, miners_bps=spec.chain.miners_bps),
                dataset=dataset,
                watch=watch,
            )
            await node._start_following()
            yield node

    async def tick(self) -> list[Step]:
        """Catches up with the chain and with the rounds that are over.

        Trouble that passes (a silent RPC node, a payload that nobody serves yet) is logged; the
        next tick tries again.

        Returns:
            The rounds that were concluded, oldest first.

        Raises:
            OtherTerms: the run goes by another spec now.
        """
        steps: list[Step] = []
        try:
            update = await self.chain.poll()
            self.watch.look()
            undone = [
                number
                for event in update.removed
                if (number := getattr(event, "round", None)) is not None
            ]
            if undone:
                await self.follower.rewind(Round(min(undone)))
            while (step := await self.follower.advance()) is not None:
                steps.append(step)
                self._tell_root()
                self._forget()
        except Retryable as error:
            logger.warning("%s", error)
        return steps

    async def wait(self) -> None:
        """Until it is worth looking again."""
        await asyncio.sleep(POLL_S)

    async def _start_following(self) -> None:
        waited = 0.0
        while True:
            try:
                await self.follower.start()
                self._tell_root()
                return
            except Retryable:
                if waited >= _PATIENCE_S:
                    raise
                await asyncio.sleep(1.0)
                waited += 1.0
                await self.chain.poll()

    def _tell_root(self) -> None:
        """Publishes the state root at the start of the round that we stand at."""
        root: Hash32 = self.follower.root
        try:
            self.board.put(f"roots/{self.follower.head}", self.me, root)
        except Rejected as error:
            logger.debug("root not published: %s", error)

    def _forget(self) -> None:
        """Drops records of rounds whose fraud window is over, and nothing can be asked for any more."""
        chain = self.run_file.spec.chain
        # An epoch more: what is asked for on chain in the window's last moment is shown after it.
        window = (chain.fraud_window_epochs + 2) * chain.rounds_per_epoch
        oldest = self.follower.head - window
        if oldest > 0:
            self.exchange.forget_before(Round(oldest))
        for topic in self.board.topics():
            family, _, number = topic.partition("/")
            if family in _DATED and int(number) < oldest:
                self.board.drop(topic)


def _about(run_file: RunFile, me: Address) -> About:
    model = run_file.spec.model
    kind = "Llama" if isinstance(model, LlamaSpec) else model.architecture
    return About(
        run=run_file.run,
        spec_hash=run_file.spec.hash(),
        account=me,
        model=f"{kind} of {parameter_count(model):,} parameters, vocabulary {model.vocab_size:,}, context {model.context:,}",
    )


def client_limits(chain: ChainParams, local: bool) -> ClientLimits:
    """So patient that a few peers which stall one after the other don't cost us a window of the round."""
    usual = ClientLimits()
    patience_s = max(1.0, min(chain.publish_s, chain.attest_s, chain.apply_s) / 4)
    return ClientLimits(
        connect_timeout_s=min(usual.connect_timeout_s, patience_s),
        read_timeout_s=min(usual.read_timeout_s, patience_s),
        request_timeout_s=min(usual.request_timeout_s, patience_s),
        transfer_grace_s=min(usual.transfer_grace_s, patience_s),
        allow_private=local,
    )


def _server_limits(local: bool) -> ServerLimits:
    """On a devnet all nodes share one address, so the limits per peer have to hold for all."""
    return ServerLimits(requests_per_s=2000.0, request_burst=20_000) if local else ServerLimits()


async def _follow_chain(
    config: NodeConfig, run_file: RunFile, stack: AsyncExitStack
) -> tuple[Connection, RunChain]:
    """The run on its chain, with all events so far; the stack closes it."""
    connection = await Connection.open(config.rpc_url, chain_id=run_file.chain_id)
    stack.push_async_callback(connection.aclose)
    contracts = await join(run_file, connection)
    events = await EventReader.open(
        config.state_dir / "events.db",
        connection,
        run_file.contracts,
        from_block=run_file.deploy_block,
        confirmations=config.confirmations,
    )
    stack.callback(events.close)
    chain = RunChain(contracts=contracts, events=events, clock=RoundClock(run_file.spec.chain))
    await chain.poll()
    return connection, chain


async def _serve(
    config: NodeConfig,
    store: FolderStore,
    board: RecordBoard,
    providers: Mapping[str, Provider] | None,
    stack: AsyncExitStack,
) -> NodeServer:
    """The node's server, under way; the stack stops it."""
    server = NodeServer(store, board, _server_limits(config.allow_private), providers=providers)
    await server.start(config.host, config.port)
    stack.push_async_callback(server.stop)
    return server
