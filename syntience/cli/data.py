"""`syntience data`: text for training, and leaves of what miners made of it."""

from __future__ import annotations

import os
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from syntience.cli.options import (
    layers_of,
    takes_account_options,
)
from syntience.cli.owner import say, with_owner
from syntience.cli.sources import check_source_command, show_source

if TYPE_CHECKING:
    from protocol.spec import DataSpec
    from syntience.data_request import Outcome
    from syntience.staking import Owner

app = typer.Typer(
    help="Get text, make data sets of it, ask on chain for what is withheld.", no_args_is_help=True
)
app.command("source")(show_source)
app.command("check-source")(check_source_command)
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
    typer.echo(f"sha256 {corpus.ARCHIVE.sha256}, as pinned")


@app.command("prepare")
def prepare(
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="The folder to make; it must not exist.")
    ],
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            metavar="PATH",
            help="Your text: a file or folder of txt, md, jsonl or parquet (txt, md and jsonl also as .gz or .zst), "
            "a folder of `save_to_disk`, or hf:NAME[:CONFIG]:SPLIT.",
        ),
    ] = None,
    field: Annotated[
        str, typer.Option("--field", metavar="NAME", help="The field or column with the text.")
    ] = "text",
    tokenizer: Annotated[
        Path | None,
        typer.Option(
            "--tokenizer", metavar="FILE", help="A tokenizer.json; otherwise one is trained."
        ),
    ] = None,
    end_token: Annotated[
        str | None,
        typer.Option(
            "--end-token", metavar="TOKEN", help="What ends a document in that tokenizer."
        ),
    ] = None,
    vocab: Annotated[
        int | None,
        typer.Option(
            "--vocab", min=257, help="Size of the vocabulary that is trained; 1024 by default."
        ),
    ] = None,
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
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, help="Processes that encode; all cores by default."),
    ] = None,
    cache: CacheOption = None,
) -> None:
    """Make a data set: cut text into samples, compute the Merkle roots that a run registers.

    A preparation that was interrupted goes on when the same command is given again.
    """
    from rich.console import Console

    from syntience import corpus
    from syntience.devnet.place import usable_cores
    from syntience.documents import Documents, ListedDocuments, open_documents
    from syntience.errors import ConfigError
    from syntience.progress import ProgressBar
    from training.prepare import Pace, prepare_dataset
    from training.vocabulary import GivenTokenizer

    if tokenizer is not None and vocab is not None:
        raise ConfigError("--vocab is for a tokenizer to train", "leave it out beside --tokenizer")
    if tokenizer is None and end_token is not None:
        raise ConfigError("--end-token is for a tokenizer that is given", "give --tokenizer FILE")
    folder = cache or corpus.default_cache_dir(os.environ)
    documents: Documents
    if data is None:
        documents = ListedDocuments(corpus.NAME, corpus.fetch_default_corpus(folder))
    else:
        documents = open_documents(data, field=field, cache_dir=folder)
    given = None if tokenizer is None else GivenTokenizer(path=tokenizer, end_token=end_token)
    with ProgressBar(Console(stderr=True), documents) as bar:
        spec = prepare_dataset(
            documents,
            out,
            vocab_size=(vocab or 1024) if given is None else None,
            tokenizer=given,
            context=context,
            heldout_fraction=heldout,
            seed=seed,
            name=documents.name,
            pace=Pace(workers=workers or usable_cores(), watch=bar.watch),
        )
    typer.echo(f"folder        {out}")
    _show(spec)


@app.command("verify")
def verify_dataset(
    dataset: Annotated[Path, typer.Argument(metavar="DATASET", help="A prepared data set.")],
    run: Annotated[
        Path | None,
        typer.Option("--run", metavar="FILE", help="A run file or spec whose data set it must be."),
    ] = None,
    root: Annotated[
        str | None,
        typer.Option("--root", metavar="HEX", help="The dataset root that it must have."),
    ] = None,
) -> None:
    """Hash a data set and compare it, to the byte, with its roots: a run's, or those in its manifest."""
    from rich.console import Console

    from protocol.errors import Rejected
    from protocol.ids import to_hash32
    from syntience.errors import ConfigError
    from syntience.progress import ProgressBar
    from syntience.provenance import trusted_spec
    from training.verification import verify, verify_spec

    try:
        expected = None if root is None else to_hash32(root.removeprefix("0x"))
    except Rejected as error:
        raise ConfigError(f"--root is no root ({error})", "give 32 bytes in hex") from error
    start = monotonic()
    with ProgressBar(Console(stderr=True)) as bar:
        spec = None if run is None else trusted_spec(run=run, manifest=None)
        found = (
            verify(dataset, expected, watch=bar.watch)
            if spec is None
            else verify_spec(dataset, spec, watch=bar.watch)
        )
    took_s = monotonic() - start
    size = found.total_samples * found.spec.sample_tokens * found.spec.token_bytes
    against = "its manifest" if run is None and root is None else f"{run or root}"
    typer.echo(f"intact        as {against} says")
    _show(found.spec)
    typer.echo(f"hashed        {size / 1e6:,.1f} MB of tokens in {took_s:.1f} s")


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


def _show(spec: DataSpec) -> None:
    typer.echo(
        f"samples       {spec.train_samples:,} to train on, {spec.total_samples - spec.train_samples:,} held out"
    )
    typer.echo(f"tokens        {spec.total_samples * spec.sample_tokens:,}")
    typer.echo(f"documents     {spec.documents:,}")
    typer.echo(f"dataset root  0x{spec.dataset_root.hex()}")
    typer.echo(f"tokenizer     0x{spec.tokenizer_digest.hex()}")
