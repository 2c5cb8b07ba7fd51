// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Stakes that change from one epoch to the next
/// @notice A history of (epoch, amount) with growing epochs. An amount holds from its epoch on until the next one's.
/// @dev As EpochTrace, two entries a word: only every second change fills a new word, and there is no length to keep beside.
/// Entries are never removed: what was true in a past epoch stays true.
library StakeTrace {
    struct Trace {
        /// count << 232 | earlier entry << 116 | newest entry; an entry is epoch << 92 | amount, 0 if there is none.
        uint256 head;
        /// `count` full words of older entries in the same form, by ascending epoch.
        mapping(uint256 index => uint256 word) past;
    }

    uint256 private constant AMOUNT_BITS = 92;
    uint256 private constant ENTRY_BITS = 116;
    uint256 private constant COUNT_SHIFT = 232;
    uint256 private constant ENTRY_MASK = (uint256(1) << ENTRY_BITS) - 1;
    uint256 private constant MOST_EPOCH = 0xffffff;
    /// @notice Most that an entry holds, in base units: 4.9 billion tokens of 18 decimals.
    uint256 internal constant MOST_AMOUNT = (uint256(1) << AMOUNT_BITS) - 1;

    error EpochNotAscending(uint256 epoch, uint256 newest);
    error AmountTooLarge(uint256 amount, uint256 most);

    /// @notice Sets the amount from `epoch` on; an entry of the same epoch is replaced.
    /// @param epoch At least the newest entry's, not 0, below 2^24. `count` can't run over: there are fewer epochs.
    function push(Trace storage self, uint64 epoch, uint256 amount) internal {
        if (amount > MOST_AMOUNT) revert AmountTooLarge(amount, MOST_AMOUNT);
        uint256 head = self.head;
        uint256 newest = _epochOf(head);
        if (epoch < newest || epoch == 0 || epoch > MOST_EPOCH) revert EpochNotAscending(epoch, newest);
        uint256 entry = uint256(epoch) << AMOUNT_BITS | amount;
        if (newest == 0 || newest == epoch) {
            self.head = (head & ~ENTRY_MASK) | entry;
            return;
        }
        uint256 count = head >> COUNT_SHIFT;
        if ((head >> ENTRY_BITS) & ENTRY_MASK == 0) {
            self.head = count << COUNT_SHIFT | (head & ENTRY_MASK) << ENTRY_BITS | entry;
        } else {
            self.past[count] = head;
            self.head = (count + 1) << COUNT_SHIFT | entry;
        }
    }

    /// @notice The newest amount, whatever its epoch; 0 if there is none.
    function latest(Trace storage self) internal view returns (uint256) {
        return self.head & MOST_AMOUNT;
    }

    /// @notice The amount that holds in `epoch`; 0 before the first entry.
    function valueAt(Trace storage self, uint64 epoch) internal view returns (uint256) {
        uint256 head = self.head;
        if (_epochOf(head) <= epoch) return head & MOST_AMOUNT;
        uint256 earlier = (head >> ENTRY_BITS) & ENTRY_MASK;
        if (earlier != 0 && _epochOf(earlier) <= epoch) return earlier & MOST_AMOUNT;
        // Binary search for the first older word whose earlier entry is above `epoch`; log2(changes / 2) steps.
        uint256 low = 0;
        uint256 high = head >> COUNT_SHIFT;
        while (low < high) {
            uint256 middle = (low + high) / 2;
            if (_epochOf(self.past[middle] >> ENTRY_BITS) > epoch) high = middle;
            else low = middle + 1;
        }
        if (low == 0) return 0;
        uint256 word = self.past[low - 1];
        return (_epochOf(word) <= epoch ? word : word >> ENTRY_BITS) & MOST_AMOUNT;
    }

    /// @dev Of the entry in the lowest bits.
    function _epochOf(uint256 word) private pure returns (uint256) {
        return (word >> AMOUNT_BITS) & MOST_EPOCH;
    }
}
