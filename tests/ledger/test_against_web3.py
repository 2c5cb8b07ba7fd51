"""The same calls, logs and receipts through web3.py, an independent implementation, on a real chain."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest
from web3 import HTTPProvider, Web3
from web3.contract import Contract as PeerContract

from ledger.contracts import Contracts
from ledger.contracts.epochs import params_to_abi
from ledger.contracts.registry import Role
from ledger.event_decoding import _field
from ledger.event_types import Deposited, PauseEnded, PauseStarted, Registered, TermsAnnounced
from ledger.transactions import Call
from protocol.beacon import Purpose
from protocol.hashing import keccak256
from protocol.ids import Address, Epoch, Hash32, Round, Slot, Units, to_address
from protocol.runfile import ContractAddresses
from protocol.settlement import SettlementLeaf, SumNode
from protocol.terms import terms_of
from tests.chain import ROOT, Anvil
from tests.ledger.world import deployed
from tests.specs import CHAIN, SPEC


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


@pytest.mark.timeout(60)
async def test_terms_and_pauses__against_web3__say_the_same(
    own_anvil: Anvil, tmp_path: Path
) -> None:
    async with deployed(own_anvil, tmp_path) as world:
        ours = world.contracts.epochs
        await world.act(world.governor, ours.pause_call())
        await world.act(world.governor, ours.resume_call())
        await world.reader.poll()
        epochs = peer(own_anvil, "EpochManager", ours.address)
        pause = epochs.functions.pauseState().call()
        assert pause == tuple(_plain(each) for each in _values(await ours.pause_state()))
        theirs = epochs.functions.schedule().call()
        assert theirs == [_values(terms) for terms in await ours.schedule()]
        for kind in (TermsAnnounced, PauseStarted, PauseEnded):
            logs = getattr(epochs.events, kind.__name__).get_logs(from_block=0)
            found = world.reader.events(kind)
            assert len(logs) == len(found) == 1
            for name, value in logs[0].args.items():
                mine = getattr(found[0], _field(name))
                assert (
                    (tuple(value.values()) == _values(mine)) if name == "terms" else value == mine
                )


def _values(record: object) -> tuple[object, ...]:
    return tuple(getattr(record, item.name) for item in fields(record))  # type: ignore[arg-type]  # any dataclass


def _plain(value: object) -> object:
    """None stands for a 0 of the contract."""
    return 0 if value is None else value


NOWHERE = to_address(bytes(19) + b"\xee")
TERMS = terms_of(SPEC, from_epoch=Epoch(9), judge=NOWHERE)
NODE = SumNode(hash=Hash32(b"\x33" * 32), w=5, amount=Units(2**100))
LEAF = SettlementLeaf(
    index=4097,
    account=NOWHERE,
    w=2**90,
    amount=Units(3),
    cumulative=Units(2**95),
    prev_epoch=Epoch(2),
    cells=Hash32(b"\x44" * 32),
)


def test_call_data__against_web3__is_the_same(anvil: Anvil) -> None:
    contracts = Contracts(
        None,  # type: ignore[arg-type]  # nothing is asked
        ContractAddresses(**{item.name: NOWHERE for item in fields(ContractAddresses)}),
    )
    epochs, scores, rewards = contracts.epochs, contracts.scores, contracts.rewards
    root, salt = Hash32(b"\x22" * 32), Hash32(b"\x55" * 32)
    bitmaps = {Slot(3): bytes(range(70)), Slot(0): b""}
    hashes = [keccak256(b""), keccak256(bytes(range(70)))]
    leaf, packed = _values(LEAF), (NODE.hash, 5 << 128 | 2**100)
    cases: list[tuple[Call, list[object]]] = [
        (epochs.commit_call(Round(7), root), [7, root]),
        (epochs.attest_call(Round(2**63), root, bytes(70)), [2**63, root, bytes(70)]),
        (epochs.fix_beacon_call(Round(1), Purpose.EVALUATION), [1, 2]),
        (epochs.finalise_root_call(Round(1), root, bitmaps), [1, root, hashes, 0b1001]),
        (epochs.announce_terms_call(TERMS), [_values(TERMS)]),
        (
            scores.reveal_weights_call(
                Epoch(2), slot=Slot(3), account=NOWHERE, weights=bytes(7), salt=salt
            ),
            [2, 3, NOWHERE, bytes(7), salt],
        ),
        (rewards.claim_call(Epoch(2), LEAF, [NODE] * 13), [2, leaf, [packed] * 13]),
        (
            rewards.post_settlement_call(Epoch(2), miners=NODE, validators=NODE),
            [2, _values(NODE), _values(NODE)],
        ),
        (rewards.finalise_settlement_call(Epoch(2), 4), [2, 4]),
        (contracts.verdicts.pay_bounty_call(NOWHERE, Round(5)), [NOWHERE, 5]),
    ]
    for call, arguments in cases:
        contract, function = call.label.split(".")
        theirs = peer(anvil, contract, NOWHERE).encode_abi(function, args=arguments)
        assert theirs == "0x" + call.data.hex(), call.label
