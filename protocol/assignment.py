"""Which samples a miner must train on: a PRF of the run, the round's beacon and the miner.

The contract evaluates the same function to prove wrong data, so it is keccak of static words.
"""

from __future__ import annotations

from protocol.hashing import abi_words, keccak256
from protocol.ids import Address, Hash32, Round

_TAG = keccak256(b"syntience.assign.v1")


def assigned_sample(
    *,
    run: Hash32,
    round_: Round,
    beacon: Hash32,
    miner: Address,
    index: int,
    train_samples: int,
) -> int:
    """Data set index in [0, train_samples) of the miner's ``index``-th sample of the round."""
    digest = keccak256(abi_words(_TAG, run, round_, beacon, miner, index))
    return int.from_bytes(digest, "big") % train_samples


def assigned_samples(
    *,
    run: Hash32,
    round_: Round,
    beacon: Hash32,
    miner: Address,
    count: int,
    train_samples: int,
) -> tuple[int, ...]:
    """The miner's first ``count`` samples of the round, in training order."""
    return tuple(
        assigned_sample(
            run=run,
            round_=round_,
            beacon=beacon,
            miner=miner,
            index=index,
            train_samples=train_samples,
        )
        for index in range(count)
    )
