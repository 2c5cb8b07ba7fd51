"""The shared vectors are what the code says, and an independent library agrees."""

from __future__ import annotations

import pytest
from eth_account.messages import _hash_eip191_message, encode_typed_data

from tests.protocol import vectors


@pytest.mark.parametrize("name", sorted(vectors.VECTORS))
def test_vectors__committed_file__equals_the_code(name: str) -> None:
    committed = (vectors.FOLDER / name).read_text()
    assert committed == vectors.render(name), "run `python -m tests.protocol.vectors`"


def test_digest__against_eth_account__is_the_same_eip712() -> None:
    types = {
        "Submission": [
            {"name": "run", "type": "bytes32"},
            {"name": "specHash", "type": "bytes32"},
            {"name": "round", "type": "uint64"},
            {"name": "beacon", "type": "bytes32"},
            {"name": "miner", "type": "address"},
            {"name": "initialRoot", "type": "bytes32"},
            {"name": "localFromRound", "type": "uint64"},
            {"name": "localIn", "type": "bytes32"},
            {"name": "localOut", "type": "bytes32"},
            {"name": "dataRoot", "type": "bytes32"},
            {"name": "payloadRoot", "type": "bytes32"},
            {"name": "payloadBytes", "type": "uint64"},
            {"name": "traceRoot", "type": "bytes32"},
            {"name": "steps", "type": "uint32"},
        ]
    }
    submission = vectors.SUBMISSION
    message = {
        "run": submission.run,
        "specHash": submission.spec_hash,
        "round": submission.round,
        "beacon": submission.beacon,
        "miner": submission.miner,
        "initialRoot": submission.initial_root,
        "localFromRound": submission.local_from_round,
        "localIn": submission.local_in,
        "localOut": submission.local_out,
        "dataRoot": submission.data_root,
        "payloadRoot": submission.payload_root,
        "payloadBytes": submission.payload_bytes,
        "traceRoot": submission.trace_root,
        "steps": submission.steps,
    }
    domain = {
        "name": "Syntience",
        "version": "1",
        "chainId": vectors.CHAIN_ID,
        "verifyingContract": vectors.REGISTRY,
    }
    signable = encode_typed_data(domain, types, message)
    assert bytes(_hash_eip191_message(signable)) == submission.digest(vectors.DOMAIN)
