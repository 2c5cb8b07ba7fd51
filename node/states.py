"""The tensors on both sides of a disputed step: offered by the defendant, fetched by its judges.

A state is believed only if its leaf hashes to what the game says; who served it does not matter.
"""

from __future__ import annotations

import asyncio

from node.contents import size_limits
from node.node import Node
from protocol import canonical
from protocol.errors import Rejected
from protocol.ids import Hash32, Round, to_hash32
from protocol.merkle import leaf_hash
from protocol.submission import BlobRef
from training.inner import InnerState
from training.local_state import LocalState
from training.parameters import from_blob, to_blob

FAMILY = "states"
_TRIED = 8
"""A defendant lists two states a game; who lists thousands wants to keep its judges busy."""


def offer_state(node: Node, round_: Round, state: InnerState) -> None:
    """Serves a state of a disputed round to whoever asks."""
    params, local = node.store.put(to_blob(state.params)), node.store.put(state.local.to_blob())
    for ref in (params, local):
        node.store.pin(ref.digest)
    record: dict[str, canonical.Json] = {
        "leaf": leaf_hash(state.leaf()).hex(),
        "local": _out(local),
        "params": _out(params),
    }
    node.board.put(_topic(round_), node.me, canonical.dumps(record))


async def fetch_state(node: Node, round_: Round, leaf: Hash32, endpoint: str) -> InnerState | None:
    """The state with this leaf hash, as a node serves it; None if it lists none.

    Raises:
        Retryable: it did not answer, or not in time.
        Rejected: what it serves is not what it lists.
    """
    for record in (await node.client.fetch_records(endpoint, _topic(round_)))[:_TRIED]:
        state = await _fetch_one(node, record, leaf, endpoint)
        if state is not None:
            return state
    return None


async def _fetch_one(node: Node, record: bytes, leaf: Hash32, endpoint: str) -> InnerState | None:
    refs = _parse(record, leaf)
    if refs is None:
        return None
    spec, blobs = node.run_file.spec, []
    for ref, kind in zip(refs, ("checkpoint", "local"), strict=True):
        if ref.size > size_limits(spec)[kind]:
            raise Rejected(f"a state of {ref.size} bytes, more than one can have")
        await node.client.fetch_blob(ref, [endpoint], node.store)
        blobs.append(await asyncio.to_thread(node.store.get, ref.digest))
    params, local = blobs
    if params is None or local is None:
        return None
    state = InnerState(
        params=from_blob(params, spec.model), local=LocalState.from_blob(local, spec.model)
    )
    return state if leaf_hash(await asyncio.to_thread(state.leaf)) == leaf else None


def _topic(round_: Round) -> str:
    return f"{FAMILY}/{round_}"


def _out(ref: BlobRef) -> dict[str, canonical.Json]:
    return {"digest": ref.digest.hex(), "size": ref.size}


def _parse(record: bytes, leaf: Hash32) -> tuple[BlobRef, BlobRef] | None:
    """Locators of model and local state of a record; None if it is of another state."""
    match canonical.loads(record):
        case {
            "leaf": str(named),
            "local": {"digest": str(local), "size": int(local_size)},
            "params": {"digest": str(params), "size": int(params_size)},
        }:
            if named != leaf.hex():
                return None
            return (
                BlobRef(digest=to_hash32(params), size=params_size),
                BlobRef(digest=to_hash32(local), size=local_size),
            )
    raise Rejected("not a record of a state")
