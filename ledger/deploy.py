"""Deploys a run's contracts on any chain, from the bytecode that ships in the package.

The contracts know each other from birth: the address of each follows from the deployer's account and nonce, so all of them
are computed beforehand and passed to the constructors. All creations travel together. Deploying again with the same
outbox, also after a crash in the middle, finds what was sent before.
"""

from __future__ import annotations

from dataclasses import fields

from ledger.abi import AbiValue, contract_abi
from ledger.connection import Connection
from ledger.contracts.epochs import params_to_abi
from ledger.errors import NotDeployed, RunMismatch
from ledger.outbox import Outbox
from ledger.runs import join
from ledger.transactions import Call, Receipt, contract_address
from protocol.errors import OperatorError
from protocol.ids import ZERO_ADDRESS, Address, Units
from protocol.runfile import RUN_FILE_VERSION, ContractAddresses, RunFile
from protocol.spec import RunSpec
from protocol.submission import run_id

_CONTRACT_OF = {
    "token": "SynToken",
    "registry": "Registry",
    "vault": "StakeVault",
    "epochs": "EpochManager",
    "beacon": "BlockhashBeacon",
    "scores": "ScoreRegistry",
    "rewards": "RewardsDistributor",
    "faults": "ObjectiveFaults",
    "verdicts": "Verdicts",
    "requests": "DataRequests",
    "disputes": "Disputes",
    "committee": "Committee",
}
"""In the order of deployment, which is the order of `ContractAddresses`."""


async def deploy(  # noqa: PLR0913 - a run is founded with all of this
    connection: Connection,
    outbox: Outbox,
    spec: RunSpec,
    *,
    cap: Units,
    genesis_allocation: Units,
    nonce: int | None = None,
    governor: Address = ZERO_ADDRESS,
) -> RunFile:
    """Deploys a run; the deployer gets the genesis allocation of tokens.

    Args:
        connection: where to.
        outbox: the deployer's; nothing else may use its key meanwhile.
        spec: the run's spec; its genesis time lies in the future.
        cap: the most tokens that are ever minted.
        genesis_allocation: tokens that exist from the start.
        nonce: tells apart runs of one registry address; by default drawn from the chain's first block, so that a
            development chain and its successor never share a run id.
        governor: who may announce terms and pause, within bounds; by default nobody.

    Raises:
        OperatorError: genesis in the past, an empty account, a deployer used elsewhere meanwhile.
        Reverted: a constructor refuses the parameters.
    """
    if nonce is None:
        nonce = int.from_bytes((await connection.genesis_hash())[:6], "big")
    first = outbox.nonce_of(_key("token"))
    if first is None:
        await _check_genesis(connection, spec)
        first = await outbox.next_nonce()
    addresses = _addresses(outbox.address, first)
    for name, data in _creations(
        addresses, spec, nonce, (cap, genesis_allocation), governor
    ).items():
        call = Call(to=None, data=data, label=f"{_CONTRACT_OF[name]}.constructor")
        await outbox.send(call, _key(name))
    receipts = {name: await outbox.receipt(_key(name)) for name in _CONTRACT_OF}
    _check_addresses(addresses, receipts)
    run_file = RunFile(
        version=RUN_FILE_VERSION,
        run=run_id(chain_id=connection.chain_id, registry=addresses.registry, nonce=nonce),
        chain_id=connection.chain_id,
        nonce=nonce,
        deploy_block=min(receipt.block for receipt in receipts.values()),
        contracts=addresses,
        spec=spec,
    )
    await _check_run(run_file, connection, cap)
    return run_file


def _key(name: str) -> str:
    return f"deploy/{name}"


async def _check_genesis(connection: Connection, spec: RunSpec) -> None:
    head = await connection.head()
    if spec.chain.genesis_time <= head.time:
        raise OperatorError(
            f"the run's genesis lies {head.time - spec.chain.genesis_time} s in the past",
            "choose a later genesis time",
        )


def _addresses(deployer: Address, first: int) -> ContractAddresses:
    names = [item.name for item in fields(ContractAddresses)]
    return ContractAddresses(
        **{name: contract_address(deployer, first + index) for index, name in enumerate(names)}
    )


def _creations(
    addresses: ContractAddresses,
    spec: RunSpec,
    nonce: int,
    supply: tuple[Units, Units],
    governor: Address,
) -> dict[str, bytes]:
    """Data of the creating transactions, in order; `supply`: the token's cap and its genesis allocation."""
    known: tuple[AbiValue, ...] = tuple(getattr(addresses, item.name) for item in fields(addresses))
    genesis: tuple[AbiValue, ...] = (
        known,
        params_to_abi(spec.chain),
        spec.hash(),
        nonce,
        governor,
        ZERO_ADDRESS,
    )
    arguments: dict[str, tuple[AbiValue, ...]] = dict.fromkeys(_CONTRACT_OF, (genesis,))
    arguments["token"] = (addresses.rewards, *supply)
    arguments["beacon"] = ()
    return {
        name: contract_abi(contract).creation(arguments[name])
        for name, contract in _CONTRACT_OF.items()
    }


def _check_addresses(addresses: ContractAddresses, receipts: dict[str, Receipt]) -> None:
    for name, receipt in receipts.items():
        if receipt.contract != getattr(addresses, name):
            raise NotDeployed(
                f"the {name} contract landed at {receipt.contract}, not at {getattr(addresses, name)}",
                "the deployer's key was used elsewhere meanwhile; deploy again with a fresh outbox",
            )


async def _check_run(run_file: RunFile, connection: Connection, cap: Units) -> None:
    """Asks the new contracts whether they are what was meant."""
    contracts = await join(run_file, connection)
    if await contracts.token.cap() != cap:
        raise RunMismatch("the token has another cap", "deploy again with a fresh outbox")
