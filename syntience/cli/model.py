"""`syntience model`: models from elsewhere, models of a run for elsewhere, and what they are worth."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from syntience.cli.options import ConfigOption, RpcUrlOption, RunOption, layers_of
from syntience.cli.owner import say

if TYPE_CHECKING:
    from protocol.ids import Hash32
    from training.model_folder import StoredModel

app = typer.Typer(
    help="Take in models to start from, export a run's for `transformers`, examine both.",
    no_args_is_help=True,
)
SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A folder as transformers writes it, a .bin of llama2.c, or a name on the Hugging Face Hub.",
    ),
]
TokenizerOption = Annotated[
    Path | None,
    typer.Option("--tokenizer", metavar="FILE", help="Of a .bin: llama2.c's tokenizer .bin."),
]
ContextOption = Annotated[
    int | None,
    typer.Option(
        "--context", metavar="TOKENS", min=1, help="See no more at once; all it can by default."
    ),
]
RootOption = Annotated[
    str | None,
    typer.Option("--root", metavar="HEX", help="The state root that the weights must have."),
]


@app.command("import")
def take_in(
    source: SourceArgument,
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="The folder to make; it must not exist.")
    ],
    tokenizer: TokenizerOption = None,
    context: ContextOption = None,
) -> None:
    """Turn a model into a folder that a run can start from: checked, in fp32, with its tokenizer."""
    from syntience.importing import load_model
    from training.model_folder import write_model

    stored = load_model(source, tokenizer=tokenizer, context=context)
    write_model(stored, out)
    say("folder", str(out))
    _describe(stored)


@app.command("export")
def export(
    click: typer.Context,
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="The folder to make; it must not exist.")
    ],
    state: Annotated[
        Path | None,
        typer.Option("--state", metavar="DIR", help="The state of a node of the run."),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            metavar="FILE",
            help="In place of --state: the run's tensors in safetensors; needs --round.",
        ),
    ] = None,
    round_: Annotated[
        int | None,
        typer.Option(
            "--round", metavar="N", min=1, help="The model at its start; the newest by default."
        ),
    ] = None,
    root: RootOption = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="DIR",
            help="The run's data set, for its tokenizer; the one in --state by default.",
        ),
    ] = None,
    run: RunOption = None,
    rpc_url: RpcUrlOption = None,
    config: ConfigOption = None,
) -> None:
    """Write a run's model as a folder that `transformers` loads, with a card that says where it comes from.

    The weights' state root is computed first, and compared with the chain's if --rpc-url is given.
    """
    from protocol.ids import Round
    from syntience.exporting import Export, export_model
    from syntience.signals import run_interruptible

    layers = layers_of(click)
    wanted = Export(
        out=out,
        run_file=layers.path("run"),
        state=layers.path("state") if layers.has("state") and checkpoint is None else state,
        checkpoint=checkpoint,
        round=None if round_ is None else Round(round_),
        root=_root(root),
        data=layers.path("data") if layers.has("data") else None,
        rpc_url=layers.secret("rpc_url"),
    )
    origin = run_interruptible(export_model(wanted))
    say("folder", str(out))
    say("round", str(origin.round))
    say("state root", "0x" + origin.root.hex())
    if origin.finalised is not None:
        say("chain", "holds this root" if origin.finalised else "has no final root of it yet")


@app.command("verify")
def verify(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A model's folder.")],
    root: RootOption = None,
) -> None:
    """Compute the state root of a model's weights and compare it with --root, or with the one that its card names."""
    from syntience.exporting import verify_export

    found = verify_export(folder, _root(root))
    say("state root", "0x" + found.hex())
    say("is", "as given" if root is not None else "as the card says")


@app.command("evaluate")
def evaluate(
    source: SourceArgument,
    text: Annotated[
        Path,
        typer.Argument(
            metavar="TEXT", help="Text to predict, or a prepared data set: its held-out samples."
        ),
    ],
    tokenizer: TokenizerOption = None,
    context: ContextOption = None,
) -> None:
    """Print what a model makes of a text: loss in nats per token, perplexity, bits per byte."""
    import math

    from syntience.corpus import default_cache_dir
    from syntience.documents import open_documents
    from syntience.importing import load_model
    from syntience.start import check_start
    from training.dataset import MANIFEST, TokenDataset
    from training.evaluate import Evaluator
    from training.text_loss import text_loss
    from training.threads import pin_threads

    pin_threads(1)
    if (text / MANIFEST).is_file():
        dataset = TokenDataset.open(text)
        heldout = dataset.total_samples - dataset.train_samples
        stored = load_model(source, tokenizer=tokenizer, context=dataset.spec.sample_tokens - 1)
        check_start(stored, dataset)
        loss = Evaluator(stored.model).heldout_loss(stored.params, dataset, limit=heldout)
        say("tokens", f"{heldout * stored.model.context:,}, held out")
        say("loss", f"{loss:.4f} nats per token")
        say("perplexity", f"{math.exp(loss):.3f}")
        return
    stored = load_model(source, tokenizer=tokenizer, context=context)
    found = text_loss(stored, open_documents(text, cache_dir=default_cache_dir(os.environ)))
    say("tokens", f"{found.tokens:,} of {found.bytes:,} bytes")
    say("loss", f"{found.per_token:.4f} nats per token")
    say("perplexity", f"{found.perplexity:.3f}")
    say("bits/byte", f"{found.bits_per_byte:.4f}")


def _describe(stored: StoredModel) -> None:
    from protocol.model_spec import LlamaSpec
    from training.parameters import parameter_count
    from training.roots import state_root

    model = stored.model
    say("model", "the project's Llama" if isinstance(model, LlamaSpec) else model.architecture)
    say("parameters", f"{parameter_count(model):,}")
    say("vocabulary", f"{model.vocab_size:,}")
    say("context", f"{model.context:,} tokens at most")
    words = stored.words
    say("tokenizer", "none" if words is None else f"texts end with {words.end!r}")
    say("state root", "0x" + state_root(stored.params).hex())


def _root(text: str | None) -> Hash32 | None:
    from protocol.errors import Rejected
    from protocol.ids import to_hash32
    from syntience.errors import ConfigError

    try:
        return None if text is None else to_hash32(text.removeprefix("0x"))
    except Rejected as error:
        raise ConfigError(f"--root is no root ({error})", "give 32 bytes in hex") from error
