"""The packaged interfaces: their codec, what reverts say, and that records and wrappers fit them."""

from __future__ import annotations

import dataclasses
import json
import subprocess

import pytest

from ledger.abi import CONTRACT_NAMES, Interface, contract_abi, decode, encode, parse_abi
from ledger.contracts.base import Values
from ledger.contracts.epochs import params_from_abi, params_to_abi
from ledger.errors import FixableRevert, Undecodable, UnexpectedRevert
from ledger.event_decoding import _field, all_events, decode_event, event_kinds, field_names
from ledger.event_types import Committed
from ledger.reverts import FIXES, decode_revert, revert_error
from ledger.transactions import LogRecord
from protocol.errors import Bug, OperatorError
from protocol.ids import Hash32, to_address
from protocol.spec import ChainParams
from protocol.submission import Submission
from tests.chain import ROOT
from tests.specs import CHAIN

ONE, TWO = to_address(b"\xab" * 20), to_address(b"\xcd" * 20)
UNREAD_EVENTS = {"EIP712DomainChanged", "Approval", "Transfer"}


@pytest.mark.parametrize(
    ("types", "values"),
    [
        (["address", "uint256"], (ONE, 7)),
        (["address[]", "bytes"], ((ONE, TWO), b"xyz")),
        (["(address,(uint8,address)[2])"], ((ONE, ((1, ONE), (2, TWO))),)),
        (["(bytes32,address)[]", "string"], (((bytes(32), ONE), (b"\x01" * 32, TWO)), "é")),
    ],
)
def test_codec__nested_addresses__come_back_checksummed(
    types: list[str], values: tuple[object, ...]
) -> None:
    assert decode(types, encode(types, values)) == values  # type: ignore[arg-type]  # literals


def test_codec__wrong_values__are_our_bug() -> None:
    for types, values in ((["uint8"], (256,)), (["address"], (1,)), (["uint8"], ())):
        with pytest.raises(Bug):
            encode(types, values)


@pytest.mark.parametrize("data", [b"", bytes(31), b"\xff" * 32])
def test_codec__wrong_data__is_undecodable(data: bytes) -> None:
    with pytest.raises(Undecodable):
        decode(["uint64"], data)


def test_parse_abi__overloaded_function__is_refused() -> None:
    entry = {"type": "function", "name": "f", "inputs": [], "outputs": []}
    other = {**entry, "inputs": [{"name": "a", "type": "uint256"}]}
    with pytest.raises(Bug, match="overloaded"):
        parse_abi("X", [entry, other])


def test_contract_abi__not_packaged__says_what_to_do() -> None:
    with pytest.raises(OperatorError, match="scripts/abi"):
        contract_abi("NoSuchContract")


def test_function__unknown__is_our_bug() -> None:
    with pytest.raises(Bug, match="no function"):
        contract_abi("Registry").function("nothing")


def test_records__of_all_events__fit_the_interfaces() -> None:
    kinds = event_kinds()
    for contract in CONTRACT_NAMES:
        for topic, interface in contract_abi(contract).events.items():
            if interface.name in UNREAD_EVENTS:
                assert (contract, topic) not in kinds
                continue
            kind = kinds[contract, topic]
            assert kind.__name__ == interface.name
            assert field_names(kind) == [_field(item.name) for item in interface.inputs]
    assert len(kinds) == sum(1 + len(kind.ALSO) for kind in all_events())


def test_params__both_ways__same_order_as_the_struct() -> None:
    struct = contract_abi("EpochManager").function("params")
    document = json.loads((ROOT / "ledger/abi/EpochManager.json").read_text())
    entry = next(item for item in document["abi"] if item.get("name") == "params")
    named = [item["name"].replace("KiB", "Kib") for item in entry["outputs"][0]["components"]]
    assert [_field(name) for name in named] == [
        item.name for item in dataclasses.fields(ChainParams)
    ]
    data = encode([struct.outputs[0].type], (params_to_abi(CHAIN),))
    assert params_from_abi(Values(struct.decode_result(data)).record(0)) == CHAIN


def test_submission__fields__same_order_as_the_struct() -> None:
    document = json.loads((ROOT / "ledger/abi/ObjectiveFaults.json").read_text())
    entry = next(item for item in document["abi"] if item.get("name") == "submissionDigest")
    names = [_field(item["name"]) for item in entry["inputs"][0]["components"]]
    assert names == [item.name for item in dataclasses.fields(Submission)]


def _error(contract: str, name: str) -> Interface:
    return next(item for item in contract_abi(contract).errors.values() if item.name == name)


def test_revert__custom_error__name_arguments_and_fix() -> None:
    error = _error("Registry", "StakeTooLow")
    data = error.selector + encode([item.type for item in error.inputs], (ONE, 5, 10))
    refusal = revert_error(data, label="Registry.register")
    assert isinstance(refusal, FixableRevert)
    assert isinstance(refusal, OperatorError)
    assert refusal.name == "StakeTooLow"
    assert refusal.arguments == {"account": ONE, "active": 5, "minimum": 10}
    assert refusal.data == data
    text = str(refusal)
    assert "Registry.register was refused with StakeTooLow(" in text
    assert "stake deposit" in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("data", "name", "arguments"),
    [
        (b"", "Empty", {}),
        (b"\x01\x02\x03\x04", "Unknown", {"data": b"\x01\x02\x03\x04"}),
        (bytes.fromhex("4e487b71") + (17).to_bytes(32, "big"), "Panic", {"code": 17}),
        (bytes.fromhex("08c379a0") + encode(["string"], ("why",)), "Error", {"reason": "why"}),
        (bytes.fromhex("08c379a0") + b"torn", "Error", {"data": b"torn"}),
    ],
)
def test_revert__other_kinds__are_named(
    data: bytes, name: str, arguments: dict[str, object]
) -> None:
    assert decode_revert(data) == (name, arguments)
    refusal = revert_error(data, label="x", tx_hash=Hash32(b"\x07" * 32))
    assert isinstance(refusal, UnexpectedRevert)
    assert "0x" + "07" * 32 in str(refusal)


def test_fixes__every_name__is_an_error_of_a_contract() -> None:
    names = {item.name for name in CONTRACT_NAMES for item in contract_abi(name).errors.values()}
    assert set(FIXES) <= names


def test_decode_event__foreign_or_torn_log__is_told_apart() -> None:
    topic = next(key[1] for key, kind in event_kinds().items() if kind is Committed)
    log = LogRecord(
        address=ONE,
        topics=(b"\x00" * 32,),
        data=b"",
        block=1,
        block_hash=Hash32(bytes(32)),
        tx_hash=Hash32(bytes(32)),
        index=0,
    )
    assert decode_event("EpochManager", log) is None
    assert decode_event("EpochManager", dataclasses.replace(log, topics=())) is None
    with pytest.raises(Undecodable):
        decode_event("EpochManager", dataclasses.replace(log, topics=(topic,)))


def test_bytecode__of_forge_and_of_the_package__agrees() -> None:
    """The package's comes from py-solc-x (scripts/abi)."""
    done = subprocess.run(
        ["scripts/forge", "build", "contracts/src"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for name in CONTRACT_NAMES:
        built = json.loads((ROOT / "out" / f"{name}.sol" / f"{name}.json").read_text())
        assert built["bytecode"]["object"] == "0x" + contract_abi(name).bytecode.hex(), name
        shipped = json.loads((ROOT / f"ledger/abi/{name}.json").read_text())["abi"]
        assert sorted(built["abi"], key=_order) == sorted(shipped, key=_order), name


def _order(entry: dict[str, object]) -> str:
    return json.dumps(entry, sort_keys=True)
