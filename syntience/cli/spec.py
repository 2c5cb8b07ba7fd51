"""`syntience spec`: the spec of a new run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def make_spec(
    template: Annotated[
        Path,
        typer.Option("--like", metavar="FILE", help="A spec or run file to start from."),
    ],
    data: Annotated[
        Path,
        typer.Option(
            "--data", metavar="DIR", help="The prepared data set, from `syntience data prepare`."
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="The spec to write; it must not exist.")
    ],
    start: Annotated[
        Path | None,
        typer.Option(
            "--start",
            metavar="DIR",
            help="The model to start from, as transformers or `syntience model import` writes it; "
            "by default its weights come from a seed.",
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="PART.FIELD=VALUE", help="Another value, such as chain.train_s=60."
        ),
    ] = None,
) -> None:
    """Write the spec of a new run: like another one, for another data set, with other numbers."""
    from protocol.errors import OperatorError
    from syntience.cli.owner import say
    from syntience.deployment import load_spec
    from syntience.files import require_writable, write_atomically
    from syntience.spec_file import derive_spec

    if out.exists():
        raise OperatorError(f"{out} exists", "choose another --out, or remove it")
    require_writable(out)
    spec = derive_spec(load_spec(template), data=data, changes=changes or [], start=start)
    write_atomically(out, spec.to_bytes() + b"\n")
    say("spec", str(out))
    say("spec hash", "0x" + spec.hash().hex())
    say("genesis root", "0x" + spec.chain.genesis_root.hex())
