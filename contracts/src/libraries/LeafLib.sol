// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDataRequests} from "../interfaces/IDataRequests.sol";
import {Terms} from "../interfaces/IRun.sol";
import {MerkleSha256} from "./MerkleSha256.sol";

/// @title Leaves under the roots of a submission
/// @notice Whether an opening shows the leaf that was asked for.
/// @dev A leaf's content is hashed under its own prefix, so no inner node passes for one and the length of its proof is the
/// depth of its tree. Only of a bare hash the depth must be known.
library LeafLib {
    uint256 private constant HASH_BYTES = 32;

    /// @notice Leaves of a trace: the start, one per interval of inner steps, and the encode.
    function traceLeaves(Terms memory terms) internal pure returns (uint256) {
        return 2 + (uint256(terms.steps) + terms.traceEvery - 1) / terms.traceEvery;
    }

    /// @notice Whether the opening's content is the hash of the leaf `index` of a tree with so many leaves.
    function showsHash(bytes32 root, uint64 index, IDataRequests.Opening calldata opening, uint256 count)
        internal
        view
        returns (bool)
    {
        if (opening.content.length != HASH_BYTES || opening.position != index) return false;
        return MerkleSha256.verify(root, bytes32(opening.content), index, opening.proof, MerkleSha256.depthOf(count));
    }

    /// @notice Whether the opening shows the content of the leaf `index` of a tree with so many leaves.
    function showsContent(bytes32 root, uint64 index, IDataRequests.Opening calldata opening, uint256 count)
        internal
        view
        returns (bool)
    {
        if (opening.position != index || opening.proof.length != MerkleSha256.depthOf(count)) return false;
        return showsOrEnds(root, index, opening);
    }

    /// @notice Whether the opening shows the content of the leaf `index`, or that of the last leaf before it.
    function showsOrEnds(bytes32 root, uint64 index, IDataRequests.Opening calldata opening)
        internal
        view
        returns (bool)
    {
        return _showsOrEnds(root, index, opening.position, opening.content, opening.proof);
    }

    /// @notice The same in the tree of trees of a local state: first the tensor, then its leaf, each shown or beyond the
    /// last one.
    function showsLocal(bytes32 root, uint64 index, IDataRequests.Opening calldata opening)
        internal
        view
        returns (bool)
    {
        (uint64 tensorIndex, uint64 leafIndex) = (index >> 32, index & type(uint32).max);
        bytes calldata tensor = opening.tensor;
        if (!_showsOrEnds(root, tensorIndex, opening.tensorPosition, tensor, opening.tensorProof)) return false;
        if (opening.tensorPosition != tensorIndex) return opening.content.length == 0 && opening.proof.length == 0;
        if (tensor.length < HASH_BYTES) return false;
        return showsOrEnds(bytes32(tensor[tensor.length - HASH_BYTES:]), leafIndex, opening);
    }

    function _showsOrEnds(bytes32 root, uint64 index, uint64 position, bytes calldata content, bytes32[] calldata proof)
        private
        view
        returns (bool)
    {
        if (position > index || (position < index && !_endsAt(position, proof))) return false;
        return MerkleSha256.verify(root, MerkleSha256.leafHash(content), position, proof, proof.length);
    }

    /// @dev Whether there is nothing but padding to the right of the path.
    function _endsAt(uint64 position, bytes32[] calldata proof) private pure returns (bool) {
        bytes32 absent = 0;
        for (uint256 i = 0; i < proof.length; ++i) {
            if (position >> i & 1 == 0 && proof[i] != absent) return false;
            absent = MerkleSha256.nodeHash(absent, absent);
        }
        return true;
    }
}
