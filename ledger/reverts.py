"""From the bytes of a revert to a typed error with the custom error's name and arguments.

Operators can mend some refusals; those become `FixableRevert` with the fix in the text.
"""

from __future__ import annotations

from functools import lru_cache

from ledger.abi import CONTRACT_NAMES, AbiValue, Interface, contract_abi, parse_abi
from ledger.errors import FixableRevert, Reverted, Undecodable, UnexpectedRevert
from protocol.ids import Hash32

_SOLIDITY_OWN = (
    {"type": "error", "name": "Error", "inputs": [{"name": "reason", "type": "string"}]},
    {"type": "error", "name": "Panic", "inputs": [{"name": "code", "type": "uint256"}]},
)

FIXES: dict[str, str] = {
    "StakeTooLow": "deposit at least the minimum with `syntience stake deposit`",
    "SubnetFull": "wait until a slot is given up, then register again",
    "Suspended": "wait for the epoch that the error names, then register again",
    "OperatorTaken": "make a fresh operator key; a key belongs to one account for ever",
    "InsufficientActive": "ask for no more than the account's active stake (see `syntience status`)",
    "StillLocked": "withdraw after the unlock time",
    "NotSettled": "withdraw once the epoch in which the exit was asked for is settled or void (see `syntience status`)",
    "GamesOpen": "withdraw when the games against the account are over",
    "Paused": "the run is paused; try again when it goes on (see `syntience status`)",
    "OnlyGovernor": "sign with the governor's key",
    "NotPaused": "the run is under way; there is no pause to end",
    "PauseTooSoon": "pause again from the time on that the error names",
    "PauseHolds": "only the governor ends it earlier; anyone can from the time on that the error names",
    "NoticeTooShort": "let the terms start at the epoch that the error names, or later",
    "TermsTooClose": "terms of this epoch or the next stay; announce others for later",
    "InvalidTerms": "mend the spec; the error names the field",
    "InvalidParams": "mend the spec's `chain` part; the error names the field",
    "UnbondingTooShort": "give the spec a longer chain.unbonding_s, at least what the error names",
    "BondTooSmall": "give the spec a larger bond (chain.game_bond, chain.request_bond), at least what the error names",
    "ClocksTooShort": "give the spec a chain.clock_blocks of at least chain.turn_blocks, and neither 0",
    "NoTimeToVote": "give the spec a chain.vote_commit_blocks and a chain.vote_reveal_blocks above 0",
    "CapExceeded": "mint no more than the cap",
    "NoSuchItem": "ask for a leaf that there is; the error names their number",
    "TooManyRequests": "wait until an earlier request about this submission is answered",
    "AlreadyFined": "its withholding was punished before; there is nothing more to ask for",
    "StakeMayLeave": "nobody's stake would answer for it any more; ask about younger rounds",
    "NothingUnbonding": "ask for an exit first",
    "NothingToClaim": "wait for the next settled epoch",
    "ERC2612ExpiredSignature": "sign a permit with a later deadline",
    "EndpointTooLong": "use a shorter endpoint",
    "ERC20InsufficientBalance": "the account holds too few tokens; get more, or use a smaller amount",
    "ERC20InsufficientAllowance": "approve the spender first, or use a permit",
}
"""Custom errors that an operator can mend, with what to do about each."""


def revert_error(data: bytes, *, label: str, tx_hash: Hash32 | None = None) -> Reverted:
    """The typed error for revert data (selector and arguments)."""
    name, arguments = decode_revert(data)
    error = named_revert(name, arguments, label=label, tx_hash=tx_hash)
    error.data = data
    return error


def named_revert(
    name: str, arguments: dict[str, AbiValue], *, label: str, tx_hash: Hash32 | None = None
) -> Reverted:
    """The typed error for an error that was decoded before."""
    if name in FIXES:
        return FixableRevert(name, arguments, label=label, fix=FIXES[name], tx_hash=tx_hash)
    return UnexpectedRevert(name, arguments, label=label, tx_hash=tx_hash)


def decode_revert(data: bytes) -> tuple[str, dict[str, AbiValue]]:
    """Name and arguments; never raises, because it runs while another error is handled."""
    if not data:
        return "Empty", {}
    interface = _errors().get(data[:4])
    if interface is None:
        return "Unknown", {"data": data}
    try:
        return interface.name, interface.decode_error(data[4:])
    except Undecodable:
        return interface.name, {"data": data[4:]}


@lru_cache(maxsize=1)
def _errors() -> dict[bytes, Interface]:
    """Every error of the run's contracts by selector, and Solidity's own two."""
    known = dict(parse_abi("Solidity", _SOLIDITY_OWN).errors)
    for name in CONTRACT_NAMES:
        known |= contract_abi(name).errors
    return known
