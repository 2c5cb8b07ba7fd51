// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Float32, Float32Lib} from "../../src/libraries/Float32.sol";
import {Float32Math} from "../../src/libraries/Float32Math.sol";

/// @notice The arithmetic behind external calls: one operation on many operands, and rows. scripts/bench/float32 compares
/// it with Python.
contract Float32Harness {
    /// @notice In the order of scripts/bench/float32_operations.py.
    enum Operation {
        Fma,
        Add,
        Sub,
        Mul,
        Div,
        Sqrt,
        Neg,
        Abs,
        Scale,
        Lt,
        Le,
        Eq,
        Max,
        Min,
        FromInt,
        ToInt,
        Exp,
        Log,
        Sigmoid,
        Silu,
        SiluGrad,
        Rsqrt
    }

    /// @notice The operation on each of many operands.
    /// @param operands Three words each, big-endian, of which an operation takes the first ones; integers are two's complement.
    /// @return results Eight bytes each: a word, 0 or 1, or an integer (NO_INT is the least of 64 bits).
    function compute(Operation operation, bytes calldata operands) external pure returns (bytes memory results) {
        uint256 count = operands.length / 12;
        results = new bytes(8 * count);
        for (uint256 i = 0; i < count; ++i) {
            Float32 a = Float32.wrap(uint32(bytes4(operands[12 * i:])));
            Float32 b = Float32.wrap(uint32(bytes4(operands[12 * i + 4:])));
            Float32 c = Float32.wrap(uint32(bytes4(operands[12 * i + 8:])));
            // 256 bits wide, because only a conversion clears what lies above the 64.
            uint256 result =
                operation < Operation.Exp ? _basic(operation, a, b, c) : Float32.unwrap(_function(operation, a));
            assembly ("memory-safe") {
                let place := add(add(results, 8), shl(3, i))
                mstore(place, or(shl(64, shr(64, mload(place))), result))
            }
        }
    }

    /// @notice A dot product on top of `acc`.
    function chain(uint32 acc, bytes calldata a, bytes calldata b) external pure returns (uint32) {
        return Float32.unwrap(Float32Lib.chain(Float32.wrap(acc), a, b));
    }

    function _basic(Operation operation, Float32 a, Float32 b, Float32 c) private pure returns (uint64) {
        if (operation >= Operation.Lt && operation <= Operation.Eq) {
            if (operation == Operation.Lt) return a.lt(b) ? 1 : 0;
            if (operation == Operation.Le) return a.le(b) ? 1 : 0;
            return a.eq(b) ? 1 : 0;
        }
        if (operation == Operation.ToInt) {
            int256 n = a.toInt(); // an int32 otherwise
            // forge-lint: disable-next-line(unsafe-typecast)
            return n == Float32Lib.NO_INT ? 1 << 63 : uint64(int64(n));
        }
        return Float32.unwrap(_arithmetic(operation, a, b, c));
    }

    function _arithmetic(Operation operation, Float32 a, Float32 b, Float32 c) private pure returns (Float32) {
        if (operation == Operation.Fma) return a.fma(b, c);
        if (operation == Operation.Add) return a.add(b);
        if (operation == Operation.Sub) return a.sub(b);
        if (operation == Operation.Mul) return a.mul(b);
        if (operation == Operation.Div) return a.div(b);
        if (operation == Operation.Sqrt) return a.sqrt();
        if (operation == Operation.Neg) return a.neg();
        if (operation == Operation.Abs) return a.abs();
        if (operation == Operation.Scale) return a.scale(int32(Float32.unwrap(b)));
        if (operation == Operation.Max) return a.max(b);
        if (operation == Operation.Min) return a.min(b);
        return Float32Lib.fromInt(int64((uint64(Float32.unwrap(a)) << 32) | Float32.unwrap(b)));
    }

    function _function(Operation operation, Float32 a) private pure returns (Float32) {
        if (operation == Operation.Exp) return Float32Math.exp(a);
        if (operation == Operation.Log) return Float32Math.log(a);
        if (operation == Operation.Sigmoid) return Float32Math.sigmoid(a);
        if (operation == Operation.Silu) return Float32Math.silu(a);
        if (operation == Operation.SiluGrad) return Float32Math.siluGrad(a);
        return Float32Math.rsqrt(a);
    }
}
