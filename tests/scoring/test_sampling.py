from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from protocol.beacon import Draw
from protocol.ids import Address, Round
from scoring.sampling import evaluation_draw, own_samples, random_samples, sample_peers
from tests.scoring.peers import peer
from tests.specs import some_hash


def drawn(label: str) -> Draw:
    return evaluation_draw(some_hash(label), peer(0))


def peers_in(
    label: str, candidates: list[Address], count: int, last: dict[Address, Round] | None = None
) -> list[Address]:
    return sample_peers(
        candidates,
        ordinals={miner: float(i) for i, miner in enumerate(sorted(candidates))},
        last_evaluated=last or {},
        round_=Round(50),
        count=count,
        draw=drawn(label),
    )


def test_draw__validator_and_beacon__both_matter() -> None:
    first = evaluation_draw(some_hash("a"), peer(0)).below(2**64)
    assert first == evaluation_draw(some_hash("a"), peer(0)).below(2**64)
    assert first != evaluation_draw(some_hash("a"), peer(1)).below(2**64)
    assert first != evaluation_draw(some_hash("b"), peer(0)).below(2**64)


def test_peers__no_more_than_the_count__are_all_taken() -> None:
    candidates = [peer(2), peer(0), peer(1)]
    assert peers_in("a", candidates, 3) == sorted(candidates)


def test_peers__many__come_from_one_bin_of_ratings() -> None:
    candidates = sorted(peer(i) for i in range(40))
    bins: Counter[int] = Counter()
    for i in range(200):
        taken = [candidates.index(miner) for miner in peers_in(str(i), candidates, 5)]
        assert len(set(taken)) == 5
        assert len({place // 10 for place in taken}) == 1
        bins[taken[0] // 10] += 1
    assert all(25 < bins[place] < 80 for place in range(4))


def test_peers__long_not_evaluated__are_preferred() -> None:
    candidates = sorted(peer(i) for i in range(7))
    last = {miner: Round(49) for miner in candidates[1:]}
    hits = sum(candidates[0] in peers_in(str(i), candidates, 2, last) for i in range(100))
    # Its share of the tickets is 50 of 56, and it has two chances.
    assert hits > 90


def test_peers__order_of_the_candidates__does_not_matter() -> None:
    candidates = [peer(i) for i in range(30)]
    assert peers_in("a", candidates, 4) == peers_in("a", candidates[::-1], 4)


def test_peers__count_of_zero__takes_nobody() -> None:
    assert peers_in("a", [peer(0)], 0) == []


@given(st.integers(1, 60), st.sets(st.integers(0, 59)), st.integers(0, 40), st.integers(0, 999))
def test_random__any_pool__draws_only_what_was_not_assigned(
    size: int, assigned: set[int], count: int, label: int
) -> None:
    assigned = {sample for sample in assigned if sample < size}
    samples = random_samples(
        train_samples=size, assigned=assigned, count=count, draw=drawn(str(label))
    )
    assert samples == sorted(set(samples))
    assert set(samples) <= set(range(size)) - assigned
    assert len(samples) == min(count, size - len(assigned))


def test_random__every_free_sample__is_as_likely() -> None:
    hits = Counter(
        sample
        for i in range(600)
        for sample in random_samples(train_samples=8, assigned=[1, 5], count=2, draw=drawn(str(i)))
    )
    assert set(hits) == {0, 2, 3, 4, 6, 7}
    assert all(150 < hits[sample] < 250 for sample in hits)


def test_random__large_pool__needs_no_list_of_it() -> None:
    samples = random_samples(train_samples=2**50, assigned=range(1000), count=64, draw=drawn("a"))
    assert len(samples) == 64
    assert min(samples) >= 1000


def test_own__are_distinct_samples_that_were_trained() -> None:
    assigned = [7, 3, 3, 9, 12, 7]
    some = own_samples(assigned, miner=peer(1), count=3, draw=drawn("a"))
    assert len(set(some)) == 3
    assert set(some) <= set(assigned)
    assert own_samples(assigned, miner=peer(1), count=80, draw=drawn("a")) == [3, 7, 9, 12]


def test_draws__of_one_round__are_independent_of_the_order_they_are_made_in() -> None:
    draw = drawn("a")
    first = random_samples(train_samples=1000, assigned=[], count=5, draw=draw)
    own_samples(range(80), miner=peer(1), count=5, draw=draw)
    assert random_samples(train_samples=1000, assigned=[], count=5, draw=draw) == first
