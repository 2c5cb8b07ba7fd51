"""The contracts' arithmetic against Python's, through the EVM: a few thousand vectors of each operation.

`scripts/bench/float32` compares 200,000 of each.
"""

from __future__ import annotations

import random

import pytest

from protocol.float32 import FAULT, Word, chain
from scripts.bench.float32 import compare
from scripts.bench.float32_evm import ADDRESS, Harness
from scripts.bench.float32_operations import OPERATIONS, Operation
from scripts.bench.float32_vectors import vectors
from tests.chain import Anvil

VECTORS = 1_500
FUNCTION_VECTORS = 300


@pytest.fixture(scope="module")
def harness(anvil: Anvil) -> Harness:
    compiled = Harness.compiled()
    anvil.rpc("anvil_setCode", *compiled.placing())
    return compiled


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.name)
def test_operation__random_and_border_words__python_and_contract_agree(
    anvil: Anvil, harness: Harness, operation: Operation
) -> None:
    number = OPERATIONS.index(operation)
    count = VECTORS if operation.real is None else FUNCTION_VECTORS
    # The borders of three operands alone are more than that: every so many of a longer list.
    for operands in vectors(20 * count, operation.operands, seed=11, most=20 * count):
        some = operands[:: max(1, len(operands) // count)]
        answer = harness.answered(anvil.rpc("eth_call", *harness.asking(number, some)))
        compare(operation, some, answer, operation.computed(some))


@pytest.mark.parametrize("exponents", [(120, 134), (0, 130), (0, 1), (190, 200)], ids=str)
@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 64, 768])
def test_chain__random_rows__python_and_contract_agree(
    anvil: Anvil, harness: Harness, length: int, exponents: tuple[int, int]
) -> None:
    """Ordinary numbers, tiny ones and zeros among them, subnormal ones alone, and such as overflow."""
    rng = random.Random(length)
    rows = [[word(rng, exponents) for _ in range(length)] for _ in range(2)]
    packed = [b"".join(each.to_bytes(4, "little") for each in row) for row in rows]
    interface = harness.abi.function("chain")
    data = "0x" + interface.encode_call((0x3F800000, *packed)).hex()
    answer = anvil.rpc("eth_call", {"to": ADDRESS, "data": data, "gas": hex(10**9)}, "latest")
    (found,) = interface.decode_result(bytes.fromhex(answer[2:]))
    assert found == chain(Word(0x3F800000), *rows)
    if exponents[0] == 190 and length > 60:
        assert found == FAULT


def word(rng: random.Random, exponents: tuple[int, int]) -> Word:
    sign, exponent = rng.getrandbits(1) << 31, rng.randint(*exponents) << 23
    return Word(sign | exponent | rng.choice((0, rng.getrandbits(23))))
