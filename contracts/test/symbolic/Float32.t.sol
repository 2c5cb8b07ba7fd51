// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";
import {Float32, Float32Lib} from "../../src/libraries/Float32.sol";
import {LeadingZeros} from "../../src/libraries/LeadingZeros.sol";

/// @notice Proven by Halmos for every word (scripts/audit halmos): the special cases of the arithmetic, where random vectors
/// are thin. The sums and quotients of ordinary numbers are beyond the solver; scripts/bench/float32 tries those.
contract Float32Symbolic is Test {
    uint32 private constant SIGN = 0x80000000;
    uint32 private constant INFINITY = 0x7f800000;

    function check_count_isTheHighestBit(uint256 word) external pure {
        uint256 zeros = LeadingZeros.count(word);
        if (word == 0) assert(zeros == 256);
        else assert(zeros < 256 && word >> (255 - zeros) == 1);
    }

    // ---------------------------------------------------------------- faults

    function check_fma_ofAFault_isFault(Float32 a, Float32 b, Float32 c) external pure {
        vm.assume(a.isFault() || b.isFault() || c.isFault());
        assert(_same(a.fma(b, c), Float32Lib.FAULT));
    }

    function check_fma_isFiniteOrFault(Float32 a, Float32 b, Float32 c) external pure {
        _finiteOrFault(a.fma(b, c));
    }

    function check_ofAFault_isFault(Float32 a, Float32 b) external pure {
        vm.assume(a.isFault() || b.isFault());
        assert(_same(a.div(b), Float32Lib.FAULT));
        assert(_same(a.max(b), Float32Lib.FAULT));
        assert(_same(a.min(b), Float32Lib.FAULT));
        assert(!a.lt(b) && !a.le(b) && !a.eq(b));
    }

    function check_ofOneFault_isFault(Float32 a, int256 n) external pure {
        vm.assume(a.isFault());
        assert(_same(a.neg(), Float32Lib.FAULT));
        assert(_same(a.abs(), Float32Lib.FAULT));
        assert(_same(a.sqrt(), Float32Lib.FAULT));
        assert(_same(a.scale(n), Float32Lib.FAULT));
        assert(a.toInt() == Float32Lib.NO_INT);
    }

    function check_div_byZero_isFault(Float32 a, bool negative) external pure {
        assert(_same(a.div(Float32.wrap(negative ? SIGN : 0)), Float32Lib.FAULT));
    }

    function check_sqrt_belowZero_isFault(Float32 a) external pure {
        vm.assume(a.lt(Float32Lib.ZERO));
        assert(_same(a.sqrt(), Float32Lib.FAULT));
    }

    function check_scale_withoutInteger_isFault(Float32 a) external pure {
        assert(_same(a.scale(Float32Lib.NO_INT), Float32Lib.FAULT));
    }

    // ---------------------------------------------------------------- zeros and ones

    function check_mul_byOne_changesNothing(Float32 a) external pure {
        vm.assume(!a.isFault());
        assert(_same(a.mul(Float32Lib.ONE), a));
        assert(_same(Float32Lib.ONE.mul(a), a));
    }

    function check_mul_byZero_isAZeroOfTheProductsSign(Float32 a, bool negative) external pure {
        vm.assume(!a.isFault());
        uint32 zero = negative ? SIGN : 0;
        assert(Float32.unwrap(a.mul(Float32.wrap(zero))) == (Float32.unwrap(a) ^ zero) & SIGN);
    }

    function check_sub_ofItself_isPlusZero(Float32 a) external pure {
        vm.assume(!a.isFault());
        assert(_same(a.sub(a), Float32Lib.ZERO));
    }

    function check_sqrt_ofZero_isItself(bool negative) external pure {
        Float32 zero = Float32.wrap(negative ? SIGN : 0);
        assert(_same(zero.sqrt(), zero));
    }

    function check_scale_byNothing_changesNothing(Float32 a) external pure {
        vm.assume(!a.isFault());
        assert(_same(a.scale(0), a));
    }

    // ---------------------------------------------------------------- order

    /// @dev Of two numbers one is less, or they are equal: the same word, or two zeros.
    function check_lt_isAnOrder(Float32 a, Float32 b) external pure {
        vm.assume(!a.isFault() && !b.isFault());
        uint256 holds = (a.lt(b) ? 1 : 0) + (b.lt(a) ? 1 : 0) + (a.eq(b) ? 1 : 0);
        assert(holds == 1);
        assert(a.le(b) == !b.lt(a));
        bool zeros = (Float32.unwrap(a) | Float32.unwrap(b)) & ~SIGN == 0;
        assert(a.eq(b) == (_same(a, b) || zeros));
    }

    function check_lt_turnsWithTheSign(Float32 a, Float32 b) external pure {
        assert(a.lt(b) == b.neg().lt(a.neg()));
    }

    function check_max_isOneOfThem(Float32 a, Float32 b) external pure {
        vm.assume(!a.isFault() && !b.isFault());
        Float32 most = a.max(b);
        assert(_same(most, a) || _same(most, b));
        assert(a.le(most) && b.le(most));
        Float32 least = a.min(b);
        assert(_same(least, a) || _same(least, b));
        assert(least.le(a) && least.le(b));
    }

    function _same(Float32 a, Float32 b) private pure returns (bool) {
        return Float32.unwrap(a) == Float32.unwrap(b);
    }

    function _finiteOrFault(Float32 a) private pure {
        assert(Float32.unwrap(a) & ~SIGN < INFINITY || _same(a, Float32Lib.FAULT));
    }
}
