"""From a model that a node keeps to a folder that `transformers` loads, and back to its root."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from ledger.connection import Connection
from ledger.runs import join, load_run_file
from node.kept import KeptModel, read_kept
from protocol.errors import OperatorError, Rejected
from protocol.ids import Hash32, Round
from protocol.runfile import RunFile
from protocol.spec import DataSpec
from syntience.layers import Secret
from syntience.model_card import CARD, Origin, model_card, root_in_card
from training.dataset import TOKENIZER
from training.model_folder import StoredModel, read_model, write_model
from training.parameters import from_blob, parameter_count
from training.roots import state_root
from training.words import Words

_DATASET = "dataset"
"""Where a node keeps the data set that it fetched, in its state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """What to export.

    Attributes:
        state: of a node of the run; or else
        checkpoint: a file with the run's tensors in safetensors, as nodes exchange them.
        round: whose model; None takes the newest that the node keeps.
        root: what its state root must be, if that is known.
        data: the run's data set, for its tokenizer; None takes the one in `state`.
        rpc_url: asked for the final root of the round, if given.
    """

    out: Path
    run_file: Path
    state: Path | None = None
    checkpoint: Path | None = None
    round: Round | None = None
    root: Hash32 | None = None
    data: Path | None = None
    rpc_url: Secret | None = None


async def export_model(export: Export) -> Origin:
    """Writes the folder, once the weights have the root that they should have.

    Raises:
        OperatorError: no such model, another root, or no place to write.
    """
    run_file = load_run_file(export.run_file)
    kept = _kept(export, run_file)
    _compare(kept.root, export.root)
    final = None if export.rpc_url is None else await _final_root(run_file, kept, export.rpc_url)
    if final is not None:
        _compare(kept.root, final)
    origin = Origin(
        run_file=run_file,
        round=kept.round,
        root=kept.root,
        finalised=None if export.rpc_url is None else final is not None,
    )
    model = run_file.spec.model
    stored = StoredModel(model=model, params=kept.params, words=_words(export, run_file.spec.data))
    card = model_card(origin, parameters=parameter_count(model))
    write_model(stored, export.out, extra={CARD: card})
    return origin


def verify_export(folder: Path, root: Hash32 | None) -> Hash32:
    """The state root of the weights in a folder, which is the given one, or the one that its card names.

    Raises:
        OperatorError: it is another one, or none to compare with is known.
    """
    named = root if root is not None else _root_of_card(folder)
    found = state_root(read_model(folder).params)
    _compare(found, named)
    return found


def _kept(export: Export, run_file: RunFile) -> KeptModel:
    if export.checkpoint is None and export.state is not None:
        return read_kept(export.state, run_file.spec, export.round)
    if export.checkpoint is None or export.state is not None or export.round is None:
        raise OperatorError(
            "it is not clear which model to export",
            "give either --state of a node, or --checkpoint with its --round",
        )
    try:
        params = from_blob(export.checkpoint.read_bytes(), run_file.spec.model)
    except (OSError, Rejected) as error:
        raise OperatorError(
            f"{export.checkpoint} is no checkpoint of this run ({error})", "get an intact copy"
        ) from error
    return KeptModel(round=export.round, root=state_root(params), params=params)


async def _final_root(run_file: RunFile, kept: KeptModel, rpc_url: Secret) -> Hash32 | None:
    async with await Connection.open(rpc_url.reveal(), chain_id=run_file.chain_id) as connection:
        contracts = await join(run_file, connection)
        return await contracts.epochs.finalised_root(kept.round)


def _compare(found: Hash32, expected: Hash32 | None) -> None:
    if expected is not None and found != expected:
        raise OperatorError(
            f"the weights have the state root 0x{found.hex()}, not 0x{expected.hex()}",
            "these are other weights: get them from another node, or compare with another root",
        )


def _words(export: Export, data: DataSpec) -> Words:
    folder = export.data or (export.state / _DATASET if export.state else None)
    if folder is None or not (folder / TOKENIZER).is_file():
        raise OperatorError(
            f"there is no {TOKENIZER} of the run {'in ' + str(folder) if folder else 'here'}",
            "give the run's data set with --data",
        )
    content = (folder / TOKENIZER).read_bytes()
    if hashlib.sha256(content).digest() != data.tokenizer_digest:
        raise OperatorError(
            f"the {TOKENIZER} in {folder} is not the run's", "give the run's data set with --data"
        )
    words = Words(json=content, start=None, end=None)
    end = words.tokenizer().id_to_token(data.end_token)
    return Words(json=content, start=end, end=end)


def _root_of_card(folder: Path) -> Hash32:
    try:
        root = root_in_card((folder / CARD).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorError(
            f"can't read the model card in {folder} ({error})", "give the root with --root"
        ) from error
    if root is None:
        raise OperatorError(f"the card in {folder} names no state root", "give it with --root")
    return root
