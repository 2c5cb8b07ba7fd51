"""The primary evaluation of a round: losses before and after each sampled peer's update.

What is scored is the update exactly as the aggregate would apply it alone: scaled per tensor by the
median norm of the selected, then by the run's outer rule. Arithmetic only; whom to evaluate, and on what, was drawn before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from protocol.ids import Address, Round
from protocol.spec import RunSpec
from scoring.evaluation import Evaluation
from training.aggregate import median_norms, scale_of
from training.codec import Payload
from training.dataset import TokenDataset
from training.evaluate import Evaluator
from training.outer import OuterStep
from training.parameters import Parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Exam:
    """One validator's exam of one round.

    Attributes:
        round: its number.
        params: the model at the start of the round.
        payloads: of every peer in `peers` and `selected`.
        selected: the peers whose updates entered the aggregate.
        peers: whom to evaluate.
        random: data set indices of D_rand, the same for every peer.
        own: data set indices of each peer's own evaluated batch.
    """

    round: Round
    params: Parameters
    payloads: Mapping[Address, Payload]
    selected: Sequence[Address]
    peers: Sequence[Address]
    random: Sequence[int]
    own: Mapping[Address, Sequence[int]]


class Examiner:
    """Holds the buffers of one evaluation model; not thread-safe."""

    def __init__(self, spec: RunSpec, dataset: TokenDataset) -> None:
        self._evaluator = Evaluator(spec.model)
        self._dataset = dataset
        self._beta_fraction, self._outer = float(spec.scoring.beta_fraction), spec.outer

    def examine(self, exam: Exam) -> tuple[Evaluation, ...]:
        """Evaluates every peer, in the order given.

        The model is loaded once and measured once on D_rand and on each peer's own batch; then each peer's step is taken and undone
        in place.
        """
        step = OuterStep.of(self._outer, exam.round, fraction=self._beta_fraction)
        medians = median_norms([exam.payloads[miner] for miner in exam.selected])
        evaluator, samples = self._evaluator, self._dataset.samples
        evaluator.load(exam.params)
        random = samples(exam.random)
        random_before = evaluator.measure(random)
        own_before = {miner: evaluator.measure(samples(exam.own[miner])) for miner in exam.peers}
        found = []
        for miner in exam.peers:
            payload = exam.payloads[miner]
            with evaluator.stepped(payload, scale_of(payload, medians), step):
                evaluation = Evaluation(
                    miner=miner,
                    rand_before=random_before,
                    rand_after=evaluator.measure(random),
                    own_before=own_before[miner],
                    own_after=evaluator.measure(samples(exam.own[miner])),
                )
            found.append(evaluation)
        return tuple(found)

    def heldout_loss(self, params: Parameters) -> float:
        """Loss of a model on the held-out split, in nats per token."""
        return self._evaluator.heldout_loss(params, self._dataset)
