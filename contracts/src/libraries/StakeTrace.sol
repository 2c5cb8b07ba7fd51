// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Stakes that change from one epoch to the next
/// @notice A history of (epoch, amount) with growing epochs. An amount holds from its epoch on until the next one's. Of the
/// past it keeps a ring of words, so that a change writes over used storage.
/// @dev Two entries a word: only every second change fills a word of the ring. An epoch has one entry at most, so a ring of
/// `wordsFor(n)` words answers for the newest entry's epoch and at least the n epochs before it, whatever was pushed. What
/// it no longer knows it refuses to answer: `valueAt` reverts, it is never wrong.
library StakeTrace {
    struct Trace {
        /// count << 232 | earlier entry << 116 | newest entry; an entry is epoch << 92 | amount, 0 if there is none.
        uint256 head;
        /// Word i of the `count` full words of older entries, in the same form and by ascending epoch, lies in place i
        /// modulo the ring's size until word i + size takes it.
        mapping(uint256 place => uint256 word) ring;
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
    /// @notice What held in `epoch` was written over; the ring knows the epochs from `oldest` on.
    error EpochForgotten(uint256 epoch, uint256 oldest);

    /// @notice Words of a ring that answers for the epoch of the newest entry and the `back` epochs before it.
    /// @dev The head holds the newest entry at least. Those `back` epochs have as many entries at most, and what held in the
    /// first of them may have been entered before it.
    function wordsFor(uint256 back) internal pure returns (uint256) {
        return (back + 2) / 2;
    }

    /// @notice Sets the amount from `epoch` on; an entry of the same epoch is replaced.
    /// @param size Words of the ring, always the same for a trace; not 0.
    /// @param epoch At least the newest entry's, not 0. From 2^24 - 1 on all epochs count as that one: a run of so many
    /// epochs forgets when its stakes changed, but never fails to change them.
    function push(Trace storage self, uint256 size, uint256 epoch, uint256 amount) internal {
        if (amount > MOST_AMOUNT) revert AmountTooLarge(amount, MOST_AMOUNT);
        uint256 key = epoch < MOST_EPOCH ? epoch : MOST_EPOCH;
        uint256 head = self.head;
        uint256 newest = _epochOf(head);
        if (key < newest || key == 0) revert EpochNotAscending(epoch, newest);
        unchecked {
            uint256 entry = key << AMOUNT_BITS | amount;
            uint256 count = head >> COUNT_SHIFT;
            if (newest == 0 || newest == key) {
                head = (head & ~ENTRY_MASK) | entry;
            } else if ((head >> ENTRY_BITS) & ENTRY_MASK == 0) {
                head = count << COUNT_SHIFT | (head & ENTRY_MASK) << ENTRY_BITS | entry;
            } else {
                // `count` can't run over: there are fewer epochs.
                self.ring[count % size] = head;
                head = (count + 1) << COUNT_SHIFT | entry;
            }
            self.head = head;
        }
    }

    /// @notice The newest amount, whatever its epoch; 0 if there is none.
    function latest(Trace storage self) internal view returns (uint256) {
        return self.head & MOST_AMOUNT;
    }

    /// @notice The amount that holds in `epoch`; 0 before the first entry. Reverts for an epoch that the ring forgot.
    /// @param size As in `push`.
    function valueAt(Trace storage self, uint256 size, uint64 epoch) internal view returns (uint256) {
        uint256 key = epoch < MOST_EPOCH ? epoch : MOST_EPOCH;
        uint256 head = self.head;
        if (_epochOf(head) <= key) return head & MOST_AMOUNT;
        uint256 earlier = (head >> ENTRY_BITS) & ENTRY_MASK;
        if (earlier != 0 && _epochOf(earlier) <= key) return earlier & MOST_AMOUNT;
        // Binary search for the first word whose earlier entry lies after `at`.
        uint256 count = head >> COUNT_SHIFT;
        uint256 oldest = count < size ? 0 : count - size;
        (uint256 low, uint256 high) = (oldest, count);
        while (low < high) {
            uint256 middle = (low + high) / 2;
            if (_epochOf(self.ring[middle % size] >> ENTRY_BITS) > key) high = middle;
            else low = middle + 1;
        }
        if (low == oldest) {
            if (oldest == 0) return 0;
            revert EpochForgotten(epoch, _epochOf(self.ring[oldest % size] >> ENTRY_BITS));
        }
        uint256 word = self.ring[(low - 1) % size];
        return (_epochOf(word) <= key ? word : word >> ENTRY_BITS) & MOST_AMOUNT;
    }

    /// @dev Of the entry in the lowest bits.
    function _epochOf(uint256 word) private pure returns (uint256) {
        return (word >> AMOUNT_BITS) & MOST_EPOCH;
    }
}
