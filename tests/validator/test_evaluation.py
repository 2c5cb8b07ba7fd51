"""The exam of a round, against the plain definition of what it measures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from node.contents import read_payload
from protocol.ids import Address, Round
from tests.bench import Desk, desk_over
from tests.subnet.stepped import key_named
from training.aggregate import median_norms, scale_of
from training.codec import Payload, scaled
from training.dataset import TokenDataset
from training.evaluate import Evaluator
from training.parameters import Parameters, initial_parameters
from validator.evaluation import Exam, Examiner

MINERS = [key_named(f"honest {number}").address for number in range(3)]


@pytest.fixture(scope="module")
def desk(text: TokenDataset) -> Desk:
    return desk_over(text)


@pytest.fixture(scope="module")
def signing(desk: Desk) -> Desk:
    """The same under the other outer rule, with updates of cosine coefficients."""
    outer = replace(desk.spec.outer, rule="demo", alpha="0.02")
    codec = replace(desk.spec.codec, transform="dct", feedback="0.999")
    return replace(desk, spec=replace(desk.spec, outer=outer, codec=codec))


def payloads_of(desk: Desk) -> dict[Address, Payload]:
    found = {}
    for miner, kind in zip(MINERS, ("honest", "honest", "scaled5"), strict=True):
        (work,) = desk.work(kind, miner)
        found[miner] = read_payload(work.blobs["payload"], work.submission, desk.spec)
    return found


@pytest.fixture(scope="module")
def payloads(desk: Desk) -> dict[Address, Payload]:
    return payloads_of(desk)


def exam_of(desk: Desk, payloads: dict[Address, Payload], peers: list[Address]) -> Exam:
    return Exam(
        round=Round(1),
        params=initial_parameters(desk.spec.model),
        payloads=payloads,
        selected=MINERS[:2],
        peers=peers,
        random=list(range(300, 340)),
        own={miner: sorted(set(desk.assigned(miner))) for miner in peers},
    )


def loss_after(desk: Desk, exam: Exam, miner: Address, samples: list[int]) -> float:
    """theta - c alpha scale update, or theta - c alpha sign(update), tensor by tensor."""
    medians = median_norms([exam.payloads[each] for each in exam.selected])
    scales = scale_of(exam.payloads[miner], medians)
    step = float(desk.spec.scoring.beta_fraction) * float(desk.spec.outer.alpha)
    moved: Parameters = {}
    for name, update in exam.payloads[miner].dense().items():
        signs = desk.spec.outer.rule == "demo"
        direction = np.sign(update) if signs else scales[name] * update
        moved[name] = exam.params[name] - np.float32(step) * direction
    return Evaluator(desk.spec.model).loss(moved, desk.dataset.samples(samples))


def test_examine__every_peer__measures_what_the_aggregate_would_apply(
    desk: Desk, payloads: dict[Address, Payload]
) -> None:
    exam = exam_of(desk, payloads, MINERS)
    found = Examiner(desk.spec, desk.dataset).examine(exam)
    assert [each.miner for each in found] == MINERS
    evaluator = Evaluator(desk.spec.model)
    for each in found:
        own = list(exam.own[each.miner])
        assert each.rand_before == found[0].rand_before, "one draw for all"
        assert each.own_before == evaluator.loss(exam.params, desk.dataset.samples(own))
        assert each.rand_after == pytest.approx(
            loss_after(desk, exam, each.miner, list(exam.random)), abs=1e-5
        )
        assert each.own_after == pytest.approx(loss_after(desk, exam, each.miner, own), abs=1e-5)
        assert each.own_score > 0


def test_examine__by_signs__measures_the_sign_of_each_peer_alone(signing: Desk) -> None:
    exam = exam_of(signing, payloads_of(signing), MINERS)
    found = {each.miner: each for each in Examiner(signing.spec, signing.dataset).examine(exam)}
    for miner, each in found.items():
        expected = loss_after(signing, exam, miner, list(exam.random))
        assert each.rand_after == pytest.approx(expected, abs=1e-5)
        assert each.own_score > 0
    # Loudness is no part of a sign.
    honest, loud = MINERS[0], MINERS[2]
    swapped = replace(exam, payloads={**exam.payloads, loud: scaled(exam.payloads[honest], 5)})
    again = Examiner(signing.spec, signing.dataset).examine(replace(swapped, peers=[loud]))
    assert again[0].rand_after == found[honest].rand_after


def test_examine__order_and_company__play_no_part(
    desk: Desk, payloads: dict[Address, Payload]
) -> None:
    examiner = Examiner(desk.spec, desk.dataset)
    together = {each.miner: each for each in examiner.examine(exam_of(desk, payloads, MINERS))}
    alone = examiner.examine(exam_of(desk, payloads, [MINERS[1]]))
    assert alone == (together[MINERS[1]],)


def test_heldout_loss__untrained_model__is_about_the_logarithm_of_the_vocabulary(
    desk: Desk,
) -> None:
    loss = Examiner(desk.spec, desk.dataset).heldout_loss(initial_parameters(desk.spec.model))
    assert loss == pytest.approx(np.log(desk.spec.model.vocab_size), abs=0.05)
