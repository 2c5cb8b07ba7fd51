"""`syntience data`: text for training, and leaves of what miners made of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from syntience.cli.options import (
    layers_of,
    takes_account_options,
)
from syntience.cli.owner import say, with_owner

if TYPE_CHECKING:
    from syntience.data_request import Outcome
    from syntience.staking import Owner

app = typer.Typer(
    help="Get text, make data sets of it, ask on chain for what is withheld.", no_args_is_help=True
)
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


@app.command("request")
@takes_account_options
def request(
    context: typer.Context,
    round_: Annotated[int, typer.Option("--round", metavar="N", min=1, help="The round.")],
    miner: Annotated[
        str, typer.Option("--miner", metavar="MINER", help="The miner's account, or its slot.")
    ],
    kind: Annotated[
        str,
        typer.Option(
            "--kind", metavar="KIND", help="submission, data, trace, payload or local (state)."
        ),
    ],
    index: Annotated[int, typer.Option("--index", min=0, help="Which leaf.")] = 0,
    tensor: Annotated[
        str | None,
        typer.Option("--tensor", metavar="NAME", help="Of a local state: which tensor's leaf."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where to write what is shown.")
    ] = None,
) -> None:
    """Ask on chain for a leaf of a submission that nobody serves, and wait for it.

    The key pays a bond. An answer costs a fee out of it; if nobody answers, every validator that vouched for the submission
    is fined, and the key gets a share.
    """
    from ledger.contracts.requests import ItemKind
    from protocol.ids import Round
    from syntience.amounts import exact_tokens
    from syntience.config import account_settings
    from syntience.data_request import Want, ask, save_answer
    from syntience.errors import ConfigError

    names = {each.name.lower(): each for each in ItemKind}
    if kind not in names:
        raise ConfigError(f"there is no kind {kind!r}", f"choose one of {', '.join(names)}")
    want = Want(round=Round(round_), miner=miner, kind=names[kind], index=index, tensor=tensor)
    layers = layers_of(context)
    events = account_settings(layers).state_dir

    async def act(owner: Owner) -> Outcome:
        return await ask(owner, want, events=events, say=say)

    outcome = with_owner(layers, act)
    if outcome.answer is not None:
        path = out or Path(f"{kind}-{round_}-{outcome.item.miner}-{outcome.item.index}.json")
        save_answer(outcome.answer, path)
        say("shown", f"in block {outcome.answer.block}; written to {path}")
        say("fee", f"{exact_tokens(outcome.answer.fee)} tokens")
    elif outcome.fined:
        slots = ", ".join(str(slot) for slot in outcome.fined)
        say("withheld", f"{exact_tokens(outcome.fine)} tokens taken of validator slots {slots}")
    else:
        say("withheld", "fined before, for another leaf of this kind")
