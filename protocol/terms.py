"""What submissions are judged by from an epoch on, as the contracts know it.

The governor of a run may announce new terms, epochs ahead. Old rounds keep their old terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from protocol.ids import Address, Epoch, Hash32
from protocol.spec import ChainParams, RunSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The fields of the contracts' struct ``Terms``, in its order.

    Attributes:
        judge: the contract that decides games about a computation.
    """

    from_epoch: Epoch
    train_samples: int
    samples_per_round: int
    steps: int
    trace_every: int
    dataset_depth: int
    codec_chunk: int
    codec_bits: int
    spec_hash: Hash32
    judge: Address
    dataset_root: Hash32


def terms_of(spec: RunSpec, *, from_epoch: Epoch, judge: Address) -> Terms:
    """The terms under which a run goes by this spec."""
    chain = spec.chain
    return Terms(
        from_epoch=from_epoch,
        spec_hash=spec.hash(),
        judge=judge,
        dataset_root=chain.dataset_root,
        train_samples=chain.train_samples,
        dataset_depth=chain.dataset_depth,
        samples_per_round=chain.samples_per_round,
        steps=chain.steps,
        trace_every=chain.trace_every,
        codec_chunk=chain.codec_chunk,
        codec_bits=chain.codec_bits,
    )


def params_under(params: ChainParams, terms: Terms) -> ChainParams:
    """The parameters of a run under other terms: all but these fields stay what they were deployed with."""
    return replace(
        params,
        dataset_root=terms.dataset_root,
        train_samples=terms.train_samples,
        dataset_depth=terms.dataset_depth,
        samples_per_round=terms.samples_per_round,
        steps=terms.steps,
        trace_every=terms.trace_every,
        codec_chunk=terms.codec_chunk,
        codec_bits=terms.codec_bits,
    )


def terms_at(schedule: Sequence[Terms], epoch: Epoch) -> Terms | None:
    """The terms of an epoch; None before the first. `schedule` ascends by first epoch."""
    return next((terms for terms in reversed(schedule) if terms.from_epoch <= epoch), None)
