// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Submission} from "../interfaces/ISubmission.sol";
import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";

/// @title EIP-712 hashing of submissions
library SubmissionLib {
    bytes32 internal constant TYPEHASH = keccak256(
        "Submission(bytes32 run,bytes32 specHash,uint64 round,bytes32 beacon,address miner,bytes32 initialRoot,uint64 localFromRound,bytes32 localIn,bytes32 localOut,bytes32 dataRoot,bytes32 payloadRoot,uint64 payloadBytes,bytes32 traceRoot,uint32 steps)"
    );

    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");

    /// @notice The EIP-712 domain separator of a run on this chain; equals the registry's.
    function separatorOf(address registry) internal view returns (bytes32) {
        return keccak256(abi.encode(DOMAIN_TYPEHASH, keccak256("Syntience"), keccak256("1"), block.chainid, registry));
    }

    /// @notice The EIP-712 struct hash.
    /// @dev keccak256(abi.encode(TYPEHASH, s)), the words taken as they are: one that is too large for its type gives the
    /// hash of something that nobody signed.
    function structHash(Submission calldata s) internal pure returns (bytes32 hash) {
        bytes32 typehash = TYPEHASH;
        assembly ("memory-safe") {
            let start := mload(0x40)
            mstore(start, typehash)
            calldatacopy(add(start, 0x20), s, 0x1c0)
            hash := keccak256(start, 0x1e0)
        }
    }

    /// @notice What the operator signs, and what is committed on chain.
    function digest(Submission calldata s, bytes32 domainSeparator) internal pure returns (bytes32) {
        return MessageHashUtils.toTypedDataHash(domainSeparator, structHash(s));
    }
}
