"""Solidity against Python on the same random cases: what one computes on chain the other must know beforehand.

The harness (`contracts/test/base/Differential.sol`) lives on a chain and is called, many cases at a time. 200 cases of each
kind, and 10,000 with `FOUNDRY_PROFILE=long`.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ledger.abi import AbiValue, ContractAbi, parse_abi
from protocol.assignment import assigned_sample
from protocol.ids import Address, Epoch, Hash32, Round, Slot, Units, to_address
from protocol.settlement import (
    EMPTY_NODE,
    HALF_DEPTH,
    MAX_MINERS,
    CellTree,
    SettlementLeaf,
    SumNode,
    weights_root,
)
from scoring.consensus import Reveal, consensus_weights
from scoring.settlement import EarlierLeaf, EpochFacts, ValidatorSeat, settle
from scoring.weights import encode_weights
from tests.chain import ROOT, Anvil
from tests.scoring.peers import peer

LONG = os.environ.get("FOUNDRY_PROFILE") == "long"
CASES = 10_000 if LONG else 200
BATCH = 20
MOST_STAKE = (1 << 92) - 1
"""What a stake history holds at most."""

pytestmark = pytest.mark.timeout(3_600 if LONG else 120)
# A failing comparison shows its one case of the batch already; shrinking the rest would take minutes.
many = settings(
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    max_examples=CASES // BATCH,
    deadline=None,
    derandomize=not LONG,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

_Case = TypeVar("_Case")


@dataclass(frozen=True, slots=True, kw_only=True)
class Harness:
    """The deployed contract."""

    anvil: Anvil
    abi: ContractAbi
    address: Address

    def ask(self, function: str, *arguments: AbiValue) -> tuple[AbiValue, ...]:
        interface = self.abi.function(function)
        data = "0x" + interface.encode_call(arguments).hex()
        request = {"to": self.address, "data": data, "gas": hex(10**12)}
        answer = self.anvil.rpc("eth_call", request, "latest")
        return interface.decode_result(bytes.fromhex(answer[2:]))


@pytest.fixture(scope="session")
def harness(anvil: Anvil, tmp_path_factory: pytest.TempPathFactory) -> Harness:
    """Compiled on its own, so that neither forge's output nor its absence matters."""
    folder = tmp_path_factory.mktemp("forge")
    source = "contracts/test/base/Differential.sol"
    places = ["--out", str(folder / "out"), "--cache-path", str(folder / "cache")]
    command = [str(ROOT / "scripts" / "forge"), "build", source, *places]
    built = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert built.returncode == 0, built.stderr
    document = json.loads((folder / "out" / "Differential.sol" / "Differential.json").read_text())
    sender = anvil.rpc("eth_accounts")[0]
    creation = {"from": sender, "data": document["bytecode"]["object"], "gas": hex(16_000_000)}
    receipt = anvil.transact(creation)
    abi = parse_abi("Differential", document["abi"])
    return Harness(anvil=anvil, abi=abi, address=to_address(receipt["contractAddress"]))


def batches(case: st.SearchStrategy[_Case]) -> st.SearchStrategy[list[_Case]]:
    return st.lists(case, min_size=BATCH, max_size=BATCH)


hashes = st.binary(min_size=32, max_size=32).map(Hash32)
addresses = st.binary(min_size=20, max_size=20).map(to_address)
# Few different weights and stakes make ties, which is where a median goes wrong.
weights = st.one_of(st.integers(0, 3), st.integers(0, 65_535))
stakes = st.one_of(st.integers(0, 3), st.integers(0, MOST_STAKE)).map(Units)


@given(cases=batches(st.lists(st.tuples(weights, stakes), max_size=32)))
@many
def test_consensus__random_votes__python_and_contract_agree(
    harness: Harness, cases: list[list[tuple[int, Units]]]
) -> None:
    votes = tuple((tuple(w for w, _ in case), tuple(s for _, s in case)) for case in cases)
    (found,) = harness.ask("consensus", votes)
    for case, of_contract in zip(cases, as_tuple(found), strict=True):
        reveals = [
            Reveal(validator=peer(i), slot=Slot(i), stake=stake, weights=(weight,))
            for i, (weight, stake) in enumerate(case)
        ]
        assert (consensus_weights(reveals) or (0,)) == (of_contract,)


@given(cases=batches(st.lists(weights, max_size=600)))
@many
def test_weights_root__random_vectors__python_and_contract_agree(
    harness: Harness, cases: list[list[int]]
) -> None:
    vectors = tuple(encode_weights(case) for case in cases)
    (found,) = harness.ask("weightsRoots", vectors)
    assert as_tuple(found) == tuple(weights_root(vector) for vector in vectors)


