"""What compression costs in loss: held-out losses of several outer rules at equal tokens, mean and spread over seeds.

All settings train the same model on the same samples in the same steps, with the same inner optimiser, learning rate and schedule.
The default is the model of a devnet; the learning rate was tuned for synchronous AdamW and serves all; alpha for SparseLoCo.
"""

from __future__ import annotations

import argparse
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev

from protocol.schedule import CONSTANT, ScheduleSpec
from protocol.spec import CodecSpec, ComputeSpec
from scripts.bench.figures import Figure, table, write_json
from scripts.bench.outer import Trial
from scripts.bench.trial import Curve, Laboratory
from syntience import corpus
from syntience.devnet.presets import DEFAULT_MODEL, preset_named
from syntience.documents import Documents, ListedDocuments, open_documents
from training.dataset import TokenDataset
from training.errors import DatasetError
from training.parameters import parameter_count
from training.prepare import prepare_dataset
from training.threads import pin_threads

MODEL, INNER = DEFAULT_MODEL, preset_named("default").inner
CODEC = CodecSpec(version=2, chunk=4096, k=64, bits=2, feedback="0.95", transform="none")
COMPUTE = ComputeSpec(
    mode="native", dtype="float32", threads=1, micro_batch=INNER.batch, tolerance="0.05"
)
WORKERS, STEPS, H = 4, 2400, 3
LEARNING_RATE, FINAL, WARMUP = "0.006", "0.05", 50
ALPHA, ALPHA_WARMUP = "2.5", 0.1
"""Of the mean that a run's aggregate applies. Most coordinates come from one worker in four, hence more than 1; at first, while all
send the same ones, that would overshoot, hence the warm-up (a share of the rounds)."""
OUTER_RATE, MOMENTUM = "0.7", "0.9"
"""Those of the DiLoCo paper (arXiv 2311.08105)."""
SEEDS = (0, 1, 2)
POINT_STEPS = 120
SETTINGS = ("sparse", "dense", "nesterov", "adamw", "no-feedback")
"""DiLoCo with the plain mean and with Nesterov momentum: the better of the two is SparseLoCo's opponent."""
Losses = Mapping[str, Sequence[float]]


