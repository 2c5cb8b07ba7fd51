// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Identity of a run
library RunLib {
    uint256 internal constant BPS = 10_000;

    /// @notice keccak256(abi.encode(chainId, registry, nonce)); stands in every signature, commit and PRF of the run.
    function id(address registry, uint256 nonce) internal view returns (bytes32) {
        return keccak256(abi.encode(block.chainid, registry, nonce));
    }
}
