"""Each cheat off the chain: what it hands in, and what of it is visible."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from miner.behaviour import Behaviour
from miner.cheats import CHEATS, Equivocator, LocalOutOfLine, Stale, behaviour_named
from miner.work import Work
from node.contents import read_data_leaves, read_local, read_payload, read_trace
from protocol.errors import OperatorError
from protocol.ids import Address, Round
from scoring.checks import Fault
from tests.bench import Desk, desk_over
from tests.miner.test_work import MINER, faults_of
from tests.specs import some_hash
from tests.subnet.stepped import key_named
from training.codec import Payload
from training.dataset import TokenDataset
from training.local_state import LocalState
from training.parameters import initial_parameters
from training.roots import zero_local_root
from transport.server import Requester
from validator.evaluation import Exam, Examiner

INVISIBLE = [kind for kind in CHEATS if kind not in ("wrong-data", "wrong-spec", "stale")]
FACTORS = (2, 5, 1000)


@pytest.fixture(scope="module")
def desk(text: TokenDataset) -> Desk:
    return desk_over(text)


@pytest.fixture(scope="module")
def honest(desk: Desk) -> Work:
    return desk.work("honest", MINER)[0]


def payload_of(desk: Desk, work: Work) -> Payload:
    return read_payload(work.blobs["payload"], work.submission, desk.spec)


@pytest.mark.parametrize("kind", ["honest", *CHEATS])
def test_cheats__every_kind__hands_in_what_it_signs(desk: Desk, kind: str) -> None:
    versions = desk.work(kind, MINER)
    assert len(versions) == (2 if kind == "equivocator" else 1)
    for work in versions:
        read_payload(work.blobs["payload"], work.submission, desk.spec)
        read_data_leaves(work.blobs["data"], work.submission, desk.spec)
        read_trace(work.blobs["trace"], work.submission, desk.spec)
        read_local(work.blobs["local"], work.submission, desk.spec)


@pytest.mark.parametrize("kind", INVISIBLE)
def test_cheats__first_round__shows_nothing_in_the_submission(desk: Desk, kind: str) -> None:
    assert faults_of(desk, desk.work(kind, MINER)[0]) == ()


def test_wrong_data__is_visible(desk: Desk) -> None:
    assert faults_of(desk, desk.work("wrong-data", MINER)[0]) == (Fault.WRONG_DATA,)


def test_wrong_spec__is_visible(desk: Desk) -> None:
    assert faults_of(desk, desk.work("wrong-spec", MINER)[0]) == (Fault.WRONG_SPEC,)


def test_local_out_of_line__once_accepted__carries_what_did_not_come_out_then_what_was_refused(
    desk: Desk,
) -> None:
    cheat, bench = LocalOutOfLine(), desk.bench(MINER)
    fresh = desk.start(MINER)
    (first,) = cheat.work(bench, fresh)
    assert first.submission.local_from_round == 0
    accepted = replace(
        fresh,
        round=Round(2),
        local=read_local(first.blobs["local"], first.submission, desk.spec),
        local_from=Round(1),
        local_root=first.submission.local_out,
    )
    (second,) = cheat.work(bench, accepted)
    assert second.submission.local_from_round == 1
    assert second.submission.local_in != first.submission.local_out
    (third,) = cheat.work(bench, replace(accepted, round=Round(3)))
    assert third.submission.local_from_round == 2
    assert third.submission.local_in == second.submission.local_out
    for work in (first, second, third):
        read_trace(work.blobs["trace"], work.submission, desk.spec)
        read_local(work.blobs["local"], work.submission, desk.spec)


def test_stale__is_visibly_out_of_sync(desk: Desk) -> None:
    assert faults_of(desk, desk.work("stale", MINER)[0]) == (Fault.WRONG_ROOT,)


def test_copier__with_something_to_copy__signs_the_same_payload(desk: Desk, honest: Work) -> None:
    stolen = payload_of(desk, honest)
    (copy,) = desk.work("copier", key_named("copier").address, others=(stolen,))
    assert copy.submission.payload_root == honest.submission.payload_root
    assert copy.submission.miner != honest.submission.miner


def test_zero__changes_nothing(desk: Desk) -> None:
    payload = payload_of(desk, desk.work("zero", MINER)[0])
    assert all(not tensor.any() for tensor in payload.dense().values())


def test_noise__another_beacon__is_other_noise(desk: Desk) -> None:
    one, other = (
        desk.work("noise", MINER, beacon=some_hash(label))[0] for label in ("one", "other")
    )
    assert one.submission.payload_root != other.submission.payload_root


def test_lazy__signs_the_right_samples_and_trains_on_fewer(desk: Desk, honest: Work) -> None:
    (lazy,) = desk.work("lazy", MINER)
    assert lazy.submission.data_root == honest.submission.data_root
    assert lazy.submission.payload_root != honest.submission.payload_root
    assert lazy.submission.trace_root != honest.submission.trace_root


def test_stale__keeps_to_a_state_that_was_never_the_runs(desk: Desk) -> None:
    stale, bench = Stale(), desk.bench(MINER)
    first = desk.start(MINER)
    later = replace(first, round=Round(2), initial_root=some_hash("another root"))
    roots = set()
    for start in (first, later):
        (work,) = stale.work(bench, start)
        assert work.submission.initial_root != start.initial_root
        assert work.submission.round == start.round
        roots.add(work.submission.initial_root)
    assert len(roots) == 1


def test_equivocator__asked_by_different_peers__shows_each_one_version() -> None:
    cheat = Equivocator()
    provider = cheat.providers()["submissions"]
    names = [f"peer {number}" for number in range(4)]
    assert provider("submissions/1", Requester(host="", name="early")) == []
    cheat.published("submissions/1", [b"one", b"two"])
    shown = {n: provider("submissions/1", Requester(host="", name=n)) for n in names}
    assert sorted(shown.values(), key=str) == [[b"one"], [b"one"], [b"two"], [b"two"]]
    again = {n: provider("submissions/1", Requester(host="", name=n)) for n in names}
    assert again == shown, "it is consistent with each"


def test_equivocator__versions__differ_in_the_payload_alone(desk: Desk) -> None:
    first, second = (work.submission for work in desk.work("equivocator", MINER))
    same = replace(second, payload_root=first.payload_root, trace_root=first.trace_root)
    assert same == replace(first, payload_bytes=second.payload_bytes)
    assert first.payload_root != second.payload_root


@pytest.mark.parametrize("factor", FACTORS)
def test_scaled__is_the_honest_update_times_the_factor(
    desk: Desk, honest: Work, factor: int
) -> None:
    loud = payload_of(desk, desk.work(f"scaled{factor}", MINER)[0]).dense()
    for name, tensor in payload_of(desk, honest).dense().items():
        # To the nearest scale that the codec knows: six bits of mantissa.
        np.testing.assert_allclose(loud[name], tensor * np.float32(factor), rtol=1 / 128)


def test_scaled__any_factor__counts_as_an_update_of_median_norm(desk: Desk) -> None:
    """All that a loud twin gains is to be raised to the field's median, where its honest twin lies below it."""
    field = [key_named(f"honest {number}").address for number in range(4)]
    payloads: dict[Address, Payload] = {
        miner: payload_of(desk, desk.work("honest", miner)[0]) for miner in field
    }
    twin = payload_of(desk, desk.work("honest", MINER)[0])
    params = initial_parameters(desk.spec.model)
    random = list(range(200, 328))
    examiner = Examiner(desk.spec, desk.dataset)
    gains = []
    for payload in [
        twin,
        *(payload_of(desk, desk.work(f"scaled{factor}", MINER)[0]) for factor in FACTORS),
    ]:
        everybody = {**payloads, MINER: payload}
        exam = Exam(
            round=Round(1),
            params=params,
            payloads=everybody,
            selected=list(everybody),
            peers=[MINER],
            random=random,
            own={MINER: sorted(set(desk.assigned(MINER)))},
        )
        (evaluation,) = examiner.examine(exam)
        gains.append(evaluation.rand_score)
    honest_gain, *loud_gains = gains
    assert honest_gain > 0
    assert max(loud_gains) - min(loud_gains) < 1e-2 * honest_gain, (
        "rounding apart, the factor plays no part"
    )
    assert max(loud_gains) < 1.25 * honest_gain, (
        "no more than the way from its own norm to the median"
    )


def test_without_training__carries_a_fresh_local_state(desk: Desk) -> None:
    for kind in ("copier", "noise", "zero"):
        (work,) = desk.work(kind, MINER)
        assert work.submission.local_out == zero_local_root(desk.spec.model)
        read = read_local(work.blobs["local"], work.submission, desk.spec)
        assert read.step == LocalState.zeros(desk.spec.model).step


def test_behaviour_named__known_names__are_those_kinds() -> None:
    assert type(behaviour_named("honest")) is Behaviour
    for kind in CHEATS:
        assert behaviour_named(kind).name == kind
    assert behaviour_named("late").commits_late
    assert not behaviour_named("honest").commits_late


def test_behaviour_named__unknown__tells_the_operator_which_there_are() -> None:
    with pytest.raises(OperatorError, match="choose one of honest, copier"):
        behaviour_named("saint")
