// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";
import {Float32, Float32Lib} from "../src/libraries/Float32.sol";
import {Float32Math} from "../src/libraries/Float32Math.sol";
import {Float32Harness} from "./base/Float32Harness.sol";

/// @notice What the arithmetic of a leaf costs. An operation: the dearer one of two, on ordinary numbers. A row: by receipt,
/// calldata included, with numbers of both signs.
contract Float32GasTest is Test {
    Float32 internal constant A = Float32.wrap(0x3fc90fdb);
    Float32 internal constant B = Float32.wrap(0xc02df854);
    Float32 internal constant C = Float32.wrap(0x3e9a209b);

    Float32Harness internal harness = new Float32Harness();

    function _cost(string memory what, uint256 before, uint256 between, uint256 afterwards, uint256 most) private {
        uint256 used = before - between > between - afterwards ? before - between : between - afterwards;
        emit log_named_uint(what, used);
        assertLe(used, most, what);
    }

    function test_fma_costs() public {
        uint256 before = gasleft();
        Float32 x = A.fma(B, C);
        uint256 between = gasleft();
        x = x.fma(B, C);
        _cost("fma", before, between, gasleft(), 1010);
    }

    function test_add_costs() public {
        uint256 before = gasleft();
        Float32 x = A.add(B);
        uint256 between = gasleft();
        x = x.add(B);
        _cost("add", before, between, gasleft(), 1060);
    }

    function test_mul_costs() public {
        uint256 before = gasleft();
        Float32 x = A.mul(B);
        uint256 between = gasleft();
        x = x.mul(B);
        _cost("mul", before, between, gasleft(), 670);
    }

    function test_div_costs() public {
        uint256 before = gasleft();
        Float32 x = A.div(B);
        uint256 between = gasleft();
        x = x.div(B);
        _cost("div", before, between, gasleft(), 770);
    }

    function test_sqrt_costs() public {
        uint256 before = gasleft();
        Float32 x = A.sqrt();
        uint256 between = gasleft();
        x = x.sqrt();
        _cost("sqrt", before, between, gasleft(), 1300);
    }

    function test_exp_costs() public {
        uint256 before = gasleft();
        Float32 x = Float32Math.exp(A);
        uint256 between = gasleft();
        x = Float32Math.exp(x);
        _cost("exp", before, between, gasleft(), 11_000);
    }

    function test_log_costs() public {
        uint256 before = gasleft();
        Float32 x = Float32Math.log(A);
        uint256 between = gasleft();
        x = Float32Math.log(x);
        _cost("log", before, between, gasleft(), 13_200);
    }

    function test_siluGrad_costs() public {
        uint256 before = gasleft();
        Float32 x = Float32Math.siluGrad(A);
        uint256 between = gasleft();
        x = Float32Math.siluGrad(x);
        _cost("siluGrad", before, between, gasleft(), 28_000);
    }

    /// forge-config: default.isolate = true
    function test_chain_of64_costs() public {
        _chain(64, 75_000);
    }

    /// forge-config: default.isolate = true
    function test_chain_of768_costs() public {
        _chain(768, 640_000);
    }

    /// forge-config: default.isolate = true
    function test_chain_of2048_costs() public {
        _chain(2048, 1_700_000);
    }

    function _chain(uint256 count, uint256 most) private {
        bytes memory a = _row(count, "a");
        bytes memory b = _row(count, "b");
        // Not by its type: a function that is pure is called statically, which is no transaction.
        (bool success,) = address(harness).call(abi.encodeCall(harness.chain, (0, a, b)));
        assertTrue(success);
        uint256 used = vm.lastCallGas().gasTotalUsed;
        emit log_named_uint("a row, by receipt", used);
        assertLe(used, most);
    }

    /// @dev Numbers between 2^-4 and 2^4, as trained weights and what they meet are spread.
    function _row(uint256 count, string memory seed) private pure returns (bytes memory row) {
        row = new bytes(4 * count);
        for (uint256 i = 0; i < count; ++i) {
            uint256 random = uint256(keccak256(abi.encode(seed, i)));
            uint256 word = ((random & 1) << 31) | ((123 + (random >> 8) % 8) << 23) | ((random >> 16) & 0x7fffff);
            for (uint256 k = 0; k < 4; ++k) {
                row[4 * i + k] = bytes1(uint8(word >> (8 * k)));
            }
        }
    }
}
