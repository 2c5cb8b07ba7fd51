"""`syntience data source` and `check-source`: which documents a sample comes from, shown and proven."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from training.sources import Passage


def show_source(
    dataset: Annotated[Path, typer.Argument(metavar="DATASET", help="A prepared data set.")],
    index: Annotated[int, typer.Argument(metavar="INDEX", help="The sample's number.")],
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the proof that `check-source` takes, one line of JSON."),
    ] = False,
) -> None:
    """Show the documents that a sample comes from: their digests, and which of their tokens it holds."""
    from syntience.provenance import require_sample
    from training.dataset import TokenDataset
    from training.sources import passages, prove_source

    opened = TokenDataset.open(dataset)
    require_sample(opened, index)
    if as_json:
        typer.echo(prove_source(opened, index).to_bytes())
        return
    typer.echo(f"sample {index} of {opened.spec.name}, {opened.spec.sample_tokens} tokens:")
    for part in passages(opened, index):
        typer.echo(_line(part))


def check_source_command(
    proof: Annotated[Path, typer.Argument(metavar="PROOF", help="From `data source --json`.")],
    documents: Annotated[
        list[Path],
        typer.Option(
            "--document", metavar="FILE", help="The text of one document, as UTF-8; once for each."
        ),
    ],
    tokenizer: Annotated[
        Path, typer.Option("--tokenizer", metavar="FILE", help="The data set's tokenizer.json.")
    ],
    run: Annotated[
        Path | None,
        typer.Option("--run", metavar="FILE", help="The run file or spec whose roots count."),
    ] = None,
    manifest: Annotated[
        Path | None,
        typer.Option("--manifest", metavar="FILE", help="Or the manifest whose roots count."),
    ] = None,
) -> None:
    """Prove with a document in hand, and no data set, that a sample comes from it: roots, digest, and every token."""
    from syntience.provenance import check_source, read_proof, trusted_spec

    spec = trusted_spec(run=run, manifest=manifest)
    shown = check_source(read_proof(proof), spec, documents=documents, tokenizer=tokenizer)
    typer.echo(f"sample {shown.index} of {spec.name}, {shown.tokens} tokens:")
    for part in shown.parts:
        state = "proven" if part in shown.proven else "its document was not given"
        typer.echo(f"{_line(part)}  {state}")
    if shown.is_whole:
        typer.echo("the whole sample comes from the given documents")
    else:
        held = sum(part.end - part.start for part in shown.proven)
        typer.echo(f"{held} of its tokens are proven to come from the given documents")


def _line(part: Passage) -> str:
    return (
        f"  tokens {part.start}-{part.end - 1}: document {part.document} from its token {part.offset} on, "
        f"sha256 {part.digest.hex()}"
    )
