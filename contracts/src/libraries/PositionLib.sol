// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Position} from "../interfaces/IJudge.sol";

/// @title Positions of games, word by word
/// @notice A position is 26 words as it is encoded: 14 of its own and three lists of four. Every move takes one and makes
/// one; the compiler's field by field copying would be a tenth of a move.
library PositionLib {
    /// @notice Bytes of a game's id and its position.
    uint256 internal constant STATE_BYTES = 864;

    /// @notice keccak256(abi.encode(game, position)) of a call whose first two arguments these are.
    /// @dev They lie in the call as they are encoded.
    function stateOf(Position calldata position) internal pure returns (bytes32 state) {
        assembly ("memory-safe") {
            let buffer := mload(0x40)
            calldatacopy(buffer, sub(position, 0x20), STATE_BYTES)
            state := keccak256(buffer, STATE_BYTES)
        }
    }

    /// @notice The same position in memory.
    /// @dev Checks no field: only for a position whose hash was compared with one that was made out of a valid one.
    function load(Position calldata position) internal pure returns (Position memory p) {
        assembly ("memory-safe") {
            // As the compiler lays a struct out: 14 words, three pointers; here the lists follow.
            p := mload(0x40)
            mstore(0x40, add(p, 0x3a0))
            calldatacopy(p, position, 0x1c0)
            let lists := add(p, 0x220)
            mstore(add(p, 0x1c0), lists)
            mstore(add(p, 0x1e0), add(lists, 0x80))
            mstore(add(p, 0x200), add(lists, 0x100))
            calldatacopy(lists, add(position, 0x1c0), 0x180)
        }
    }

    /// @notice abi.encode(game, position, turn, lastBlock).
    function encode(bytes32 game, Position memory p, uint256 turn, uint256 lastBlock)
        internal
        pure
        returns (bytes memory data)
    {
        assembly ("memory-safe") {
            data := mload(0x40)
            mstore(0x40, add(data, 0x3c0))
            mstore(data, 0x3a0)
            mstore(add(data, 0x20), game)
            mcopy(add(data, 0x40), p, 0x1c0)
            mcopy(add(data, 0x200), mload(add(p, 0x1c0)), 0x80)
            mcopy(add(data, 0x280), mload(add(p, 0x1e0)), 0x80)
            mcopy(add(data, 0x300), mload(add(p, 0x200)), 0x80)
            mstore(add(data, 0x380), turn)
            mstore(add(data, 0x3a0), lastBlock)
        }
    }
}
