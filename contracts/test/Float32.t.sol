// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";
import {Float32, Float32Lib} from "../src/libraries/Float32.sol";
import {Float32Math} from "../src/libraries/Float32Math.sol";
import {LeadingZeros} from "../src/libraries/LeadingZeros.sol";
import {Float32Harness} from "./base/Float32Harness.sol";
import {LeadingZeros as LeadingZerosTwin} from "./symbolic/LeadingZeros.sol";

/// @notice What holds of binary32 whatever the numbers are; that each word is the right one, scripts/bench/float32 shows.
contract Float32Test is Test {
    uint32 internal constant SIGN = 0x80000000;
    Float32 internal constant TWO = Float32.wrap(0x40000000);
    Float32 internal constant LEAST = Float32.wrap(1);
    Float32 internal constant LARGEST = Float32.wrap(0x7f7fffff);

    Float32Harness internal harness = new Float32Harness();

    function _finite(uint32 word) private pure returns (Float32) {
        // An exponent of 255 loses a bit.
        return Float32.wrap(word & 0x7f800000 == 0x7f800000 ? word ^ 0x40000000 : word);
    }

    function _assertSame(Float32 a, Float32 b) private pure {
        assertEq(Float32.unwrap(a), Float32.unwrap(b));
    }

    // ---------------------------------------------------------------- arithmetic

    function testFuzz_fma_commutes(uint32 x, uint32 y, uint32 z) public pure {
        (Float32 a, Float32 b, Float32 c) = (Float32.wrap(x), Float32.wrap(y), Float32.wrap(z));
        _assertSame(a.fma(b, c), b.fma(a, c));
        _assertSame(a.add(b), b.add(a));
        _assertSame(a.mul(b), b.mul(a));
    }

    /// @dev The zeros that cancel keep +0.
    function testFuzz_fma_turnsWithTheSign(uint32 x, uint32 y, uint32 z) public pure {
        (Float32 a, Float32 b, Float32 c) = (_finite(x), _finite(y), _finite(z));
        Float32 plus = a.fma(b, c);
        Float32 minus = a.neg().fma(b, c.neg());
        if (plus.eq(Float32Lib.ZERO)) assertTrue(minus.eq(Float32Lib.ZERO));
        else _assertSame(minus, plus.neg());
    }

    /// @dev fma with +0 is the product, but that -0 + 0 is +0.
    function testFuzz_fma_ofZeroIsTheProduct(uint32 x, uint32 y) public pure {
        (Float32 a, Float32 b) = (_finite(x), _finite(y));
        Float32 product = a.mul(b);
        Float32 sum = a.fma(b, Float32Lib.ZERO);
        if (Float32.unwrap(product) == SIGN && (x & ~SIGN == 0 || y & ~SIGN == 0)) _assertSame(sum, Float32Lib.ZERO);
        else _assertSame(sum, product);
    }

    /// @dev -0 changes nothing, +0 makes a +0 of -0.
    function testFuzz_add_ofZeroChangesNoNumber(uint32 x) public pure {
        Float32 a = _finite(x);
        _assertSame(a.add(Float32.wrap(SIGN)), a);
        assertEq(Float32.unwrap(a.add(Float32Lib.ZERO)), Float32.unwrap(a) == SIGN ? 0 : Float32.unwrap(a));
        _assertSame(a.sub(a), Float32Lib.ZERO);
        _assertSame(Float32Lib.ONE.fma(a, Float32.wrap(SIGN)), a);
    }

    function testFuzz_add_isMonotonic(uint32 x, uint32 y, uint32 z) public pure {
        (Float32 a, Float32 b, Float32 c) = (_finite(x), _finite(y), _finite(z));
        (Float32 least, Float32 most) = (a.min(b), a.max(b));
        _assertAscends(least.add(c), most.add(c));
        _assertAscends(least.mul(c.abs()), most.mul(c.abs()));
        _assertAscends(least.fma(c.abs(), b), most.fma(c.abs(), b));
    }

    function _assertAscends(Float32 a, Float32 b) private pure {
        if (!a.isFault() && !b.isFault()) assertTrue(a.le(b));
    }

    function testFuzz_div_undoesAnExactProduct(uint16 x, uint16 y) public pure {
        Float32 a = Float32Lib.fromInt(int256(uint256(x)));
        Float32 b = Float32Lib.fromInt(int256(uint256(y % 256) + 1));
        _assertSame(a.mul(b).div(b), a);
    }

    /// @dev |a - q b| is within half a place of q, times b: the quotient is the nearest one.
    function testFuzz_div_leavesLessThanHalfAPlace(uint32 x, uint32 y) public pure {
        // Significands alone: exponents don't matter where nothing overflows.
        Float32 a = Float32.wrap(0x3f800000 | (x & 0x7fffff));
        Float32 b = Float32.wrap(0x3f800000 | (y & 0x7fffff));
        Float32 quotient = a.div(b);
        Float32 rest = quotient.neg().fma(b, a).abs();
        Float32 above = Float32.wrap(Float32.unwrap(quotient) + 1);
        Float32 below = Float32.wrap(Float32.unwrap(quotient) - 1);
        assertTrue(rest.le(above.neg().fma(b, a).abs()));
        assertTrue(rest.le(below.neg().fma(b, a).abs()));
    }

    function testFuzz_sqrt_undoesAnExactSquare(uint16 x) public pure {
        Float32 a = Float32Lib.fromInt(int256(uint256(x % 4096)));
        _assertSame(a.mul(a).sqrt(), a);
    }

    function testFuzz_scale_isAProduct(uint32 x, int8 n) public pure {
        Float32 a = _finite(x);
        n %= 127;
        _assertSame(a.scale(n), a.mul(Float32Lib.ONE.scale(n)));
        _assertSame(a.scale(n), a.div(Float32Lib.ONE.scale(-int256(n))));
    }

    function test_edges_areThoseOfTheStandard() public pure {
        _assertSame(LARGEST.add(LARGEST), Float32Lib.FAULT);
        // Half a place more is where the largest number ends.
        Float32 half = Float32.wrap(0x73000000);
        _assertSame(LARGEST.add(Float32.wrap(0x72ffffff)), LARGEST);
        _assertSame(LARGEST.add(half), Float32Lib.FAULT);
        // Half of the least number is a tie, and 0 is even; the next one is not.
        _assertSame(LEAST.scale(-1), Float32Lib.ZERO);
        _assertSame(Float32.wrap(3).scale(-1), Float32.wrap(2));
        _assertSame(LEAST.neg().scale(-1), Float32.wrap(SIGN));
        _assertSame(Float32.wrap(0x00ffffff).scale(-1), Float32.wrap(0x00800000));
        _assertSame(LEAST.scale(type(int256).max), Float32Lib.FAULT);
        _assertSame(LARGEST.scale(type(int256).min + 1), Float32Lib.ZERO);
        _assertSame(Float32Lib.ZERO.scale(type(int256).max), Float32Lib.ZERO);
        _assertSame(Float32Lib.fromInt(type(int256).min), Float32Lib.FAULT);
        _assertSame(Float32Lib.fromInt(1 << 127), Float32.wrap(0x7f000000));
        assertEq(TWO.scale(30).toInt(), Float32Lib.NO_INT);
        assertEq(TWO.scale(30).neg().toInt(), type(int32).min);
    }

    function testFuzz_fromInt_andBack(int256 n) public pure {
        n %= (1 << 24) + 1;
        assertEq(Float32Lib.fromInt(n).toInt(), n);
    }

    // ---------------------------------------------------------------- rows

    function testFuzz_chain_isFmaInOrder(uint32 acc, bytes32 seed, uint8 count) public view {
        count %= 40;
        bytes memory a = new bytes(4 * uint256(count));
        bytes memory b = new bytes(4 * uint256(count));
        Float32 expected = Float32.wrap(acc);
        for (uint256 i = 0; i < count; ++i) {
            uint256 random = uint256(keccak256(abi.encode(seed, i)));
            Float32 x = _finite(uint32(random));
            Float32 y = _finite(uint32(random >> 32));
            for (uint256 k = 0; k < 4; ++k) {
                a[4 * i + k] = bytes1(uint8(Float32.unwrap(x) >> (8 * k)));
                b[4 * i + k] = bytes1(uint8(Float32.unwrap(y) >> (8 * k)));
            }
            expected = x.fma(y, expected);
        }
        assertEq(harness.chain(acc, a, b), Float32.unwrap(expected));
    }

    function test_chain_revertsIfTheRowsDiffer() public {
        vm.expectRevert(abi.encodeWithSelector(Float32Lib.UnequalRows.selector, 4, 8));
        harness.chain(0, new bytes(4), new bytes(8));
    }

    function test_chain_revertsIfARowEndsWithinAWord() public {
        vm.expectRevert(abi.encodeWithSelector(Float32Lib.UnequalRows.selector, 6, 6));
        harness.chain(0, new bytes(6), new bytes(6));
    }

    // ---------------------------------------------------------------- functions

    function testFuzz_exp_ascendsAndStaysAboveZero(uint32 x) public pure {
        Float32 a = _finite(x);
        Float32 value = Float32Math.exp(a);
        // 88.72284 is the first number whose power of e is none.
        assertEq(value.isFault(), Float32.wrap(0x42b17217).lt(a));
        if (!value.isFault()) assertTrue(Float32Lib.ZERO.le(value));
    }

    function testFuzz_log_isOfPositiveNumbersOnly(uint32 x) public pure {
        Float32 a = Float32.wrap(x);
        assertEq(Float32Math.log(a).isFault(), !Float32Lib.ZERO.lt(a));
    }

    function testFuzz_sigmoid_liesBetweenZeroAndOne(uint32 x) public pure {
        Float32 value = Float32Math.sigmoid(_finite(x));
        assertTrue(Float32Lib.ZERO.le(value) && value.le(Float32Lib.ONE));
        assertFalse(Float32Math.silu(_finite(x)).isFault());
        assertFalse(Float32Math.siluGrad(_finite(x)).isFault());
    }

    function test_functions_areExactWhereTheyCanBe() public pure {
        _assertSame(Float32Math.exp(Float32Lib.ZERO), Float32Lib.ONE);
        _assertSame(Float32Math.exp(Float32.wrap(SIGN)), Float32Lib.ONE);
        _assertSame(Float32Math.log(Float32Lib.ONE), Float32Lib.ZERO);
        _assertSame(Float32Math.sigmoid(Float32Lib.ZERO), Float32.wrap(0x3f000000));
        _assertSame(Float32Math.silu(Float32Lib.ZERO), Float32Lib.ZERO);
        _assertSame(Float32Math.siluGrad(Float32Lib.ZERO), Float32.wrap(0x3f000000));
        _assertSame(Float32Math.rsqrt(Float32.wrap(0x40800000)), Float32.wrap(0x3f000000));
        _assertSame(Float32Math.rsqrt(Float32Lib.ZERO), Float32Lib.FAULT);
    }

    // ---------------------------------------------------------------- CLZ

    function testFuzz_count_agreesWithItsTwin(uint256 word, uint8 shift) public pure {
        assertEq(LeadingZeros.count(word >> shift), LeadingZerosTwin.count(word >> shift));
    }

    function test_count_agreesWithItsTwinAtEveryBit() public pure {
        for (uint256 bit = 0; bit < 256; ++bit) {
            assertEq(LeadingZeros.count(1 << bit), 255 - bit);
            assertEq(LeadingZerosTwin.count(1 << bit), 255 - bit);
            assertEq(LeadingZerosTwin.count(type(uint256).max >> bit), bit);
        }
        assertEq(LeadingZeros.count(0), 256);
        assertEq(LeadingZerosTwin.count(0), 256);
    }
}
