// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Who held what, from which epoch until which
/// @notice A history of tenures that don't overlap: each has a holder, a first epoch and the epoch before which it ended.
/// @dev One word a tenure, so that to end one is to write over its word. Tenures are never removed, empty ones apart: what
/// was true in a past epoch stays true.
library TenureTrace {
    struct Trace {
        /// note << 240 | until << 200 | since << 160 | holder of the newest tenure; 0 if there is none.
        uint256 head;
        /// Older tenures in the same form, by ascending epoch.
        uint256[] past;
    }

    /// @notice End of a tenure that did not end.
    uint256 internal constant OPEN = type(uint40).max;
    uint256 private constant SINCE_SHIFT = 160;
    uint256 private constant UNTIL_SHIFT = 200;
    uint256 private constant NOTE_SHIFT = 240;
    uint256 private constant EPOCH_MASK = type(uint40).max;

    error TenuresOverlap(uint256 since, uint256 until);

    /// @notice Starts a tenure; the newest one must have ended by then. One that ended before it started leaves no trace.
    /// @param since Not 0, below 2^40 - 1.
    /// @param holder Not 0.
    function start(Trace storage self, uint64 since, uint160 holder) internal {
        uint256 head = self.head;
        if (head != 0) {
            (uint256 headSince, uint256 headUntil) = _span(head);
            if (headUntil > since) revert TenuresOverlap(since, headUntil);
            if (headSince != headUntil) self.past.push(head);
        }
        self.head = OPEN << UNTIL_SHIFT | uint256(since) << SINCE_SHIFT | holder;
    }

    /// @notice Ends the newest tenure, which must be open.
    /// @param until The first epoch that is no longer part of it; its first one at least.
    /// @param note_ Kept until the next tenure starts.
    function end(Trace storage self, uint64 until, uint16 note_) internal {
        uint256 kept = self.head & ((uint256(1) << UNTIL_SHIFT) - 1);
        self.head = uint256(note_) << NOTE_SHIFT | uint256(until) << UNTIL_SHIFT | kept;
    }

    /// @notice `rename` and `end` in one, without a note.
    function endAs(Trace storage self, uint160 holder, uint64 until) internal {
        uint256 since = self.head & (EPOCH_MASK << SINCE_SHIFT);
        self.head = uint256(until) << UNTIL_SHIFT | since | holder;
    }

    /// @notice Replaces the holder of the newest tenure, whether it ended or not.
    function rename(Trace storage self, uint160 holder) internal {
        self.head = self.head >> SINCE_SHIFT << SINCE_SHIFT | holder;
    }

    /// @notice What was noted at the end of the newest tenure.
    function note(Trace storage self) internal view returns (uint16) {
        // forge-lint: disable-next-line(unsafe-typecast)
        return uint16(self.head >> NOTE_SHIFT);
    }

    /// @notice The newest tenure; all 0 if there is none.
    /// @return holder Its holder, whether it ended or not.
    /// @return since Its first epoch.
    /// @return until The epoch before which it ended; OPEN if it did not.
    function newest(Trace storage self) internal view returns (uint160 holder, uint256 since, uint256 until) {
        uint256 head = self.head;
        // forge-lint: disable-next-line(unsafe-typecast)
        holder = uint160(head);
        (since, until) = _span(head);
    }

    /// @notice The holder now and from the next epoch on; 0 if there is none.
    function latest(Trace storage self) internal view returns (uint160 holder) {
        uint256 until;
        (holder,, until) = newest(self);
        if (until != OPEN) holder = 0;
    }

    /// @notice Who held it in an epoch.
    /// @return since The epoch since which that has been so; 0 before the first tenure.
    /// @return holder 0 if nobody did.
    function entryAt(Trace storage self, uint64 epoch) internal view returns (uint64 since, uint160 holder) {
        uint256 entry = self.head;
        (uint256 from, uint256 until) = _span(entry);
        if (epoch < from) {
            entry = _pastAt(self, epoch);
            (from, until) = _span(entry);
        }
        // forge-lint: disable-next-line(unsafe-typecast)
        if (epoch < until || until == OPEN) return (uint64(from), uint160(entry));
        // forge-lint: disable-next-line(unsafe-typecast)
        return (uint64(until), 0);
    }

    /// @dev The last older tenure that started by `epoch`, by binary search; 0 if there is none.
    function _pastAt(Trace storage self, uint64 epoch) private view returns (uint256) {
        uint256 low = 0;
        uint256 high = self.past.length;
        while (low < high) {
            uint256 middle = (low + high) / 2;
            (uint256 from,) = _span(self.past[middle]);
            if (from > epoch) high = middle;
            else low = middle + 1;
        }
        return low == 0 ? 0 : self.past[low - 1];
    }

    function _span(uint256 entry) private pure returns (uint256 since, uint256 until) {
        return ((entry >> SINCE_SHIFT) & EPOCH_MASK, (entry >> UNTIL_SHIFT) & EPOCH_MASK);
    }
}
