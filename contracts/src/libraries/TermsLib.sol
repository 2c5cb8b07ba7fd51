// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Terms} from "../interfaces/IRun.sol";

/// @title What terms must hold, and which ones apply
library TermsLib {
    uint8 private constant MOST_DEPTH = 63;
    /// What an index of 12 bits reaches.
    uint16 private constant MOST_CHUNK = 4096;

    /// @notice Names the first contradiction in terms; empty if there is none.
    function flaw(Terms memory terms) internal pure returns (string memory) {
        if (terms.specHash == 0) return "specHash";
        if (terms.samplesPerRound == 0 || terms.trainSamples == 0) return "samples";
        if (terms.datasetDepth > MOST_DEPTH || terms.trainSamples > uint64(1) << terms.datasetDepth) {
            return "datasetDepth";
        }
        if (terms.steps == 0) return "steps";
        if (terms.traceEvery == 0) return "traceEvery";
        if (terms.codecChunk == 0 || terms.codecChunk > MOST_CHUNK) return "codecChunk";
        // A power of two up to 8.
        if (terms.codecBits == 0 || terms.codecBits > 8 || terms.codecBits & (terms.codecBits - 1) != 0) {
            return "codecBits";
        }
        return "";
    }

    /// @notice How many terms of a schedule start by `epoch`: the last of them applies. 0 if none does.
    /// @dev From the newest; else binary search, so that no number of announcements makes a verdict dear.
    /// @param schedule Terms by ascending first epoch.
    function countAt(Terms[] storage schedule, uint64 epoch) internal view returns (uint256 low) {
        uint256 high = schedule.length;
        if (high != 0 && schedule[high - 1].fromEpoch <= epoch) return high;
        while (low < high) {
            uint256 middle = (low + high) / 2;
            if (schedule[middle].fromEpoch > epoch) high = middle;
            else low = middle + 1;
        }
    }
}
