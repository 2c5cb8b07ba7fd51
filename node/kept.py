"""The models that a node has kept, read from its state's folder while it runs or after it has stopped."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from node.checkpoints import FAMILY, parse_record
from node.node import BLOBS, BOARD
from protocol.errors import OperatorError, Rejected
from protocol.ids import Hash32, Round
from protocol.spec import RunSpec
from training.parameters import Parameters, from_blob
from training.roots import state_root
from transport.peek import peek_blob, peek_records, peek_topics


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeptModel:
    """The model at the start of a round; its root was computed from it."""

    round: Round
    root: Hash32
    params: Parameters


def read_kept(state_dir: Path, spec: RunSpec, round_: Round | None = None) -> KeptModel:
    """The newest undamaged model in a node's state, or that of one round.

    Raises:
        OperatorError: there is none.
    """
    kept = sorted(int(name) for name in peek_topics(state_dir / BOARD, FAMILY) if name.isdecimal())
    for number in reversed(kept):
        found = _read(state_dir, spec, Round(number)) if round_ in (None, number) else None
        if found is not None:
            return found
    wanted = "no model" if round_ is None else f"no model of round {round_}"
    listed = f"rounds {kept[0]} to {kept[-1]}" if kept else "none"
    raise OperatorError(
        f"there is {wanted} of this run in {state_dir} (kept: {listed})",
        "give the --state of a node of this run, and a round that it still keeps",
    )


def _read(state_dir: Path, spec: RunSpec, round_: Round) -> KeptModel | None:
    for record in peek_records(state_dir / BOARD, f"{FAMILY}/{round_}"):
        try:
            root, ref = parse_record(record, round_)
            data = peek_blob(state_dir / BLOBS, ref.digest)
            params = None if data is None else from_blob(data, spec.model)
        except Rejected:  # of another run, or of another program
            continue
        if params is not None and state_root(params) == root:
            return KeptModel(round=round_, root=root, params=params)
    return None
