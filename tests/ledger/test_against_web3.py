"""The same calls, logs and receipts through web3.py, an independent implementation, on a real chain."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from web3 import HTTPProvider, Web3
from web3.contract import Contract as PeerContract

from ledger.abi import contract_abi
from ledger.contracts.epochs import params_to_abi
from ledger.contracts.registry import Role
from ledger.event_types import Deposited, Registered
from protocol.beacon import Purpose
from protocol.ids import Address, Round
from tests.chain import ROOT, Anvil
from tests.ledger.world import deployed
from tests.specs import CHAIN


def peer(anvil: Anvil, name: str, address: Address) -> PeerContract:
    """The contract as web3 sees it, from the same packaged interface."""
    abi = json.loads((ROOT / "ledger" / "abi" / f"{name}.json").read_text())["abi"]
    web3 = Web3(HTTPProvider(anvil.url))
    return web3.eth.contract(address=Web3.to_checksum_address(address), abi=abi)


@pytest.mark.timeout(60)
async def test_views_and_events__against_web3__say_the_same(
    own_anvil: Anvil, tmp_path: Path
) -> None:
    async with deployed(own_anvil, tmp_path) as world:
        miner = await world.join(Role.MINER, CHAIN.min_miner_stake)
        await world.reader.poll()
        contracts = world.contracts.addresses
        epochs = peer(own_anvil, "EpochManager", contracts.epochs)
        ours = params_to_abi(await world.contracts.epochs.params())
        assert tuple(epochs.functions.params().call()) == ours

        registry = peer(own_anvil, "Registry", contracts.registry)
        theirs = registry.events.Registered.get_logs(from_block=0)
        found = world.reader.events(Registered)
        assert [(log.args.account, log.args.slot, log.blockNumber) for log in theirs] == [
            (event.account, event.slot, event.block) for event in found
        ]
        assert miner.account in [event.account for event in found]

        vault = peer(own_anvil, "StakeVault", contracts.vault)
        deposits = vault.events.Deposited.get_logs(from_block=0)
        assert [(log.args.account, log.args.amount) for log in deposits] == [
            (event.account, event.amount) for event in world.reader.events(Deposited)
        ]


def test_call_data__against_web3__is_the_same(anvil: Anvil) -> None:
    nowhere = Address("0x" + "0" * 38 + "Ee")
    epochs = peer(anvil, "EpochManager", nowhere)
    cases: list[tuple[str, tuple[int | bytes, ...]]] = [
        ("commit", (Round(7), b"\x11" * 32)),
        ("attest", (Round(2**63), b"\x22" * 32, bytes(range(70)))),
        ("fixBeacon", (Round(1), int(Purpose.EVALUATION))),
    ]
    for name, arguments in cases:
        theirs = epochs.encode_abi(name, args=list(arguments))
        ours = contract_abi("EpochManager").function(name).encode_call(arguments)
        assert theirs == "0x" + ours.hex(), name
