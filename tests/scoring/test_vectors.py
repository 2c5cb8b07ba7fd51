"""The shared settlement vectors are what the code says, and a plain climb agrees with them."""

from __future__ import annotations

import json

import pytest

from protocol.hashing import abi_words, keccak256
from protocol.settlement import MAX_MINERS
from tests.scoring import vectors

COMMITTED = json.loads(vectors.FILE.read_text())


def test_vectors__committed_file__equals_the_code() -> None:
    assert vectors.FILE.read_text() == vectors.render(), "run `python -m tests.scoring.vectors`"


def unhexed(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


@pytest.mark.parametrize("case", COMMITTED["cells"])
def test_cells__every_opening__climbs_to_the_root(case: dict[str, object]) -> None:
    leaf_tag, node_tag = (
        keccak256(b"syntience.cells.leaf.v1"),
        keccak256(b"syntience.cells.node.v1"),
    )
    for opening in case["openings"]:  # type: ignore[attr-defined]
        slot, value = opening["slot"], opening["value"]
        digest = keccak256(abi_words(leaf_tag, slot, value)) if opening["exists"] else bytes(32)
        total = value
        for height, sibling in enumerate(opening["siblings"]):
            pair = [(digest, total), (unhexed(sibling["hash"]), sibling["sum"])]
            if slot >> height & 1:
                pair.reverse()
            digest = keccak256(abi_words(node_tag, *pair[0], *pair[1]))
            total += sibling["sum"]
        assert (digest, total) == (unhexed(str(case["root"])), case["sum"])


@pytest.mark.parametrize("case", COMMITTED["settlements"])
def test_settlement__every_leaf__climbs_to_the_root_and_is_paid_its_part(
    case: dict[str, object],
) -> None:
    leaf_tag = keccak256(b"syntience.settlement.leaf.v1")
    node_tag = keccak256(b"syntience.settlement.node.v1")
    root, halves = case["root"], (case["miners"], case["validatorsNode"])
    pot, bps = int(str(case["pot"])), int(str(case["minersBps"]))
    shares = (pot * bps // 10_000, pot - pot * bps // 10_000)
    for leaf in case["leaves"]:  # type: ignore[attr-defined]
        w, amount = int(leaf["w"]), int(leaf["amount"])
        half: dict[str, str] = halves[leaf["index"] >= MAX_MINERS]  # type: ignore[assignment]
        share = shares[leaf["index"] >= MAX_MINERS]
        assert amount == (share * w // int(half["w"]) if int(half["w"]) else 0)
        words = abi_words(
            leaf_tag,
            int(str(case["epoch"])),
            leaf["index"],
            leaf["account"],
            w,
            amount,
            int(leaf["cumulative"]),
            leaf["prevEpoch"],
            unhexed(leaf["cells"]),
        )
        node = (keccak256(words), w, amount)
        assert node[0] == unhexed(leaf["hash"])
        for height, sibling in enumerate(leaf["siblings"]):
            other = (unhexed(sibling["hash"]), int(sibling["w"]), int(sibling["amount"]))
            pair = (other, node) if leaf["index"] >> height & 1 else (node, other)
            digest = keccak256(abi_words(node_tag, *pair[0], *pair[1]))
            node = (digest, node[1] + other[1], node[2] + other[2])
        assert node == (
            unhexed(root["hash"]),  # type: ignore[index]
            int(root["w"]),  # type: ignore[index]
            int(root["amount"]),  # type: ignore[index]
        )
