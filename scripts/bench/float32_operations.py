"""Each operation three times: the Python twin, an oracle (glibc's fmaf, numpy), and its number in the harness contract.

A result is 64 bits: a word, 0 or 1, or an integer in two's complement, whose least value stands for none.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from protocol import float32, float32_math
from protocol.float32 import FAULT, Word
from scripts.bench.float32_vectors import Words

Results: TypeAlias = NDArray[np.uint64]
Values: TypeAlias = NDArray[np.float32]
Reals: TypeAlias = NDArray[np.float64]
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
    real: Callable[[Reals], Reals] | None = None

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


def _words_of(values: NDArray[Any]) -> Results:
    """Rounded to binary32; what is not finite is FAULT."""
    words = values.astype(np.float32).view(np.uint32)
    return np.where((words & _EXPONENT) == _EXPONENT, np.uint64(FAULT), words.astype(np.uint64))


def _of_values(compute: Callable[..., NDArray[Any]], operands: int) -> Callable[[Words], Results]:
    """An oracle that gives binary32."""
    return lambda words: _words_of(compute(*words[:, :operands].T.copy().view(np.float32)))


def _of_truth(compare: Callable[[Values, Values], NDArray[Any]]) -> Callable[[Words], Results]:
    return lambda words: compare(*words[:, :2].T.copy().view(np.float32)).astype(np.uint64)


@cache
def _libm_fmaf() -> Callable[[float, float, float], float]:
    function = ctypes.CDLL(None).fmaf  # libm comes with the interpreter
    function.argtypes = [ctypes.c_float] * 3
    function.restype = ctypes.c_float
    fmaf: Callable[[float, float, float], float] = function
    return fmaf


def _fma(*values: Values) -> Values:
    fmaf = _libm_fmaf()
    rows = zip(*(column.tolist() for column in values), strict=True)
    return np.fromiter((fmaf(a, b, c) for a, b, c in rows), np.float32, len(values[0]))


def _scale(words: Words) -> Results:
    """In doubles, which hold every product with 2^±600 exactly."""
    doubles = words[:, 0].copy().view(np.float32).astype(np.float64)
    powers = np.clip(words[:, 1].copy().view(np.int32), -600, 600)
    return _words_of(np.ldexp(doubles, powers))


def _maximum(a: Values, b: Values) -> Values:
    return np.asarray(np.where(a < b, b, a), np.float32)


def _minimum(a: Values, b: Values) -> Values:
    return np.asarray(np.where(b < a, b, a), np.float32)


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
    real: Callable[[Reals], Reals],
) -> Operation:
    return Operation(name=name, operands=1, numbers=1, twin=lambda a, b, c: twin(a), real=real)


def _sigmoid(x: Reals) -> Reals:
    return 1 / (1 + np.exp(-x))


def _unary(
    name: str, twin: Callable[[Word], Word], oracle: Callable[[Values], NDArray[Any]]
) -> Operation:
    return Operation(
        name=name, operands=1, numbers=1, twin=lambda a, b, c: twin(a), oracle=_of_values(oracle, 1)
    )


def _binary(
    name: str, twin: Callable[[Word, Word], Word], oracle: Callable[[Values, Values], NDArray[Any]]
) -> Operation:
    return Operation(
        name=name,
        operands=2,
        numbers=2,
        twin=lambda a, b, c: twin(a, b),
        oracle=_of_values(oracle, 2),
    )


def _comparison(
    name: str, twin: Callable[[Word, Word], bool], oracle: Callable[[Values, Values], NDArray[Any]]
) -> Operation:
    return Operation(
        name=name, operands=2, numbers=2, twin=lambda a, b, c: twin(a, b), oracle=_of_truth(oracle)
    )


OPERATIONS = (
    Operation(name="fma", operands=3, numbers=3, twin=float32.fma, oracle=_of_values(_fma, 3)),
    _binary("add", float32.add, np.add),
    _binary("sub", float32.sub, np.subtract),
    _binary("mul", float32.mul, np.multiply),
    _binary("div", float32.div, np.divide),
    _unary("sqrt", float32.sqrt, np.sqrt),
    _unary("neg", float32.neg, np.negative),
    _unary("abs", float32.absolute, np.absolute),
    Operation(
        name="scale",
        operands=2,
        numbers=1,
        twin=lambda a, b, c: float32.scale(a, _signed(b, 32)),
        oracle=_scale,
    ),
    _comparison("lt", float32.lt, np.less),
    _comparison("le", float32.le, np.less_equal),
    _comparison("eq", float32.eq, np.equal),
    _binary("max", float32.maximum, _maximum),
    _binary("min", float32.minimum, _minimum),
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
