"""A tiny trial on text that every clone has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from protocol.model_spec import LlamaSpec
from protocol.schedule import CONSTANT, ScheduleSpec
from scripts.bench.outer import Trial
from tests.specs import MODEL, SPEC
from training.dataset import TokenDataset
from training.prepare import prepare_dataset

LICENCE = Path(__file__).parents[2] / "LICENSE"
LLAMA: LlamaSpec = replace(
    MODEL, vocab_size=320, hidden_size=16, intermediate_size=40, layers=1, context=16
)


def prepared(folder: Path) -> TokenDataset:
    """The licence as a data set."""
    prepare_dataset([LICENCE.read_text(encoding="utf-8")], folder, vocab_size=320, context=16)
    return TokenDataset.open(folder)


def trial(dataset: TokenDataset, **changes: object) -> Trial:
    """Three rounds of three workers, with a schedule of both rates."""
    plain = Trial(
        setting="tiny",
        rule="payloads",
        seed=1,
        rounds=3,
        workers=3,
        model=LLAMA,
        inner=replace(
            SPEC.inner,
            steps=2,
            batch=4,
            learning_rate="0.01",
            schedule=ScheduleSpec(warmup=2, decay_from=2, decay_to=6, final="0.1"),
        ),
        codec=replace(SPEC.codec, chunk=64, k=4, bits=2),
        compute=SPEC.compute,
        alpha="1",
        alpha_schedule=CONSTANT,
        momentum="0",
        data=dataset.root,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]  # fields of any type, by name