def main() -> None:
    """Trains what is missing, prints, and ends with status 1 if a goal is missed."""
    options = _options()
    pin_threads(1)
    dataset = _dataset(options.data, options.out)
    print(
        f"{parameter_count(MODEL):,} parameters, {WORKERS} workers; {dataset.train_samples:,} training and"
        f" {dataset.total_samples - dataset.train_samples:,} held-out samples of {MODEL.context} tokens"
    )
    trials = {
        setting: [_trial(setting, seed, options, dataset) for seed in options.seeds]
        for setting in options.settings
    }
    found = _run(trials, Laboratory(dataset, options.out, every=POINT_STEPS))
    losses = {setting: [curve[-1].loss for curve in each] for setting, each in found.items()}
    _print_losses(losses)
    figures = list(_figures(losses))
    print(table(figures))
    if options.json:
        write_json(options.json, figures)
    if options.svg:
        from scripts.bench import curves

        tokens = next(iter(trials.values()))[0].tokens_per_step
        curves.draw(options.svg, found, tokens_per_step=tokens, base="adamw")
    raise SystemExit(0 if all(figure.holds for figure in figures) else 1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a text, or a folder of texts, to train on")
    parser.add_argument("--settings", type=_settings, default=SETTINGS, help=", ".join(SETTINGS))
    parser.add_argument("--seeds", type=_seeds, default=SEEDS, help="numbers, with commas between")
    parser.add_argument("--rounds", type=int, help=f"by default as many as {STEPS} steps take")
    parser.add_argument("--inner-steps", type=int, default=H, help="inner steps of a round")
    parser.add_argument("--learning-rate", default=LEARNING_RATE, help="at its height, for all")
    parser.add_argument("--alpha", default=ALPHA, help="of sparse and no-feedback")
    parser.add_argument("--feedback", default=CODEC.feedback, help="of sparse")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--svg", type=Path, help="where to draw the curves; needs adamw")
    parser.add_argument(
        "--out",
        type=Path,
        default=corpus.default_cache_dir(os.environ) / "bench",
        help="where curves and checkpoints are kept",
    )
    options = parser.parse_args()
    if options.svg and "adamw" not in options.settings:
        parser.error("--svg compares with adamw: add it to --settings")
    options.rounds = options.rounds or STEPS // options.inner_steps
    if options.rounds * options.inner_steps % INNER.steps:
        parser.error(f"adamw takes {INNER.steps} steps at a time: choose a multiple of that")
    return options


def _settings(text: str) -> tuple[str, ...]:
    chosen = tuple(text.split(","))
    if unknown := set(chosen) - set(SETTINGS):
        raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: no such setting")
    return chosen


def _seeds(text: str) -> tuple[int, ...]:
    return tuple(int(seed) for seed in text.split(","))


def _dataset(text: Path | None, out: Path) -> TokenDataset:
    """The prepared text, from the folder if it was prepared before."""
    cache = corpus.default_cache_dir(os.environ)
    documents: Documents = (
        ListedDocuments(corpus.NAME, corpus.fetch_default_corpus(cache))
        if text is None
        else open_documents(text, cache_dir=cache)
    )
    digest = hashlib.sha256()
    for document in documents:
        digest.update(hashlib.sha256(document.encode()).digest())
    folder = out / f"data-{digest.hexdigest()[:12]}"
    if not folder.is_dir():
        prepare_dataset(
            documents, folder, vocab_size=MODEL.vocab_size, context=MODEL.context, name="bench"
        )
    dataset = TokenDataset.open(folder)
    if dataset.train_samples < (least := WORKERS * INNER.batch):
        raise DatasetError(
            f"the text gives {dataset.train_samples} training samples, one step takes {least}",
            "use more text",
        )
    return dataset


def _trial(setting: str, seed: int, options: argparse.Namespace, dataset: TokenDataset) -> Trial:
    steps = options.rounds * options.inner_steps
    schedule = ScheduleSpec(
        warmup=WARMUP, decay_from=WARMUP, decay_to=steps, shape="cosine", final=FINAL
    )
    trial = Trial(
        setting=setting,
        rule="dense",
        seed=seed,
        rounds=options.rounds,
        workers=WORKERS,
        model=MODEL,
        inner=replace(
            INNER,
            steps=options.inner_steps,
            learning_rate=options.learning_rate,
            schedule=schedule,
        ),
        codec=CODEC,
        compute=COMPUTE,
        alpha="1",
        alpha_schedule=CONSTANT,
        momentum="0",
        data=dataset.root,
    )
    feedback = {"sparse": options.feedback, "no-feedback": "0"}
    if setting in feedback:
        codec = replace(CODEC, feedback=feedback[setting])
        rise = ScheduleSpec(warmup=int(ALPHA_WARMUP * options.rounds))
        return replace(
            trial, rule="payloads", codec=codec, alpha=options.alpha, alpha_schedule=rise
        )
    if setting == "nesterov":
        return replace(trial, alpha=OUTER_RATE, momentum=MOMENTUM)
    if setting == "adamw":
        # It knows no rounds: one as long as a preset's, so that trials with another H need it only once.
        inner = replace(trial.inner, steps=INNER.steps)
        return replace(trial, rule="synchronous", inner=inner, rounds=steps // inner.steps)
    return trial


def _run(trials: Mapping[str, Sequence[Trial]], laboratory: Laboratory) -> dict[str, list[Curve]]:
    """The curves by setting; seed by seed, so that all settings of one can be compared early."""
    found: dict[str, list[Curve]] = {setting: [] for setting in trials}
    for same_seed in zip(*trials.values(), strict=True):
        for trial in same_seed:
            curve = laboratory.curve(trial)
            found[trial.setting].append(curve)
            print(f"{trial.setting}, seed {trial.seed}: {curve[-1].loss:.4f}", flush=True)
    return found


def _print_losses(losses: Losses) -> None:
    print("\nheld-out loss, nats per token: mean, deviation over seeds, each")
    for setting, found in losses.items():
        spread = f"± {stdev(found):.4f}" if len(found) > 1 else ""
        each = " ".join(f"{loss:.4f}" for loss in found)
        print(f"{setting:<12} {mean(found):.4f} {spread:<9} {each}")
    print()


def _figures(losses: Losses) -> Iterator[Figure]:
    """How far one setting's mean lies above another's, in percent, where both were asked for."""
    means = {setting: mean(found) for setting, found in losses.items()}
    diloco = [means[setting] for setting in ("dense", "nesterov") if setting in means]
    for name, above, below, goal, at_least in (
        ("SparseLoCo above DiLoCo", means.get("sparse"), min(diloco, default=None), 1.5, False),
        ("SparseLoCo above AdamW", means.get("sparse"), means.get("adamw"), 2.0, False),
        ("no feedback above SparseLoCo", means.get("no-feedback"), means.get("sparse"), 1.0, True),
    ):
        if above is not None and below is not None:
            value = 100 * (above / below - 1)
            yield Figure(name=name, value=value, goal=goal, unit="%", at_least=at_least)


if __name__ == "__main__":
    main()
