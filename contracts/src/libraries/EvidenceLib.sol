// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Hash of the evidence that a call brings
library EvidenceLib {
    /// @notice keccak256(abi.encode(a, b, ...)) of a call f(salt, a, b, ...), hashed where it lies.
    /// @dev Equal to that for arguments as every encoder lays them out, without gaps. Whatever else is in a call, down to its
    /// last byte, gives another hash: two calls of one hash bring the same bytes, so what was committed to is what is read.
    /// @param offsets Which words are offsets, which count from the salt in the call and from `a` in the hash: a byte each,
    /// the first in the lowest one, with the word's place after the salt. A place of 0 ends the list: `a` is no offset.
    function hash(uint256 offsets) internal pure returns (bytes32 evidenceHash) {
        assembly ("memory-safe") {
            let start := mload(0x40)
            let size := sub(calldatasize(), 0x24)
            calldatacopy(start, 0x24, size)
            for {} offsets { offsets := shr(8, offsets) } {
                let at := add(start, mul(and(offsets, 0xff), 0x20))
                mstore(at, sub(mload(at), 0x20))
            }
            evidenceHash := keccak256(start, size)
        }
    }
}
