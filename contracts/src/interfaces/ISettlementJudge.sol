// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Opening} from "./ISettlement.sol";

/// @title Settlement judge
/// @notice Recomputes one leaf of a posted settlement from the revealed weights, the stake snapshot and the account's last
/// leaf. Stateless; the rewards distributor deploys it beside itself.
interface ISettlementJudge {
    /// @notice Whether an opened leaf is what the epoch's weights, stakes and history give. Reverts where the opening proves
    /// nothing: it does not lead to the posted root, or an input that it shows is not the recorded one.
    /// @dev Warning: an opening is only ever "wrong" for what the post itself committed to, so that nobody can make a right
    /// leaf look wrong by opening it with other inputs.
    /// @param attempt Which post of the epoch.
    /// @param index Leaf index, as challenged.
    /// @param cell Of a validator: the miner slot whose agreement is recomputed.
    function isRight(uint64 epoch, uint32 attempt, uint32 index, uint32 cell, Opening calldata opening)
        external
        view
        returns (bool);
}
