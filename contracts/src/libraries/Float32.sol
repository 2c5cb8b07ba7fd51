// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {LeadingZeros} from "./LeadingZeros.sol";

/// @notice An IEEE 754 binary32 number as its word: sign (1 bit), exponent (8), fraction (23).
type Float32 is uint32;

using Float32Lib for Float32 global;

/// @title Exact binary32 arithmetic
/// @notice Every operation rounds its exact result once, to nearest, ties to even; subnormal numbers are kept, zeros have
/// signs. protocol/float32.py is the same in Python.
///
/// NaN and infinity are no numbers here but one fault, FAULT, that sticks: an operation with an operand that is NaN or
/// infinite, or whose result would be, gives FAULT, and nothing else ever gives a word that isn't finite. So a computation
/// that went wrong anywhere ends in FAULT, and its claim, whatever it is, doesn't hold. A revert could not say so: who judges
/// must be able to tell a wrong number from a call that was badly made.
library Float32Lib {
    // Casts here are of words of 32 bits, of integers below 2^128 and of exponents, whose sign is meant.
    // forge-lint: disable-start(unsafe-typecast)

    Float32 internal constant ZERO = Float32.wrap(0);
    Float32 internal constant ONE = Float32.wrap(0x3f800000);
    /// @notice The one word that is not finite and that operations give.
    Float32 internal constant FAULT = Float32.wrap(0x7fc00000);
    /// @notice What `toInt` gives for FAULT and beyond the range of int32; `scale` makes it FAULT again.
    int256 internal constant NO_INT = type(int256).min;

    uint256 private constant SIGN = 0x80000000;
    uint256 private constant FRACTION = 0x7fffff;
    /// The word of 2^-126, and the 24th bit of a significand.
    uint256 private constant LEAST_NORMAL = 0x800000;
    uint256 private constant LARGEST = 0x7f7fffff;
    /// An exponent that makes any significand but 0 too large.
    uint256 private constant TOO_LARGE = 1000;
    /// The bytes of every second place, and pairs of bytes.
    uint256 private constant BYTES = 0x00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff;
    uint256 private constant PAIRS = 0x0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff;

    /// @notice Rows of a dot product are words of 4 bytes and equally long.
    error UnequalRows(uint256 a, uint256 b);

    // ---------------------------------------------------------------- arithmetic

    /// @notice a * b + c, rounded once.
    function fma(Float32 a, Float32 b, Float32 c) internal pure returns (Float32) {
        return _wrap(_row(_word(a) << 224, _word(b) << 224, 1, _word(c)));
    }

    /// @notice a + b: the product a * 1 is exact and keeps the sign of a zero.
    function add(Float32 a, Float32 b) internal pure returns (Float32) {
        return fma(a, ONE, b);
    }

    /// @notice a - b, as a + (-b).
    function sub(Float32 a, Float32 b) internal pure returns (Float32) {
        return fma(a, ONE, Float32.wrap(Float32.unwrap(b) ^ uint32(SIGN)));
    }

    /// @notice a * b; a zero has the sign of the product.
    function mul(Float32 a, Float32 b) internal pure returns (Float32) {
        unchecked {
            (uint256 x, uint256 y) = (_word(a), _word(b));
            (uint256 mx, uint256 ex) = _unpack(x);
            (uint256 my, uint256 ey) = _unpack(y);
            if (ex == 255 || ey == 255) return FAULT;
            return _wrap(_round((x ^ y) & SIGN, (mx * my) << 25, ex + ey - 176));
        }
    }

    /// @notice a / b; FAULT if b is zero.
    function div(Float32 a, Float32 b) internal pure returns (Float32) {
        unchecked {
            (uint256 x, uint256 y) = (_word(a), _word(b));
            (uint256 mx, uint256 ex) = _unpack(x);
            (uint256 my, uint256 ey) = _unpack(y);
            if (ex == 255 || ey == 255 || my == 0) return FAULT;
            // 56 bits or more of the quotient. The remainder only says on which side of a tie the quotient lies, which a last
            // bit that is set says too, far below the place of rounding.
            uint256 quotient = (mx << 80) / my;
            if (quotient * my != mx << 80) quotient |= 1;
            return _wrap(_round((x ^ y) & SIGN, quotient, ex - ey + 69));
        }
    }

    /// @notice The square root; FAULT below zero, but the root of -0 is -0.
    function sqrt(Float32 a) internal pure returns (Float32) {
        unchecked {
            uint256 x = _word(a);
            (uint256 m, uint256 e) = _unpack(x);
            if (e == 255 || (x > SIGN)) return FAULT;
            // An even exponent can be halved. 30 bits or more of the root; the rest is again one bit.
            uint256 radicand = m << (60 + (e & 1));
            uint256 root = Math.sqrt(radicand);
            if (root * root != radicand) root |= 1;
            return _wrap(_round(x & SIGN, root, (e >> 1) + 44));
        }
    }

    /// @notice The number with the other sign.
    function neg(Float32 a) internal pure returns (Float32) {
        return isFault(a) ? FAULT : _wrap(_word(a) ^ SIGN);
    }

    /// @notice The number without its sign.
    function abs(Float32 a) internal pure returns (Float32) {
        return isFault(a) ? FAULT : _wrap(_word(a) & ~SIGN);
    }

    /// @notice a * 2^n, rounded once (where the result is subnormal); FAULT if n is NO_INT.
    function scale(Float32 a, int256 n) internal pure returns (Float32) {
        unchecked {
            uint256 x = _word(a);
            (uint256 m, uint256 e) = _unpack(x);
            if (e == 255 || n == NO_INT) return FAULT;
            // From the least number to the largest there are 277 doublings: 600 is as good as any more.
            if (n > 600) n = 600;
            if (n < -600) n = -600;
            return _wrap(_round(x & SIGN, m << 25, e + uint256(n) - 26));
        }
    }

    // ---------------------------------------------------------------- comparison

    /// @notice Whether the word is NaN or infinite.
    function isFault(Float32 a) internal pure returns (bool) {
        return _word(a) & ~SIGN > LARGEST;
    }

    /// @notice a < b; false if either is FAULT. The zeros are equal.
    function lt(Float32 a, Float32 b) internal pure returns (bool) {
        return !isFault(a) && !isFault(b) && _order(a) < _order(b);
    }

    /// @notice a <= b; false if either is FAULT.
    function le(Float32 a, Float32 b) internal pure returns (bool) {
        return !isFault(a) && !isFault(b) && _order(a) <= _order(b);
    }

    /// @notice a = b; false if either is FAULT.
    function eq(Float32 a, Float32 b) internal pure returns (bool) {
        return !isFault(a) && !isFault(b) && _order(a) == _order(b);
    }

    /// @notice b if a < b, else a: the first of two zeros. FAULT if either is.
    function max(Float32 a, Float32 b) internal pure returns (Float32) {
        if (isFault(a) || isFault(b)) return FAULT;
        return _order(a) < _order(b) ? b : a;
    }

    /// @notice b if b < a, else a: the first of two zeros. FAULT if either is.
    function min(Float32 a, Float32 b) internal pure returns (Float32) {
        if (isFault(a) || isFault(b)) return FAULT;
        return _order(b) < _order(a) ? b : a;
    }

    // ---------------------------------------------------------------- integers

    /// @notice The number nearest to n, ties to even; FAULT beyond the largest.
    function fromInt(int256 n) internal pure returns (Float32) {
        unchecked {
            uint256 magnitude = n < 0 ? uint256(-n) : uint256(n);
            if (magnitude >> 128 != 0) return FAULT;
            return _wrap(_round(n < 0 ? SIGN : 0, magnitude << 25, 124));
        }
    }

    /// @notice The integer nearest to a, ties to even; NO_INT if a is FAULT or the integer no int32.
    function toInt(Float32 a) internal pure returns (int256 n) {
        unchecked {
            uint256 x = _word(a);
            (uint256 m, uint256 e) = _unpack(x);
            // 2^32 and more.
            if (e >= 159) return NO_INT;
            // In units of 2^-150; half of 2^150 less one, and one more if the integer below is odd, carry what is nearer to
            // the integer above.
            m <<= e;
            uint256 nearest = (m + (1 << 149) - 1 + ((m >> 150) & 1)) >> 150;
            n = x & SIGN == 0 ? int256(nearest) : -int256(nearest);
            if (n > type(int32).max || n < type(int32).min) return NO_INT;
        }
    }

    // ---------------------------------------------------------------- rows

    /// @notice fma over two rows, in their order: acc = a[k] * b[k] + acc for k = 0, 1, …
    /// @param a Words as they lie in memory, little-endian.
    function chain(Float32 acc, bytes calldata a, bytes calldata b) internal pure returns (Float32) {
        if (a.length != b.length || a.length % 4 != 0) revert UnequalRows(a.length, b.length);
        unchecked {
            uint256 sum = _word(acc);
            for (uint256 place = 0; place < a.length; place += 32) {
                uint256 x;
                uint256 y;
                assembly ("memory-safe") {
                    x := calldataload(add(a.offset, place))
                    y := calldataload(add(b.offset, place))
                }
                // Eight words at a time; fewer at the end.
                uint256 left = a.length - place;
                sum = _row(_swap(x), _swap(y), left < 32 ? left / 4 : 8, sum);
            }
            return _wrap(sum);
        }
    }

    // ---------------------------------------------------------------- how it is done

    /// @dev fma over the first `count` of the eight words of x and y, the first one on top. In each step both addends are
    /// integers of one unit, placed so that what falls off at either end can't matter; their sum is exact, and is rounded once.
    /// Everything is in one place, and the accumulator in its parts throughout, because a row of a matrix takes this a thousand
    /// times: calls and packing would add a third. The gas tests show what it costs.
    function _row(uint256 x, uint256 y, uint256 count, uint256 acc) private pure returns (uint256 word) {
        unchecked {
            // The accumulator is m * 2^(e - 149), with its sign as bit 31.
            (uint256 m, uint256 e) = _unpack(acc);
            if (--e == 254) e = TOO_LARGE;
            acc &= SIGN;
            for (; count != 0; --count) {
                uint256 sum;
                assembly ("memory-safe") {
                    // An ordinary number is a significand with a 24th bit, times 2^(exponent - 150).
                    let a := shr(224, x)
                    let b := shr(224, y)
                    x := shl(32, x)
                    y := shl(32, y)
                    let ea := and(shr(23, a), 0xff)
                    let eb := and(shr(23, b), 0xff)
                    let ma := or(and(a, FRACTION), LEAST_NORMAL)
                    let mb := or(and(b, FRACTION), LEAST_NORMAL)
                    if or(gt(sub(ea, 1), 253), gt(sub(eb, 1), 253)) {
                        // Zeros and subnormal numbers lack that bit, and have the power of two of exponent 1.
                        if iszero(ea) {
                            ma := xor(ma, LEAST_NORMAL)
                            ea := 1
                        }
                        if iszero(eb) {
                            mb := xor(mb, LEAST_NORMAL)
                            eb := 1
                        }
                        // What is no number makes the sum so large that no product matters, and that no word holds it.
                        if or(eq(ea, 0xff), eq(eb, 0xff)) {
                            m := LEAST_NORMAL
                            e := TOO_LARGE
                        }
                    }

                    // Product: ma * mb * 2^(ea + eb - 300). In units of 2^(e - 249) the accumulator stands 100 bits up, the
                    // product this many:
                    let up := sub(add(ea, eb), add(e, 51))
                    if gt(sub(up, 25), 180) {
                        switch slt(up, 25)
                        case 1 {
                            // The product is below 2^-27 of the accumulator's last place, and 25 bits up it still is: all that
                            // counts of it is that it is there. (If the accumulator is 0, the product is below 2^-176, and
                            // rounds to 0 either way.)
                            up := 25
                        }
                        default {
                            // The accumulator is below 2^-80 of the product's last bit, and still is if the product is 205
                            // bits up: all that counts of it is that it is there. (No product that is 0 gets that high.)
                            e := add(e, sub(up, 205))
                            up := 205
                        }
                    }
                    up := shl(up, mul(ma, mb))
                    sum := shl(100, m)
                    switch shr(31, xor(xor(a, b), acc))
                    case 0 { sum := add(sum, up) }
                    default {
                        // The signs differ: the product is taken off, and may be the greater one.
                        sum := sub(sum, up)
                        if slt(sum, 1) {
                            sum := sub(0, sum)
                            // What cancels out, and zeros of two signs, make +0.
                            acc := mul(xor(acc, SIGN), gt(sum, 0))
                        }
                    }
                }
                uint256 drop = LeadingZeros.count(sum);
                assembly ("memory-safe") {
                    // As in _round, of sum * 2^((e - 100) - 149).
                    drop := sub(232, drop)
                    e := add(e, sub(drop, 100))
                    if slt(or(e, drop), 0) {
                        drop := sub(drop, e)
                        if iszero(sum) { drop := 256 }
                        e := 0
                    }
                    m := shr(drop, add(sum, sub(shl(sub(drop, 1), 1), iszero(and(shr(drop, sum), 1)))))
                    if gt(add(shl(23, e), m), LARGEST) {
                        m := LEAST_NORMAL
                        e := TOO_LARGE
                    }
                }
            }
            assembly ("memory-safe") {
                word := or(add(shl(23, e), m), acc)
                if eq(e, TOO_LARGE) { word := 0x7fc00000 }
            }
        }
    }

    /// @dev The word of m * 2^(e - 149), rounded to nearest, ties to even. The rounding of all operations but fma, which
    /// has it within its loop.
    /// @param sign SIGN or 0; a zero has it too.
    /// @param m Either 0 or of 25 to 254 bits, so that there is always something to drop.
    /// @param e Signed.
    function _round(uint256 sign, uint256 m, uint256 e) private pure returns (uint256 word) {
        uint256 drop = LeadingZeros.count(m);
        assembly ("memory-safe") {
            // 24 bits are kept, and the last of them counts 2^(e - 149) ...
            drop := sub(232, drop)
            e := add(e, drop)
            if slt(or(e, drop), 0) {
                // ... but none less than 2^-149: then fewer are kept; and of 0 (it dropped less than none) nothing is.
                drop := sub(drop, e)
                if iszero(m) { drop := 256 }
                e := 0
            }
            // Half of the last place less one, and one more if what is kept is odd, carry what is nearer to the number above.
            word := shr(drop, add(m, sub(shl(sub(drop, 1), 1), iszero(and(shr(drop, m), 1)))))
            // The 24th bit adds one to the exponent's field; a carry into a 25th adds another, as it should; a subnormal number
            // has neither.
            word := add(shl(23, e), word)
            if gt(word, LARGEST) {
                word := 0x7fc00000
                sign := 0
            }
            word := or(word, sign)
        }
    }

    /// @dev |a| = m * 2^(e - 150), with e = 255 for what is no number.
    function _unpack(uint256 a) private pure returns (uint256 m, uint256 e) {
        assembly ("memory-safe") {
            e := and(shr(23, a), 0xff)
            m := or(and(a, FRACTION), shl(23, iszero(iszero(e))))
            e := add(e, iszero(e))
        }
    }

    /// @dev Integers in the order of the numbers, the same one for both zeros.
    function _order(Float32 a) private pure returns (int256) {
        unchecked {
            uint256 x = _word(a);
            return x & SIGN == 0 ? int256(x) : -int256(x & ~SIGN);
        }
    }

    /// @dev The bytes of each of eight words the other way round.
    function _swap(uint256 words) private pure returns (uint256) {
        words = ((words & BYTES) << 8) | ((words >> 8) & BYTES);
        return ((words & PAIRS) << 16) | ((words >> 16) & PAIRS);
    }

    function _word(Float32 a) private pure returns (uint256) {
        return Float32.unwrap(a);
    }

    function _wrap(uint256 word) private pure returns (Float32) {
        return Float32.wrap(uint32(word));
    }
    // forge-lint: disable-end(unsafe-typecast)
}
