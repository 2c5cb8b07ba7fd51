"""Settlement vectors shared with the Solidity tests: `python -m tests.scoring.vectors` writes them anew.

Keys are camelCase as in Solidity; bytes are 0x-prefixed hex, amounts and stakes decimal strings. A
slot without account has the zero address, a validator that did not reveal `revealed` false.
"""

from __future__ import annotations

import json
from pathlib import Path

from protocol.hashing import abi_words, keccak256
from protocol.ids import ZERO_ADDRESS, Epoch, Slot, Units
from protocol.settlement import (
    HALF_DEPTH,
    SettlementLeaf,
    SettlementTree,
    SumNode,
    cells_root,
    weights_root,
)
from scoring.consensus import Reveal, agreement, consensus_weights
from scoring.settlement import EarlierLeaf, EpochFacts, ValidatorSeat, settle
from scoring.weights import encode_weights
from tests.scoring.peers import peer

FILE = Path(__file__).parents[1] / "vectors" / "settlement.json"
Cell = tuple[bytes, int]


def hexed(value: bytes) -> str:
    return "0x" + value.hex()


def cell_levels(values: dict[Slot, int]) -> list[list[Cell]]:
    """Every node of a cells tree, leaves first: the definition, without any shortcut."""
    leaf_tag, node_tag = (
        keccak256(b"syntience.cells.leaf.v1"),
        keccak256(b"syntience.cells.node.v1"),
    )
    level: list[Cell] = [
        (keccak256(abi_words(leaf_tag, slot, values[Slot(slot)])), values[Slot(slot)])
        if slot in values
        else (bytes(32), 0)
        for slot in range(1 << HALF_DEPTH)
    ]
    levels = [level]
    joined: dict[tuple[Cell, Cell], Cell] = {}
    while len(level) > 1:
        pairs = list(zip(level[::2], level[1::2], strict=True))
        for left, right in pairs:
            if (left, right) not in joined:
                words = abi_words(node_tag, left[0], left[1], right[0], right[1])
                joined[left, right] = keccak256(words), left[1] + right[1]
        level = [joined[pair] for pair in pairs]
        levels.append(level)
    return levels


def cell_proof(levels: list[list[Cell]], slot: int) -> list[Cell]:
    """Siblings of a cell, bottom-up."""
    return [levels[height][(slot >> height) ^ 1] for height in range(HALF_DEPTH)]


def consensus_vectors() -> object:
    cases = [
        ([100], [[5, 0, 65535]]),
        ([50, 50], [[9, 4], [2, 8]]),
        ([51, 49], [[9, 4], [2, 8]]),
        ([30, 30, 40], [[9, 1], [5, 1], [2, 7]]),
        ([60, 40], [[7], [7, 7]]),
        ([60, 40], [[], [7, 7]]),
        ([10**27, 10**27, 10**27 - 1], [[65535, 1, 0], [65534, 2, 9], [0, 3, 9]]),
        ([3, 3, 3, 3, 3], [[10], [20], [30], [40], [50]]),
    ]
    return [
        {
            "stakes": [str(stake) for stake in stakes],
            "weights": [hexed(encode_weights(vector)) for vector in vectors],
            "weightsRoots": [hexed(weights_root(encode_weights(vector))) for vector in vectors],
            "consensus": list(consensus_weights(reveals)),
        }
        for stakes, vectors in cases
        for reveals in [
            [
                Reveal(validator=peer(i), slot=Slot(i), stake=Units(stake), weights=tuple(vector))
                for i, (stake, vector) in enumerate(zip(stakes, vectors, strict=True))
            ]
        ]
    ]


def cells_vectors() -> object:
    return [
        _cells(values, probes)
        for values, probes in (
            ({}, [0]),
            ({0: 0}, [0, 1]),
            ({0: 7}, [0, 4095]),
            ({0: 10, 1: 30, 3: 0, 4095: 65535}, [0, 1, 2, 3, 4095]),
        )
    ]


def _cells(plain: dict[int, int], probes: list[int]) -> object:
    values = {Slot(slot): value for slot, value in plain.items()}
    levels = cell_levels(values)
    return {
        "slots": list(plain),
        "values": list(plain.values()),
        "root": hexed(cells_root(values)),
        "sum": sum(plain.values()),
        "openings": [
            {
                "slot": slot,
                "exists": slot in plain,
                "value": plain.get(slot, 0),
                "siblings": [
                    {"hash": hexed(digest), "sum": total}
                    for digest, total in cell_proof(levels, slot)
                ],
            }
            for slot in probes
        ],
    }


