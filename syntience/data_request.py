"""Asking on chain for a leaf of what a miner handed in, when nobody serves it: with a bond, until it is shown or fined.

The request is kept in the key's outbox, so that the same command, repeated after a kill, goes on where it stopped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

from ledger.contracts.epochs import Ballot
from ledger.contracts.requests import Item, ItemKind, RequestState, RequestStatus, slots_of
from ledger.contracts.token import UNLIMITED
from ledger.errors import Reverted
from ledger.event_types import Attested, ItemAnswered, ItemWithheld
from ledger.transactions import Receipt
from node.chain import RunChain
from node.openings import local_index
from protocol import canonical
from protocol.errors import Retryable
from protocol.ids import Epoch, Round, Slot, Units
from protocol.spec import RunSpec
from syntience.errors import ConfigError, RequestRefused, UnwritableOutput
from syntience.session import read_run
from syntience.staking import Owner, finish_earlier

_POLL_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """What the operator asks for.

    Attributes:
        miner: its account, or its slot as a number.
        tensor: of a local state; None of everything else.
        index: of the leaf, in its tensor or in all.
    """

    round: Round
    miner: str
    kind: ItemKind
    index: int
    tensor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a request.

    Attributes:
        answer: what was shown; None if it was withheld.
        fined: the validators' slots that lost `fine` each.
    """

    item: Item
    answer: ItemAnswered | None
    fined: tuple[Slot, ...]
    fine: Units


async def ask(
    owner: Owner, want: Want, *, events: Path | None, say: Callable[[str, str], None]
) -> Outcome:
    """Asks, unless somebody did before, and waits until the leaf is shown or its time is over.

    Args:
        owner: pays the bond, and the fee of an answer out of it.
        events: where events are kept for the next time.
        say: told how it goes, in a word and a text.

    Raises:
        RequestRefused: there is nothing to be asked for.
    """
    await finish_earlier(owner.outbox)
    async with read_run(owner.connection, owner.contracts, owner.run_file, events) as chain:
        item = await _item(chain, want, owner.run_file.spec)
        requests = owner.contracts.requests
        state = await requests.request_of(item)
        if state.status is RequestStatus.NONE:
            await _request(owner, chain, item)
            state = await requests.request_of(item)
        say("request", f"0x{item.id.hex()}")
        if state.status is RequestStatus.OPEN:
            names = ", ".join(str(slot) for slot in state.setters)
            say("owed by", f"validator slots {names}, until block {state.deadline}")
            await _settled(owner, item, state)
        await chain.poll()
        await _take_back(owner)
        return _outcome(chain, item)


def save_answer(answer: ItemAnswered, path: Path) -> None:
    """Writes what was shown as JSON: the item, the submission, and the leaf with its path, bytes as hex."""
    opening: dict[str, canonical.Json] = {
        field.name: _plain(getattr(answer.opening, field.name)) for field in fields(answer.opening)
    }
    item: dict[str, canonical.Json] = {
        "round": int(answer.item.round),
        "miner": int(answer.item.miner),
        "digest": answer.item.digest.hex(),
        "kind": answer.item.kind.name.lower(),
        "index": answer.item.index,
    }
    body: dict[str, canonical.Json] = {
        "item": item,
        "submission": answer.submission.to_json(),
        "opening": opening,
    }
    try:
        path.write_bytes(canonical.dumps(body) + b"\n")
    except OSError as error:
        raise UnwritableOutput(
            f"can't write {path} ({error.strerror or error})", "choose another file with --out"
        ) from error


async def _item(chain: RunChain, want: Want, spec: RunSpec) -> Item:
    if not 1 <= want.round <= chain.round:
        raise RequestRefused(f"there was no round {want.round} yet", "give a round that is over")
    facts = await chain.round_facts(want.round)
    named = want.miner.lower()
    slots = [
        slot for slot, account in facts.miners.items() if named in (str(int(slot)), account.lower())
    ]
    if not slots or facts.miners[slots[0]] not in facts.commits:
        raise RequestRefused(
            f"no miner {want.miner} committed anything in round {want.round}",
            "give the account or slot of one that did",
        )
    index = want.index
    if want.kind is ItemKind.LOCAL:
        if want.tensor is None:
            raise ConfigError("a local state has many tensors", "name one with --tensor")
        index = local_index(spec.model, want.tensor, want.index)
    return Item(
        round=want.round,
        miner=slots[0],
        digest=facts.commits[facts.miners[slots[0]]],
        kind=want.kind,
        index=index,
    )


async def _request(owner: Owner, chain: RunChain, item: Item) -> None:
    contracts, params = owner.contracts, owner.run_file.spec.chain
    last = Epoch(chain.clock.epoch_of(item.round) + params.fraud_window_epochs)
    if chain.epoch > last:
        raise RequestRefused(
            f"the duty to serve round {item.round} ended with epoch {last}",
            "nothing can be asked for any more",
        )
    if await contracts.token.balance_of(owner.account) < params.request_bond:
        raise RequestRefused(
            f"{owner.account} does not hold the tokens for the bond",
            "send it some; most of the bond comes back",
        )
    spender = contracts.requests.address
    if await contracts.token.allowance(owner.account, spender) < params.request_bond:
        await owner.outbox.submit(
            contracts.token.approve_call(spender, UNLIMITED), "approve/requests"
        )
    ballots = [
        Ballot(slot=event.slot, root=event.root, bitmap=event.bitmap)
        for event in chain.events.events(Attested, round_=item.round)
    ]
    try:
        await owner.outbox.submit(
            contracts.requests.request_call(item, ballots), f"ask/{item.id.hex()}"
        )
    except Reverted as error:
        if error.name == "NoMajority":
            raise RequestRefused(
                "no majority of the validators vouched for this submission",
                "nobody owes it, so nobody can be asked",
            ) from error
        raise


async def _settled(owner: Owner, item: Item, state: RequestState) -> Receipt | None:
    """Returns when the request was answered; when its time is over, has it decided."""
    requests, epochs = owner.contracts.requests, owner.contracts.epochs
    while (await requests.request_of(item)).status is RequestStatus.OPEN:
        if await epochs.run_block() > state.deadline:
            try:
                return await owner.outbox.submit(
                    requests.resolve_call(item), f"resolve/{item.id.hex()}"
                )
            except Reverted as error:
                if error.name != "NotOpen":
                    raise
        await asyncio.sleep(_POLL_S)
    return None


async def _take_back(owner: Owner) -> None:
    """Withdraws what is left of the bond."""
    requests = owner.contracts.requests
    if await requests.balance_of(owner.account):
        nonce = await owner.outbox.next_nonce()
        await owner.outbox.submit(
            requests.withdraw_call(owner.account), f"withdraw-requests/{nonce}"
        )


def _outcome(chain: RunChain, item: Item) -> Outcome:
    for answer in chain.events.events(ItemAnswered):
        if answer.id == item.id:
            return Outcome(item=item, answer=answer, fined=(), fine=Units(0))
    for event in chain.events.events(ItemWithheld):
        if event.id == item.id:
            fined = slots_of(event.setters) if event.fine else ()
            return Outcome(item=item, answer=None, fined=fined, fine=event.fine)
    raise Retryable("the node does not show the end of the request yet")


def _plain(value: object) -> canonical.Json:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    assert isinstance(value, int)
    return value
