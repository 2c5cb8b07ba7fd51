// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Values that change from one epoch (or round) to the next
/// @notice A history of (key, value) with growing keys. A value holds from its key on until the next one's.
/// @dev The newest entry stands apart, so that the common question costs one storage read. Entries are never removed: what
/// was true in a past epoch stays true.
library EpochTrace {
    struct Trace {
        /// key << 208 | value of the newest entry; 0 if there is none. Keys start at 1.
        uint256 head;
        /// Older entries in the same form, by ascending key.
        uint256[] past;
    }

    uint256 private constant VALUE_BITS = 208;

    error KeyNotAscending(uint256 key, uint256 newest);

    /// @notice Sets the value from `key` on; an entry of the same key is replaced.
    /// @param key At least the newest entry's, not 0, below 2^48.
    function push(Trace storage self, uint64 key, uint208 value) internal {
        uint256 head = self.head;
        uint256 newest = head >> VALUE_BITS;
        if (key < newest || key == 0) revert KeyNotAscending(key, newest);
        if (newest != 0 && key != newest) self.past.push(head);
        self.head = (uint256(key) << VALUE_BITS) | value;
    }

    /// @notice The newest value, whatever its key; 0 if there is none.
    function latest(Trace storage self) internal view returns (uint208 value) {
        (, value) = _unpack(self.head);
    }

    /// @notice The value that holds at `key`; 0 before the first entry.
    function valueAt(Trace storage self, uint64 key) internal view returns (uint208 value) {
        (, value) = entryAt(self, key);
    }

    /// @notice The entry that holds at `key`.
    /// @return since The entry's key; 0 before the first entry.
    /// @return value Its value; 0 before the first entry.
    function entryAt(Trace storage self, uint64 key) internal view returns (uint64 since, uint208 value) {
        (since, value) = _unpack(self.head);
        if (since <= key) return (since, value);
        // Binary search for the first older entry above `key`; log2(changes) steps.
        uint256 low = 0;
        uint256 high = self.past.length;
        while (low < high) {
            uint256 middle = (low + high) / 2;
            (since,) = _unpack(self.past[middle]);
            if (since > key) high = middle;
            else low = middle + 1;
        }
        return low == 0 ? (0, 0) : _unpack(self.past[low - 1]);
    }

    function _unpack(uint256 entry) private pure returns (uint64 key, uint208 value) {
        // forge-lint: disable-next-line(unsafe-typecast)
        return (uint64(entry >> VALUE_BITS), uint208(entry));
    }
}
