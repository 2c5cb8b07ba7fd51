"""Each operation three times: the Python twin, an oracle (glibc's fmaf, numpy), and its number in the harness contract.

A result is 64 bits: a word, 0 or 1, or an integer in two's complement, whose least value stands for none.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from protocol import float32, float32_math
from protocol.float32 import FAULT, Word
from scripts.bench.float32_vectors import Words

Results = NDArray[np.uint64]
_NONE = 1 << 63
_EXPONENT = np.uint32(0x7F800000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation or a function.

    Attributes:
        operands: how many words it takes.
        numbers: how many of them are binary32, not integers.
        twin: the words to the result.
        oracle: None for functions: nobody else computes their bits.
        real: of a function, in double precision.
    """

    name: str
    operands: int
    numbers: int
    twin: Callable[[Word, Word, Word], int]
    oracle: Callable[[Words], Results] | None = None
    real: Callable[[NDArray[np.float64]], NDArray[np.float64]] | None = None

    def expected(self, operands: Words) -> Results:
        """By the oracle; what is no number among the operands is a fault."""
        assert self.oracle is not None
        with np.errstate(all="ignore"):
            found = self.oracle(operands)
        faulty = ((operands[:, : self.numbers] & _EXPONENT) == _EXPONENT).any(axis=1)
        wrong = {"lt": 0, "le": 0, "eq": 0, "to int": _NONE}.get(self.name, FAULT)
        return np.where(faulty, np.uint64(wrong), found)

    def computed(self, operands: Words) -> Results:
        """By the twin."""
        twin = self.twin
        rows = operands.tolist()
        return np.fromiter((twin(a, b, c) for a, b, c in rows), np.uint64, len(rows))


def _of_values(
    compute: Callable[..., NDArray[np.float32]], operands: int
) -> Callable[[Words], Results]:
    """An oracle of floats that gives floats; what is not finite is FAULT."""

    def oracle(words: Words) -> Results:
        values = np.ascontiguousarray(words[:, :operands].T).view(np.float32)
        found = np.asarray(compute(*values), np.float32).view(np.uint32)
        return np.where((found & _EXPONENT) == _EXPONENT, np.uint32(FAULT), found).astype(np.uint64)

    return oracle


def _of_truth(compare: Callable[..., NDArray[np.bool_]]) -> Callable[[Words], Results]:
    return lambda words: compare(*words[:, :2].T.copy().view(np.float32)).astype(np.uint64)


@cache
def _libm_fmaf() -> Callable[[float, float, float], float]:
    function = ctypes.CDLL("libm.so.6").fmaf
    function.argtypes = [ctypes.c_float] * 3
    function.restype = ctypes.c_float
    fmaf: Callable[[float, float, float], float] = function
    return fmaf


def _fma(*values: NDArray[np.float32]) -> NDArray[np.float32]:
    fmaf = _libm_fmaf()
    rows = zip(*(column.tolist() for column in values), strict=True)
    return np.fromiter((fmaf(a, b, c) for a, b, c in rows), np.float32, len(values[0]))


def _scale(words: Words) -> Results:
    """In doubles, which hold every product with 2^±600 exactly."""
    n = words[:, 1].view(np.int32) if words.shape[1] == 1 else words[:, 1].copy().view(np.int32)
    doubles = words[:, 0].copy().view(np.float32).astype(np.float64)
    return _of_values(lambda scaled: scaled, 1)(
        np.ldexp(doubles, np.clip(n, -600, 600)).astype(np.float32).view(np.uint32)[:, None]
    )


def _from_int(words: Words) -> Results:
    integers = (words[:, 0].astype(np.uint64) << np.uint64(32) | words[:, 1]).view(np.int64)
    return integers.astype(np.float32).view(np.uint32).astype(np.uint64)


def _to_int(words: Words) -> Results:
    whole = np.rint(words[:, 0].copy().view(np.float32).astype(np.float64))
    held = (whole >= -(2.0**31)) & (whole < 2.0**31)
    integers = np.where(held, whole, 0.0).astype(np.int64).view(np.uint64)
    return np.where(held, integers, np.uint64(_NONE))


