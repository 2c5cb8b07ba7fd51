"""What the laboratory's own peers hand in, at a real workbench."""

from __future__ import annotations

import numpy as np
import pytest

from miner.behaviour import Behaviour
from miner.work import Work
from protocol.errors import OperatorError
from syntience.lab.pupils import bench_of, pupil
from syntience.lab.scenario import HONEST, Group
from tests.bench import Desk, desk_over
from tests.miner.test_work import MINER, faults_of
from tests.scoring.peers import peer
from training.codec import Payload, decode_payload, index_overlap
from training.dataset import TokenDataset

ROUNDS = 60
SEEING = ("recomputer", "near-copier", "merger", "alie", "ipm")


@pytest.fixture(scope="module")
def desk(text: TokenDataset) -> Desk:
    return desk_over(text)


@pytest.fixture(scope="module")
def others(desk: Desk) -> tuple[Payload, ...]:
    """The honest payloads of the round."""
    works = [desk.work("honest", peer(number))[0] for number in range(3)]
    return tuple(payload_of(desk, work) for work in works)


def payload_of(desk: Desk, work: Work) -> Payload:
    return decode_payload(work.blobs["payload"], desk.spec.model, desk.spec.codec)


def behaviour(kind: str, **options: float) -> Behaviour:
    return pupil(Group(name="x", kind=kind, options=options), ROUNDS)


def handed_in(desk: Desk, kind: str, others: tuple[Payload, ...] = ()) -> Work:
    start = desk.start(MINER, others=others)
    return behaviour(kind).work(desk.bench(MINER), start)[0]


@pytest.mark.parametrize(
    "kind", [*SEEING, "over-fitter", "lazy-elsewhere", "poisoner", "sign-flip", "behind", "on-off"]
)
def test_pupil__every_kind__shows_nothing_in_the_submission(
    desk: Desk, others: tuple[Payload, ...], kind: str
) -> None:
    assert faults_of(desk, handed_in(desk, kind, others)) == ()


def test_honest__at_full_strength__does_what_an_honest_miner_does(desk: Desk) -> None:
    (real,) = desk.work("honest", MINER)
    assert handed_in(desk, HONEST).submission == real.submission


@pytest.mark.parametrize("strength", [0.5, 2.0])
def test_honest__at_its_own_pace__signs_the_assigned_data_and_hands_in_something_else(
    desk: Desk, strength: float
) -> None:
    paced = pupil(Group(name="x", kind=HONEST, strength=strength), ROUNDS)
    (work,) = paced.work(desk.bench(MINER), desk.start(MINER))
    (real,) = desk.work("honest", MINER)
    assert work.submission.data_root == real.submission.data_root
    assert work.submission.payload_root != real.submission.payload_root
    assert faults_of(desk, work) == ()


def test_bench_of__more_steps__is_a_valid_spec(desk: Desk) -> None:
    longer = bench_of(desk.bench(MINER), steps=6).spec
    assert longer.chain.samples_per_round == 6 * desk.spec.inner.batch


def test_sign_flip__is_the_opposite_of_honest_work(desk: Desk) -> None:
    flipped = payload_of(desk, handed_in(desk, "sign-flip")).dense_flat()
    real = payload_of(desk, handed_in(desk, HONEST)).dense_flat()
    np.testing.assert_array_equal(flipped, -real)


def test_recomputer__hands_in_anothers_payload(desk: Desk, others: tuple[Payload, ...]) -> None:
    assert payload_of(desk, handed_in(desk, "recomputer", others)) == others[0]


def test_near_copier__shares_most_indices_under_another_root(
    desk: Desk, others: tuple[Payload, ...]
) -> None:
    payload = payload_of(desk, handed_in(desk, "near-copier", others))
    assert payload.root() != others[0].root()
    assert index_overlap(payload, others[0]) > 0.5


def test_merger__is_near_both(desk: Desk, others: tuple[Payload, ...]) -> None:
    payload = payload_of(desk, handed_in(desk, "merger", others))
    honest = index_overlap(others[0], others[1])
    assert min(index_overlap(payload, each) for each in others[:2]) > honest


def test_ipm__points_away_from_the_honest_mean(desk: Desk, others: tuple[Payload, ...]) -> None:
    update = payload_of(desk, handed_in(desk, "ipm", others)).dense_flat()
    mean = np.mean([each.dense_flat() for each in others], axis=0)
    assert float(np.dot(update, mean)) < 0


def test_alie__stays_near_the_honest_mean_and_gains_less_along_it(
    desk: Desk, others: tuple[Payload, ...]
) -> None:
    update = payload_of(desk, handed_in(desk, "alie", others)).dense_flat()
    honest = [each.dense_flat() for each in others]
    mean = np.mean(honest, axis=0)
    assert float(np.dot(update, mean)) < 0.5 * float(np.dot(mean, mean))
    assert float(np.linalg.norm(update)) < 2 * max(float(np.linalg.norm(u)) for u in honest)


def test_on_off__after_its_turn__hands_in_random_values(desk: Desk) -> None:
    start, bench = desk.start(MINER), desk.bench(MINER)
    before = behaviour("on-off", turn=1 / ROUNDS).work(bench, start)[0]
    after = behaviour("on-off", turn=0).work(bench, start)[0]
    assert before.submission.payload_root == handed_in(desk, HONEST).submission.payload_root
    assert after.submission.payload_root == desk.work("noise", MINER)[0].submission.payload_root


def test_poisoner__trains_on_another_text(desk: Desk) -> None:
    poisoned, real = handed_in(desk, "poisoner"), handed_in(desk, HONEST)
    assert poisoned.submission.data_root == real.submission.data_root
    assert poisoned.submission.payload_root != real.submission.payload_root


def test_pupil__unknown__is_told_the_choices() -> None:
    with pytest.raises(OperatorError, match="over-fitter"):
        behaviour("saint")