EPOCHS = (
    EpochFacts(
        epoch=Epoch(1),
        miners={Slot(0): peer(0)},
        validators={Slot(0): ValidatorSeat(account=peer(100), stake=Units(1000 * 10**18))},
        reveals={Slot(0): (65535,)},
        pot=Units(1000 * 10**18),
        miners_bps=6000,
        earlier={},
    ),
    EpochFacts(
        epoch=Epoch(5),
        miners={Slot(0): peer(0), Slot(1): peer(1), Slot(3): peer(3), Slot(4): peer(4)},
        validators={
            Slot(0): ValidatorSeat(account=peer(100), stake=Units(60 * 10**18)),
            Slot(1): ValidatorSeat(account=peer(101), stake=Units(40 * 10**18 + 1)),
            Slot(2): ValidatorSeat(account=peer(102), stake=Units(20 * 10**18)),
            Slot(4): ValidatorSeat(account=peer(104), stake=Units(30 * 10**18)),
        },
        reveals={
            Slot(0): (20000, 30000, 500, 15035, 0),
            Slot(1): (25000, 20000, 9000, 11535),
            Slot(4): (),
        },
        pot=Units(1000 * 10**18 + 7),
        miners_bps=6000,
        earlier={
            peer(1): EarlierLeaf(epoch=Epoch(3), cumulative=Units(7 * 10**18)),
            peer(102): EarlierLeaf(epoch=Epoch(4), cumulative=Units(123)),
        },
    ),
    EpochFacts(
        epoch=Epoch(9),
        miners={},
        validators={Slot(31): ValidatorSeat(account=peer(131), stake=Units(1))},
        reveals={Slot(31): ()},
        pot=Units(10),
        miners_bps=0,
        earlier={},
    ),
)


def settlement_vectors() -> object:
    return [_epoch(facts) for facts in EPOCHS]


def _epoch(facts: EpochFacts) -> object:
    tree = settle(facts)
    if tree is None:
        raise AssertionError("the vectors' epochs have a quorum")
    consensus = consensus_weights(facts.all_reveals())
    return {
        "epoch": facts.epoch,
        "pot": str(facts.pot),
        "minersBps": facts.miners_bps,
        "minerAccounts": [
            facts.miners.get(Slot(slot), ZERO_ADDRESS)
            for slot in range(max(facts.miners, default=-1) + 1)
        ],
        "validators": [
            {
                "slot": slot,
                "account": seat.account,
                "stake": str(seat.stake),
                "revealed": slot in facts.reveals,
                "weights": hexed(encode_weights(facts.reveals.get(slot, ()))),
            }
            for slot, seat in facts.validators.items()
        ],
        "earlier": [
            {"account": account, "epoch": leaf.epoch, "cumulative": str(leaf.cumulative)}
            for account, leaf in facts.earlier.items()
        ],
        "cells": {
            str(reveal.slot): [
                agreement(reveal, consensus, facts.miners).get(Slot(slot), 0)
                for slot in range(max(facts.miners, default=-1) + 1)
            ]
            for reveal in facts.all_reveals()
        },
        "leaves": [_leaf(tree, leaf) for leaf in tree.leaves.values()],
        "emptySiblings": [_node(node) for node in tree.proof(2)],
        "miners": _node(tree.miners),
        "validatorsNode": _node(tree.validators),
        "root": _node(tree.root),
    }


def _leaf(tree: SettlementTree, leaf: SettlementLeaf) -> object:
    return {
        "index": leaf.index,
        "account": leaf.account,
        "w": str(leaf.w),
        "amount": str(leaf.amount),
        "cumulative": str(leaf.cumulative),
        "prevEpoch": leaf.prev_epoch,
        "cells": hexed(leaf.cells),
        "hash": hexed(leaf.node(tree.epoch).hash),
        "siblings": [_node(node) for node in tree.proof(leaf.index)],
    }


def _node(node: SumNode) -> object:
    return {"hash": hexed(node.hash), "w": str(node.w), "amount": str(node.amount)}


def render() -> str:
    """The file's text as it must be committed."""
    vectors = {
        "consensus": consensus_vectors(),
        "cells": cells_vectors(),
        "settlements": settlement_vectors(),
    }
    return json.dumps(vectors, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    FILE.write_text(render())
