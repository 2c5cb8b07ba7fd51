"""Derive the coefficients of `protocol/float32_math.py`: the best polynomials by Remez's exchange, in 50 decimal digits.

Each approximates the rest of a function once its leading terms are taken off exactly; the weight turns the rest's error into
the function's relative error. Rounding the coefficients to binary32 adds less than the evaluation does.

    .venv/bin/python -m scripts.minimax
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext

from protocol.float32 import Word, nearest

_DIGITS = 50
_POINTS = 1200
"""Where errors are looked at. They are flat where they are largest: between two points there is nothing more to see."""
_EXCHANGES = 30
_CONVERGED = Decimal("1.0001")

Function = Callable[[Decimal], Decimal]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A polynomial, lowest power first, and the largest weighted error that it leaves."""

    coefficients: Sequence[Decimal]
    error: Decimal

    def words(self) -> tuple[Word, ...]:
        """The coefficients as binary32."""
        return tuple(nearest(coefficient) for coefficient in self.coefficients)


def exp_rest() -> Fit:
    """(exp(r) - 1 - r) / r² for |r| ≤ ln 2 / 2 and a little: a product with log2 e, once rounded, may lie that far off."""
    with localcontext(prec=_DIGITS):
        end = Decimal(2).ln() / 2 * (1 + Decimal(2) ** -12)
        return _fit(
            lambda r: (r.exp() - 1 - r) / r**2, lambda r: r**2 / r.exp(), (-end, end), degree=4
        )


def log_rest() -> Fit:
    """(ln((1 + s) / (1 - s)) / s - 2) / s² as a polynomial in z = s², for s = f / (2 + f) and 1 + f in [√½, √2]."""
    with localcontext(prec=_DIGITS):
        root = Decimal(2).sqrt()
        end = ((root - 1) / (root + 1)) ** 2
        return _fit(
            _atanh_rest, lambda z: z / (2 + z * _atanh_rest(z)), (Decimal(0), end), degree=2
        )


def _atanh_rest(z: Decimal) -> Decimal:
    s = z.sqrt()
    return (((1 + s) / (1 - s)).ln() / s - 2) / z


def _fit(
    function: Function, weight: Function, ends: tuple[Decimal, Decimal], *, degree: int
) -> Fit:
    """Exchanges the points until the errors at them are as large as anywhere."""
    low, high = ends
    step = (high - low) / _POINTS
    # Neither end nor middle, where the functions are 0 / 0.
    points = [low + step * (Decimal(place) + Decimal("0.5")) for place in range(_POINTS)]
    values, weights = [function(x) for x in points], [weight(x) for x in points]
    chosen = [(_POINTS - 1) * place // (degree + 1) for place in range(degree + 2)]
    for _ in range(_EXCHANGES):
        rows = [
            [*(points[at] ** power for power in range(degree + 1)), (-1) ** turn / weights[at]]
            for turn, at in enumerate(chosen)
        ]
        *coefficients, level = _solve(rows, [values[at] for at in chosen])
        errors = [
            w * (y - _horner(coefficients, x))
            for x, y, w in zip(points, values, weights, strict=True)
        ]
        worst = max(map(abs, errors))
        if worst <= abs(level) * _CONVERGED:
            return Fit(coefficients=coefficients, error=worst)
        chosen = _extremes(errors, degree + 2)
    raise ArithmeticError("the exchange does not converge")


def _extremes(errors: Sequence[Decimal], count: int) -> list[int]:
    """The largest error of each stretch of one sign, with the signs alternating; the smaller ones at the ends are left out."""
    found: list[int] = []
    for place, error in enumerate(errors):
        if found and (error > 0) == (errors[found[-1]] > 0):
            if abs(error) > abs(errors[found[-1]]):
                found[-1] = place
        else:
            found.append(place)
    while len(found) > count:
        found.pop(0 if abs(errors[found[0]]) < abs(errors[found[-1]]) else -1)
    return found


def _horner(coefficients: Sequence[Decimal], x: Decimal) -> Decimal:
    value = Decimal(0)
    for coefficient in reversed(coefficients):
        value = value * x + coefficient
    return value


def _solve(matrix: Sequence[Sequence[Decimal]], right: Sequence[Decimal]) -> list[Decimal]:
    """Gauss's elimination, the largest pivot of a column first."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(rows[row][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for row in range(size):
            if row != column:
                factor = rows[row][column] / rows[column][column]
                rows[row] = [a - factor * b for a, b in zip(rows[row], rows[column], strict=True)]
    return [rows[row][size] / rows[row][row] for row in range(size)]


def main() -> None:
    """Prints both."""
    for name, fit in (("exp", exp_rest()), ("log", log_rest())):
        print(f"{name}: largest relative error {fit.error:.2e}")
        for coefficient, word in zip(fit.coefficients, fit.words(), strict=True):
            print(f"  {coefficient:+.15f}  0x{word:08x}")


if __name__ == "__main__":
    main()
