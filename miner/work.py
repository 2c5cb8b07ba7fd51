"""One round of a miner's work, from the state of the model to a submission that can be signed.

Pure but for the arithmetic: no chain, no network, no clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from miner.prefetch import Prefetch
from protocol.hashing import sha256
from protocol.ids import Address, Hash32, Round
from protocol.merkle import leaf_hash, merkle_root
from protocol.spec import RunSpec
from protocol.submission import BlobRef, Submission
from training.arithmetic import Arithmetic
from training.codec import Payload
from training.dataset import TokenDataset
from training.figures import RoundFigures
from training.inner import InnerLoop, InnerState, Loops, RoundStart, train_round
from training.local_state import LocalState
from training.parameters import Parameters
from training.savepoint import Savepoints


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where a round begins for one miner.

    Attributes:
        params: the agreed model, with state root `initial_root`.
        local: what the miner carries over, the output of round `local_from` (0: fresh).
        assigned: data set indices of the round's samples, in training order.
        others: what other miners were accepted with in the round before, by slot.
    """

    round: Round
    beacon: Hash32
    params: Parameters
    initial_root: Hash32
    local: LocalState
    local_from: Round
    local_root: Hash32
    assigned: tuple[int, ...]
    others: tuple[Payload, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """What came out of the inner loop, before it is dressed as a submission; `figures` if there was one."""

    payload: Payload
    local_out: LocalState
    local_out_root: Hash32
    trace: tuple[bytes, ...]
    mean_loss: float
    figures: RoundFigures | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A finished round: what to sign and what to serve. `mean_loss` in nats per token."""

    submission: Submission
    blobs: Mapping[str, bytes]
    mean_loss: float
    figures: RoundFigures | None = None

    def refs(self) -> dict[str, BlobRef]:
        """Locators of the blobs."""
        return {
            kind: BlobRef(digest=Hash32(sha256(data)), size=len(data))
            for kind, data in self.blobs.items()
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Workbench:
    """What stays the same from round to round.

    Attributes:
        prefetch: over `dataset`.
        savepoints: where a round's progress is kept; None nowhere.
        checkpoint_activations: less memory for more time, same bits.
        loops: what trains a round.
    """

    run: Hash32
    spec: RunSpec
    spec_hash: Hash32
    miner: Address
    dataset: TokenDataset
    prefetch: Prefetch
    savepoints: Savepoints | None = None
    checkpoint_activations: bool = False
    loops: Loops = InnerLoop

    def train(self, start: Start, samples: Sequence[int]) -> Trained:
        """Runs the inner loop on these data set indices."""
        inner = self.spec.inner
        tokens = self.prefetch.samples(samples).reshape(inner.steps, inner.batch, -1)
        done = train_round(
            RoundStart(
                round=start.round,
                state=InnerState(params=start.params, local=start.local),
                root=start.initial_root,
                samples=tokens,
            ),
            Arithmetic.of(self.spec),
            savepoints=self.savepoints,
            checkpoint_activations=self.checkpoint_activations,
            loops=self.loops,
        )
        return Trained(
            payload=done.payload,
            local_out=done.local_out,
            local_out_root=done.local_out_root,
            trace=done.trace_leaves,
            mean_loss=done.mean_loss,
            figures=done.figures,
        )

    def submit(self, start: Start, trained: Trained, signed_samples: Sequence[int]) -> Work:
        """Dresses the work as a submission that claims these samples."""
        payload_bytes = trained.payload.to_bytes()
        data_leaves = [self.dataset.leaf_hash(index) for index in signed_samples]
        submission = Submission(
            run=self.run,
            spec_hash=self.spec_hash,
            round=start.round,
            beacon=start.beacon,
            miner=self.miner,
            initial_root=start.initial_root,
            local_from_round=start.local_from,
            local_in=start.local_root,
            local_out=trained.local_out_root,
            data_root=merkle_root(data_leaves),
            payload_root=trained.payload.root(),
            payload_bytes=len(payload_bytes),
            trace_root=merkle_root([leaf_hash(leaf) for leaf in trained.trace]),
            steps=self.spec.inner.steps,
        )
        blobs = {
            "data": b"".join(data_leaves),
            "local": trained.local_out.to_blob(),
            "payload": payload_bytes,
            "trace": b"".join(trained.trace),
        }
        return Work(
            submission=submission,
            blobs=blobs,
            mean_loss=trained.mean_loss,
            figures=trained.figures,
        )
