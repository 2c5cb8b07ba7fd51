// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Float32, Float32Lib} from "./Float32.sol";

/// @title Functions of one binary32 number
/// @notice Fixed sequences of exact operations, the same as in protocol/float32_math.py, which says where the coefficients
/// come from and what errors they leave. Faults stick; log(0), log of less and exp beyond the largest number are faults.
library Float32Math {
    Float32 private constant ZERO = Float32.wrap(0);
    Float32 private constant ONE = Float32.wrap(0x3f800000);
    Float32 private constant HALF = Float32.wrap(0x3f000000);
    Float32 private constant TWO = Float32.wrap(0x40000000);

    Float32 private constant LOG2_E = Float32.wrap(0x3fb8aa3b);
    Float32 private constant LN2_HIGH = Float32.wrap(0x3f317218);
    Float32 private constant LN2_LOW = Float32.wrap(0xb102e308);

    Float32 private constant EXP_0 = Float32.wrap(0x3efffffe);
    Float32 private constant EXP_1 = Float32.wrap(0x3e2aaa49);
    Float32 private constant EXP_2 = Float32.wrap(0x3d2aac78);
    Float32 private constant EXP_3 = Float32.wrap(0x3c091cbd);
    Float32 private constant EXP_4 = Float32.wrap(0x3ab5126b);
    /// -128 and 128.
    Float32 private constant EXP_FROM = Float32.wrap(0xc3000000);
    Float32 private constant EXP_TO = Float32.wrap(0x43000000);

    Float32 private constant LOG_0 = Float32.wrap(0x3f2aaabd);
    Float32 private constant LOG_1 = Float32.wrap(0x3eccaf6e);
    Float32 private constant LOG_2 = Float32.wrap(0x3e98efb4);
    Float32 private constant LEAST_NORMAL = Float32.wrap(0x00800000);
    int256 private constant ROOT_HALF = 0x3f3504f3;

    /// @notice e^x: 2^n e^r with n the integer nearest to x / ln 2.
    function exp(Float32 x) internal pure returns (Float32) {
        x = x.max(EXP_FROM).min(EXP_TO);
        int256 n = x.mul(LOG2_E).toInt();
        if (n == Float32Lib.NO_INT) return Float32Lib.FAULT;
        Float32 k = Float32Lib.fromInt(-n);
        Float32 r = k.fma(LN2_LOW, k.fma(LN2_HIGH, x));
        Float32 q = EXP_4.fma(r, EXP_3).fma(r, EXP_2).fma(r, EXP_1).fma(r, EXP_0);
        return q.fma(r.mul(r), r).add(ONE).scale(n);
    }

    /// @notice ln x: k ln 2 + ln(1 + f) with x = 2^k (1 + f) and 1 + f from √½ to √2.
    function log(Float32 x) internal pure returns (Float32) {
        if (!ZERO.lt(x)) return Float32Lib.FAULT;
        (Float32 m, Float32 k) = _split(x);
        Float32 f = m.sub(ONE);
        Float32 s = f.div(f.add(TWO));
        Float32 z = s.mul(s);
        Float32 q = LOG_2.fma(z, LOG_1).fma(z, LOG_0);
        Float32 h = f.mul(f).mul(HALF);
        Float32 rest = s.fma(z.fma(q, h), k.mul(LN2_LOW));
        return k.fma(LN2_HIGH, f.sub(h.sub(rest)));
    }

    /// @notice 1 / (1 + e^-x), by e^-|x|, which is never too large.
    function sigmoid(Float32 x) internal pure returns (Float32) {
        Float32 t = exp(x.abs().neg());
        return (x.lt(ZERO) ? t : ONE).div(t.add(ONE));
    }

    /// @notice x sigmoid(x).
    function silu(Float32 x) internal pure returns (Float32) {
        return x.mul(sigmoid(x));
    }

    /// @notice The derivative of silu: sigmoid(x) (1 + x sigmoid(-x)).
    function siluGrad(Float32 x) internal pure returns (Float32) {
        return sigmoid(x).mul(x.fma(sigmoid(x.neg()), ONE));
    }

    /// @notice 1 / √x; FAULT for zero and less.
    function rsqrt(Float32 x) internal pure returns (Float32) {
        return ONE.div(x.sqrt());
    }

    /// @dev (m, k) with x = 2^k m and m from √½ to √2, for a positive x; exact.
    function _split(Float32 x) private pure returns (Float32 m, Float32 k) {
        int256 shift = 0;
        if (x.lt(LEAST_NORMAL)) (x, shift) = (x.scale(24), -24);
        int256 over = int256(uint256(Float32.unwrap(x))) - ROOT_HALF;
        // forge-lint: disable-next-line(unsafe-typecast)
        m = Float32.wrap(uint32(uint256((over & 0x7fffff) + ROOT_HALF))); // 24 bits and less than another 30
        k = Float32Lib.fromInt(shift + (over >> 23));
    }
}
