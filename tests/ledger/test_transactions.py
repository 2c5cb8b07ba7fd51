"""Encoding of transactions against eth-account, and of receipts."""

from __future__ import annotations

import pytest
from eth_account import Account
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import RpcUnavailable
from ledger.keys import LocalSigner
from ledger.transactions import (
    Call,
    Fees,
    Receipt,
    contract_address,
    log_from_rpc,
    rlp,
    sign_transaction,
)
from protocol.ids import Address, address_bytes, to_address

KEY = b"\x44" * 32
SIGNER = LocalSigner(KEY)
TO = to_address(b"\x99" * 20)

amounts = st.one_of(st.just(0), st.integers(1, 2**64), st.integers(2**64, 2**96))


@given(
    to=st.sampled_from([TO, None]),
    data=st.binary(max_size=300),
    value=amounts,
    nonce=st.integers(0, 2**40),
    chain_id=st.integers(1, 2**40),
    legacy=st.booleans(),
)
def test_sign_transaction__any__same_bytes_as_eth_account(
    to: Address | None, data: bytes, value: int, nonce: int, chain_id: int, legacy: bool
) -> None:
    fees = Fees(maximum=2_000_000_007, priority=None if legacy else 1_000_000_000)
    mine = sign_transaction(
        Call(to=to, data=data, value=value, label="x"),
        signer=SIGNER,
        chain_id=chain_id,
        nonce=nonce,
        gas=123_456,
        fees=fees,
    )
    fields: dict[str, object] = {
        "to": to or b"",
        "data": data,
        "value": value,
        "nonce": nonce,
        "gas": 123_456,
        "chainId": chain_id,
    }
    if legacy:
        fields["gasPrice"] = fees.maximum
    else:
        fields |= {"maxFeePerGas": fees.maximum, "maxPriorityFeePerGas": fees.priority, "type": 2}
    theirs = Account.sign_transaction(fields, KEY)
    assert mine.raw == bytes(theirs.raw_transaction)
    assert mine.hash == bytes(theirs.hash)


@pytest.mark.parametrize(
    ("item", "encoded"),
    [
        (b"dog", "83646f67"),
        ([b"cat", b"dog"], "c88363617483646f67"),
        (b"", "80"),
        ([], "c0"),
        (b"\x00", "00"),
        (b"\x0f", "0f"),
        (b"\x04\x00", "820400"),
        ([[], [[]], [[], [[]]]], "c7c0c1c0c3c0c1c0"),
        (b"a" * 56, "b838" + "61" * 56),
    ],
)
def test_rlp__known_vectors__as_published(item: object, encoded: str) -> None:
    assert rlp(item).hex() == encoded  # type: ignore[arg-type]  # nested literals


def test_contract_address__known_vector__as_mainnet_has_it() -> None:
    creator = to_address("0x6ac7ea33f8831ea9dcc53393aaa88b25a785dbf0")
    expected = [
        "0xcd234a471b72ba2f1ccf0a70fcaba648a5eecd8d",
        "0x343c43a37d37dff08ae8c4a11544c718abb4fcf8",
        "0xf778b86fa74e846c4f0a1fbd1335fe81c00a0c91",
    ]
    for nonce, address in enumerate(expected):
        assert contract_address(creator, nonce) == to_address(address)
    assert len(address_bytes(contract_address(creator, 300))) == 20


def _receipt(**changes: object) -> dict[str, object]:
    return {
        "transactionHash": "0x" + "11" * 32,
        "blockNumber": "0x5",
        "blockHash": "0x" + "22" * 32,
        "status": "0x1",
        "gasUsed": "0x5208",
        "effectiveGasPrice": "0x7",
        "contractAddress": None,
        "logs": [],
        **changes,
    }


def test_receipt__well_formed__is_read() -> None:
    receipt = Receipt.from_rpc(_receipt())  # type: ignore[arg-type]  # objects stand for JSON
    assert (receipt.block, receipt.succeeded, receipt.gas_used) == (5, True, 21_000)


@pytest.mark.parametrize(
    "changes",
    [
        {"blockNumber": 5},
        {"blockNumber": "5"},
        {"blockNumber": "0xzz"},
        {"blockHash": "0x22"},
        {"status": None},
        {"logs": "none"},
        {"logs": [{"address": "0x"}]},
    ],
)
def test_receipt__malformed__is_the_nodes_fault(changes: dict[str, object]) -> None:
    with pytest.raises(RpcUnavailable):
        Receipt.from_rpc(_receipt(**changes))  # type: ignore[arg-type]  # objects stand for JSON


def test_log__missing_field__is_the_nodes_fault() -> None:
    with pytest.raises(RpcUnavailable, match="left out"):
        log_from_rpc({})
