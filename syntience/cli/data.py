"""`syntience data`: text for training."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Get text, and make data sets of it.", no_args_is_help=True)
CacheOption = Annotated[
    Path | None,
    typer.Option(
        "--cache", metavar="DIR", help="Where downloads are kept; ~/.cache/syntience by default."
    ),
]


@app.command("fetch")
def fetch(cache: CacheOption = None) -> None:
    """Download the default text (Shakespeare's works, public domain), so that it is there offline."""
    from syntience import corpus

    folder = cache or corpus.default_cache_dir(os.environ)
    works = corpus.fetch_default_corpus(folder)
    typer.echo(
        f"{len(works)} works, {sum(map(len, works)):,} characters, in {folder / corpus.ARCHIVE.file_name}"
    )


@app.command("prepare")
def prepare(
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="The folder to make; it must not exist.")
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="PATH",
            help="Your text: a file or folder of txt, md, jsonl or parquet.",
        ),
    ] = None,
    vocab: Annotated[int, typer.Option("--vocab", min=257, help="Size of the vocabulary.")] = 1024,
    context: Annotated[
        int, typer.Option("--context", min=1, help="Tokens of context in a sample.")
    ] = 128,
    heldout: Annotated[
        float,
        typer.Option(
            "--heldout", min=0.0, max=0.5, help="Share of the samples kept for evaluation."
        ),
    ] = 0.05,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Fixes the order of the samples.")] = 0,
    cache: CacheOption = None,
) -> None:
    """Make a data set: train a tokenizer, cut samples, compute the Merkle root that a run registers."""
    from syntience import corpus, documents
    from training.prepare import prepare_dataset

    if data is None:
        name, texts = (
            corpus.NAME,
            corpus.fetch_default_corpus(cache or corpus.default_cache_dir(os.environ)),
        )
    else:
        name, texts = data.stem, documents.load_documents(data)
    spec = prepare_dataset(
        texts,
        out,
        vocab_size=vocab,
        context=context,
        heldout_fraction=heldout,
        seed=seed,
        name=name,
    )
    typer.echo(f"folder        {out}")
    typer.echo(
        f"samples       {spec.train_samples:,} to train on, {spec.total_samples - spec.train_samples:,} held out"
    )
    typer.echo(f"tokens        {spec.total_samples * spec.sample_tokens:,}")
    typer.echo(f"dataset root  0x{spec.dataset_root.hex()}")
    typer.echo(f"tokenizer     0x{spec.tokenizer_digest.hex()}")
