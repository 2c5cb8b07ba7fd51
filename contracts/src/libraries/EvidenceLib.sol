// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Hash of the evidence that a call brings
library EvidenceLib {
    /// @notice keccak256(abi.encode(a, b, ...)) of a call f(salt, a, b, ...), hashed where it lies.
    /// @dev Equal to that for arguments as every encoder lays them out, without gaps. Whatever else is in a call, down to its
    /// last byte, gives another hash: two calls of one hash bring the same bytes, so what was committed to is what is read.
    /// @param offsets Bit i tells that the i-th word after the salt is an offset, which counts from the salt in the call and
    /// from `a` in the hash.
    function hash(uint256 offsets) internal pure returns (bytes32 evidenceHash) {
        assembly ("memory-safe") {
            let start := mload(0x40)
            let size := sub(calldatasize(), 0x24)
            calldatacopy(start, 0x24, size)
            for { let at := start } offsets { at := add(at, 0x20) } {
                if and(offsets, 1) { mstore(at, sub(mload(at), 0x20)) }
                offsets := shr(1, offsets)
            }
            evidenceHash := keccak256(start, size)
        }
    }
}