def _signed(word: int, bits: int) -> int:
    return word - (1 << bits) if word >> bits - 1 else word


def _integer(n: int | None) -> int:
    return _NONE if n is None else n % (1 << 64)


def _function(
    name: str,
    twin: Callable[[Word], Word],
    real: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> Operation:
    return Operation(name=name, operands=1, numbers=1, twin=lambda a, b, c: twin(a), real=real)


def _sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-x))


OPERATIONS = (
    Operation(name="fma", operands=3, numbers=3, twin=float32.fma, oracle=_of_values(_fma, 3)),
    Operation(
        name="add",
        operands=2,
        numbers=2,
        twin=lambda a, b, c: float32.add(a, b),
        oracle=_of_values(np.add, 2),
    ),
    Operation(
        name="sub",
        operands=2,
        numbers=2,
        twin=lambda a, b, c: float32.sub(a, b),
        oracle=_of_values(np.subtract, 2),
    ),
    Operation(
        name="mul",
        operands=2,
        numbers=2,
        twin=lambda a, b, c: float32.mul(a, b),
        oracle=_of_values(np.multiply, 2),
    ),
    Operation(
        name="div",
        operands=2,
        numbers=2,
        twin=lambda a, b, c: float32.div(a, b),
        oracle=_of_values(np.divide, 2),
    ),
    Operation(
        name="sqrt",
        operands=1,
        numbers=1,
        twin=lambda a, b, c: float32.sqrt(a),
        oracle=_of_values(np.sqrt, 1),
    ),
    Operation(
        name="neg",
        operands=1,
        numbers=1,
        twin=lambda a, b, c: float32.neg(a),
        oracle=_of_values(np.negative, 1),
    ),
    Operation(
        name="abs",
        operands=1,
        numbers=1,
        twin=lambda a, b, c: float32.absolute(a),
        oracle=_of_values(np.absolute, 1),
    ),
    Operation(
        name="scale",
        operands=2,
        numbers=1,
        twin=lambda a, b, c: float32.scale(a, _signed(b, 32)),
        oracle=_scale,
    ),
    Operation(
        name="lt",
        operands=2,
        numbers=2,
        twin=lambda a, b, c: float32.lt(a, b),
        oracle=_of_truth(np.less),
    ),
    Operation(
        name="le",
        operands=2,
        numbers=2,
        twin=lambda a, b, c: float32.le(a, b),
        oracle=_of_truth(np.less_equal),
    ),
    Operation(
        name="eq",
        operands=2,
        numbers=2,
        twin=lambda a, b, c: float32.eq(a, b),
        oracle=_of_truth(np.equal),
    ),
    Operation(
        name="max",
        operands=2,
        numbers=2,
        twin=lambda a, b, c: float32.maximum(a, b),
        oracle=_of_values(lambda a, b: np.where(a < b, b, a), 2),
    ),
    Operation(
        name="min",
        operands=2,
        numbers=2,
        twin=lambda a, b, c: float32.minimum(a, b),
        oracle=_of_values(lambda a, b: np.where(b < a, b, a), 2),
    ),
    Operation(
        name="from int",
        operands=2,
        numbers=0,
        twin=lambda a, b, c: float32.from_int(_signed(a << 32 | b, 64)),
        oracle=_from_int,
    ),
    Operation(
        name="to int",
        operands=1,
        numbers=1,
        twin=lambda a, b, c: _integer(float32.to_int(a)),
        oracle=_to_int,
    ),
    _function("exp", float32_math.exp, np.exp),
    _function("log", float32_math.log, np.log),
    _function("sigmoid", float32_math.sigmoid, _sigmoid),
    _function("silu", float32_math.silu, lambda x: x * _sigmoid(x)),
    _function("silu'", float32_math.silu_grad, lambda x: _sigmoid(x) * (1 + x * _sigmoid(-x))),
    _function("rsqrt", float32_math.rsqrt, lambda x: 1 / np.sqrt(x)),
)
"""In the order of the harness contract."""
