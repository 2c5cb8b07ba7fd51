"""Handing a signed transaction to the node, and what the node's answer means.

Nodes say the same things in different words; the words are collected here and nowhere else.
"""

from __future__ import annotations

from enum import Enum, auto

from ledger import json_rpc
from ledger.connection import Connection
from ledger.errors import Reverted, RpcRefused


class Answer(Enum):
    """What a node did with a transaction."""

    ACCEPTED = auto()
    """It is in the pool now, or was before."""
    NONCE_USED = auto()
    """A block has a transaction with this nonce: this one or another."""
    UNDERPRICED = auto()
    """The pool or the base fee asks for more, or another transaction with this nonce waits."""
    NO_FUNDS = auto()
    """The sender can't pay."""
    INVALID = auto()
    """No node will ever take it: too little gas for its bytes, too much for a block, too large."""
    REFUSED = auto()
    """Something else; the outbox keeps trying."""


_MEANINGS = (
    (Answer.ACCEPTED, ("already known", "already imported", "known transaction", "already exists")),
    (Answer.NONCE_USED, ("nonce too low", "nonce is too low", "old nonce", "invalid nonce")),
    (Answer.NO_FUNDS, ("insufficient funds", "insufficient balance")),
    (
        Answer.INVALID,
        (
            "intrinsic gas",
            "floor data gas",
            "gas limit",
            "oversized",
            "max initcode",
            "initcode size",
            "exceeds the configured cap",
        ),
    ),
    (
        Answer.UNDERPRICED,
        (
            "underpriced",
            "less than block base fee",
            "fee too low",
            "feecap",
            "max fee per gas",
            "fee cap",
        ),
    ),
)


async def broadcast(connection: Connection, raw: bytes) -> tuple[Answer, str]:
    """Sends a signed transaction; returns what the node did and its words.

    Raises:
        RpcUnavailable: it is unknown whether the node has it; send it again later.
    """
    try:
        await connection.request("eth_sendRawTransaction", [json_rpc.data(raw)])
    except RpcRefused as error:
        return meaning_of(error.message), error.message
    except Reverted as error:
        # Some development nodes execute at once and answer with the revert; the transaction is mined all the same.
        return Answer.ACCEPTED, str(error)
    return Answer.ACCEPTED, ""


def meaning_of(message: str) -> Answer:
    """Sorts a node's refusal by its words."""
    lower = message.lower()
    for answer, words in _MEANINGS:
        if any(word in lower for word in words):
            return answer
    return Answer.REFUSED
