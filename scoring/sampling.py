"""Whom a validator evaluates in a round, and on which samples.

Every choice comes from the evaluation beacon and the validator's address: unpredictable to miners,
repeatable by anyone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from protocol.beacon import Draw, seed_from
from protocol.ids import Address, Hash32, Round, address_bytes


def evaluation_draw(beacon: Hash32, validator: Address) -> Draw:
    """The source of one validator's choices in the round of this evaluation beacon."""
    return Draw(seed_from(beacon, "evaluate", address_bytes(validator)))


def sample_peers(
    candidates: Collection[Address],
    *,
    ordinals: Mapping[Address, float],
    last_evaluated: Mapping[Address, Round],
    round_: Round,
    count: int,
    draw: Draw,
) -> list[Address]:
    """The peers to evaluate, ordered by address.

    Peers are ordered by rating into equal bins of at least 2 x count, one bin is drawn, and inside
    it peers are drawn without replacement, weighted by the rounds since they were last evaluated.
    So peers meet others of their strength, and nobody is left out for long. If there are no more
    than ``count``, all are taken.

    Args:
        candidates: the accepted miners.
        ordinals: their LossRatings; 0 for whoever is missing.
        last_evaluated: the round of each one's last evaluation; missing if never.
        round_: this round.
        count: peers to draw.
        draw: from `evaluation_draw(...)`.
    """
    if len(candidates) <= count:
        return sorted(candidates)
    own = draw.child("peers")
    ranked = sorted(candidates, key=lambda miner: (ordinals.get(miner, 0.0), miner))
    bins = max(1, len(ranked) // (2 * count)) if count else 1
    chosen = own.below(bins)
    pool = ranked[chosen * len(ranked) // bins : (chosen + 1) * len(ranked) // bins]
    ages = [max(1, round_ - last_evaluated.get(miner, Round(0))) for miner in pool]
    taken = []
    for _ in range(count):
        ticket = own.below(sum(ages))
        index = 0
        while ticket >= ages[index]:
            ticket -= ages[index]
            index += 1
        taken.append(pool.pop(index))
        ages.pop(index)
    return sorted(taken)


def random_samples(
    *, train_samples: int, assigned: Collection[int], count: int, draw: Draw
) -> list[int]:
    """D_rand: distinct training samples that nobody was assigned this round, ascending.

    Args:
        train_samples: size of the training pool.
        assigned: every sample that any miner was assigned this round.
        count: samples to draw; fewer come back if the rest of the pool is smaller.
        draw: from `evaluation_draw(...)`.
    """
    taken = sorted(set(assigned))
    free = train_samples - len(taken)
    positions = sorted(draw.child("random").sample(free, min(count, free)))
    # The p-th free sample is p plus the number of taken ones up to it; both lists ascend.
    samples, passed = [], 0
    for position in positions:
        while passed < len(taken) and taken[passed] <= position + passed:
            passed += 1
        samples.append(position + passed)
    return samples


def own_samples(assigned: Sequence[int], *, miner: Address, count: int, draw: Draw) -> list[int]:
    """D_p's evaluated part: ``count`` of the distinct samples that the miner trained, ascending."""
    pool = sorted(set(assigned))
    own = draw.child("own", address_bytes(miner))
    return sorted(pool[i] for i in own.sample(len(pool), min(count, len(pool))))
