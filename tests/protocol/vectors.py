"""Vectors shared with the Solidity tests: `python -m tests.protocol.vectors` writes them anew.

Keys are camelCase as in Solidity; bytes are 0x-prefixed hex. The test suite fails when the files
and this module disagree, and the Foundry tests read the same files.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from protocol.assignment import assigned_samples
from protocol.beacon import Purpose, beacon_value
from protocol.hashing import keccak256
from protocol.ids import Address, Hash32, Round, to_address
from protocol.merkle import MerkleTree, leaf_hash
from protocol.submission import Domain, Submission, operator_consent_digest, run_id

FOLDER = Path(__file__).parents[1] / "vectors"
CHAIN_ID = 31337
REGISTRY = to_address("0x" + "11" * 20)
MINER = to_address("0x" + "22" * 20)


def hash_of(label: str) -> Hash32:
    """A readable way to make distinct 32-byte values."""
    return Hash32(keccak256(label.encode()))


def hexed(value: bytes) -> str:
    return "0x" + value.hex()


RUN = run_id(chain_id=CHAIN_ID, registry=REGISTRY, nonce=7)
DOMAIN = Domain(chain_id=CHAIN_ID, registry=REGISTRY)
SUBMISSION = Submission(
    run=RUN,
    spec_hash=hash_of("spec"),
    round=Round(5),
    beacon=hash_of("beacon"),
    miner=MINER,
    initial_root=hash_of("initial"),
    local_from_round=Round(4),
    local_in=hash_of("in"),
    local_out=hash_of("out"),
    data_root=hash_of("data"),
    payload_root=hash_of("payload"),
    payload_bytes=12345,
    trace_root=hash_of("trace"),
    steps=10,
)


def merkle_vectors() -> object:
    cases = []
    for size in (1, 2, 3, 5, 8, 13):
        tree = MerkleTree([leaf_hash(f"leaf {i}".encode()) for i in range(size)])
        cases.append(
            {
                "leaves": [hexed(leaf) for leaf in tree.leaves],
                "depth": tree.depth,
                "root": hexed(tree.root),
                "proofs": [[hexed(s) for s in tree.proof(i)] for i in range(size)],
            }
        )
    return {"leafOfAbc": hexed(leaf_hash(b"abc")), "cases": cases}


def submission_vectors() -> object:
    cases = []
    for submission in (
        SUBMISSION,
        replace(SUBMISSION, round=Round(2**64 - 1), payload_bytes=0, steps=2**32 - 1),
    ):
        fields = {_camel(k): v for k, v in submission.to_json().items()}
        for key, value in fields.items():
            if isinstance(value, str) and not value.startswith("0x"):
                fields[key] = "0x" + value
        cases.append(
            {
                "submission": fields,
                "structHash": hexed(submission.struct_hash()),
                "digest": hexed(submission.digest(DOMAIN)),
            }
        )
    consent = operator_consent_digest(domain=DOMAIN, run=RUN, account=MINER, nonce=3)
    return {
        "chainId": CHAIN_ID,
        "registry": REGISTRY,
        "runNonce": 7,
        "run": hexed(RUN),
        "domainSeparator": hexed(DOMAIN.separator()),
        "cases": cases,
        "consent": {"account": MINER, "nonce": 3, "digest": hexed(consent)},
    }


def assignment_vectors() -> object:
    cases = []
    for round_, miner, train in (
        (1, MINER, 1000),
        (9, Address(REGISTRY), 1),
        (2**40, MINER, 2**31 - 1),
    ):
        samples = assigned_samples(
            run=RUN,
            round_=Round(round_),
            beacon=hash_of("beacon"),
            miner=miner,
            count=6,
            train_samples=train,
        )
        cases.append(
            {
                "round": round_,
                "miner": miner,
                "trainSamples": train,
                "samples": list(samples),
            }
        )
    values = [
        hexed(beacon_value(block_hash=hash_of("block"), run=RUN, round_=Round(3), purpose=purpose))
        for purpose in Purpose
    ]
    return {
        "run": hexed(RUN),
        "beacon": hexed(hash_of("beacon")),
        "cases": cases,
        "beaconValue": {
            "blockHash": hexed(hash_of("block")),
            "round": 3,
            "assignment": values[0],
            "evaluation": values[1],
        },
    }


VECTORS = {
    "merkle.json": merkle_vectors,
    "submission.json": submission_vectors,
    "assignment.json": assignment_vectors,
}


def render(name: str) -> str:
    """The file's text as it must be committed."""
    return json.dumps(VECTORS[name](), indent=1, sort_keys=True) + "\n"


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(part.capitalize() for part in tail)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file in VECTORS:
        (FOLDER / file).write_text(render(file))