@st.composite
def epochs(draw: st.DrawFn) -> EpochFacts:
    """An epoch with a few miners anywhere, some validators, and histories for some accounts."""
    epoch = Epoch(draw(st.integers(1, 1 << 20)))
    miner_slots = draw(st.sets(st.integers(0, MAX_MINERS - 1), max_size=5))
    validator_slots = draw(st.sets(st.integers(0, 31), min_size=1, max_size=3))
    miners = {Slot(slot): peer(slot) for slot in miner_slots}
    seats = {
        Slot(slot): ValidatorSeat(account=peer(MAX_MINERS + slot), stake=draw(stakes))
        for slot in validator_slots
    }
    rows = st.lists(weights, max_size=max(miner_slots, default=0) + 1)
    vectors: dict[Slot, tuple[int, ...]] = {slot: tuple(draw(rows)) for slot in seats}
    accounts = [*miners.values(), *(seat.account for seat in seats.values())]
    earlier: Mapping[Address, EarlierLeaf] = {
        account: EarlierLeaf(epoch=Epoch(epoch - 1), cumulative=Units(draw(st.integers(0, 10**27))))
        for account in draw(st.sets(st.sampled_from(accounts)))
        if epoch > 1
    }
    return EpochFacts(
        epoch=epoch,
        miners=miners,
        validators=seats,
        reveals=vectors,
        pot=Units(draw(st.integers(0, 10**25))),
        miners_bps=draw(st.integers(0, 10_000)),
        earlier=earlier,
    )


@given(cases=batches(epochs()), empty=st.integers(0, 2 * MAX_MINERS - 1))
@many
def test_settlement__random_epochs__every_leaf_leads_to_the_root(
    harness: Harness, cases: list[EpochFacts], empty: int
) -> None:
    paths: list[AbiValue] = []
    expected: list[tuple[AbiValue, AbiValue]] = []
    for facts in cases:
        tree = settle(facts)
        assert tree is not None
        assert tree.miners.amount <= facts.shares()[0]
        assert tree.validators.amount <= facts.shares()[1]
        for index in {*tree.leaves, empty}:
            leaf = tree.leaves.get(index)
            siblings = tuple(node(sibling) for sibling in tree.proof(index))
            paths.append((facts.epoch, leaf_row(leaf, index), siblings))
            half = tree.miners if index < MAX_MINERS else tree.validators
            expected.append((node(half), node(tree.root)))
    halves, roots = harness.ask("climb", tuple(paths))
    assert list(zip(as_tuple(halves), as_tuple(roots), strict=True)) == expected


@given(
    cases=batches(st.dictionaries(st.integers(0, MAX_MINERS - 1), weights, max_size=6)),
    other=st.integers(0, MAX_MINERS - 1),
)
@many
def test_cells__random_values__every_cell_leads_to_the_root(
    harness: Harness, cases: list[dict[int, int]], other: int
) -> None:
    paths: list[AbiValue] = []
    expected: list[tuple[AbiValue, AbiValue]] = []
    for case in cases:
        tree = CellTree({Slot(slot): value for slot, value in case.items()})
        for slot in {*case, other}:
            proof = tree.proof(Slot(slot))
            assert len(proof) == HALF_DEPTH
            paths.append((slot in case, slot, case.get(slot, 0), proof))
            expected.append((tree.root, sum(case.values())))
    roots, sums = harness.ask("climbCells", tuple(paths))
    assert list(zip(as_tuple(roots), as_tuple(sums), strict=True)) == expected


@given(
    cases=batches(
        st.tuples(
            hashes,
            st.integers(0, (1 << 64) - 1).map(Round),
            hashes,
            addresses,
            st.integers(0, (1 << 32) - 1),
            st.one_of(st.integers(1, 5), st.integers(1, (1 << 64) - 1)),
        )
    )
)
@many
def test_assignment__random_draws__python_and_contract_agree(
    harness: Harness, cases: list[tuple[Hash32, Round, Hash32, Address, int, int]]
) -> None:
    (found,) = harness.ask("samples", tuple(cases))
    assert as_tuple(found) == tuple(
        assigned_sample(
            run=run, round_=round_, beacon=beacon, miner=miner, index=index, train_samples=most
        )
        for run, round_, beacon, miner, index, most in cases
    )


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[tuple[int, int]], list[int]]:
    """Changes of a stake by ascending epoch, several in one among them, and epochs that are asked for."""
    steps = draw(st.lists(st.tuples(st.integers(0, 4), stakes), max_size=24))
    epoch = draw(st.integers(1, (1 << 24) - 100))
    changes = []
    for step, amount in steps:
        epoch += step
        changes.append((epoch, int(amount)))
    near = st.integers(max(0, epoch - 60), epoch + 5)
    return changes, draw(st.lists(st.one_of(near, st.integers(0, (1 << 64) - 1)), max_size=10))


@given(cases=batches(histories()))
@many
def test_stake_trace__random_histories__hold_from_their_epoch_on(
    harness: Harness, cases: list[tuple[list[tuple[int, int]], list[int]]]
) -> None:
    told = tuple((tuple(changes), tuple(asked)) for changes, asked in cases)
    (found,) = harness.ask("histories", told)
    for (changes, asked), of_contract in zip(cases, as_tuple(found), strict=True):
        amounts = [held(changes, epoch) for epoch in asked] + [held(changes, 1 << 64)]
        assert as_tuple(of_contract) == tuple(amounts)


def held(changes: list[tuple[int, int]], epoch: int) -> int:
    """The last change at or before an epoch: the definition."""
    return next((amount for at, amount in reversed(changes) if at <= epoch), 0)


def as_tuple(value: AbiValue) -> tuple[AbiValue, ...]:
    assert isinstance(value, tuple)
    return value


def node(of: SumNode) -> AbiValue:
    return (of.hash, of.w, of.amount)


def leaf_row(leaf: SettlementLeaf | None, index: int) -> AbiValue:
    if leaf is None:
        return (index, peer(-1), 0, 0, 0, 0, EMPTY_NODE.hash)
    return tuple(getattr(leaf, item.name) for item in fields(leaf))
