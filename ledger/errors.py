"""Everything that can go wrong at the door to the chain, one tree.

    Retryable      RpcUnavailable, ReceiptTimeout, FeeTooHigh
    OperatorError  RpcUnreachable, RpcDenied, WrongChain, EmptyBalance, KeyFileError (and its leaves),
                   RunFileError, NotDeployed, RunMismatch, StoreBusy, StoreForeign, StoreDamaged,
                   DataLogDamaged, FixableRevert
    Rejected       BadSignature
    Bug            RpcRefused, Undecodable, KeyReused, UnexpectedRevert

A contract's custom error arrives as a `Reverted`: `FixableRevert` where the operator can mend it (too little stake, a
full subnet), `UnexpectedRevert` otherwise. Code that expects a certain refusal (somebody else was first) catches
`Reverted` and looks at `.name`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from protocol.errors import Bug, OperatorError, Rejected, Retryable, SyntienceError
from protocol.ids import Address, Hash32

PAUSED = "Paused"
"""Name of the refusal of everything while the run's clocks stand still; the same call may be right afterwards."""


class RpcUnavailable(Retryable):
    """The node did not answer in time, dropped the connection, is overloaded or limits the rate."""


class ReceiptTimeout(Retryable):
    """A transaction is not in a block yet. It stays in the outbox, which goes on pushing it."""


class FeeTooHigh(Retryable):
    """The chain's base fee is above the outbox's cap; nothing was signed."""


class RpcUnreachable(OperatorError):
    """Nothing that speaks JSON-RPC answers at the given URL."""


class RpcDenied(OperatorError):
    """The endpoint answers but refuses us: a wrong path, a missing API key."""


class WrongChain(OperatorError):
    """The node follows another chain than the run."""


class EmptyBalance(OperatorError):
    """The sender cannot pay for gas (or for the value sent)."""


class KeyFileError(OperatorError):
    """A key file cannot be used."""


class KeyFileMissing(KeyFileError):
    """No key file at that path."""


class KeyFileExists(KeyFileError):
    """A key file is there already; it is never overwritten."""


class KeyFileInvalid(KeyFileError):
    """The file is not a version 3 keystore, or is readable by others."""


class WrongPassword(KeyFileError):
    """The password does not open the key file."""


class RunFileError(OperatorError):
    """The run file is missing or cannot be understood."""


class NotDeployed(OperatorError):
    """A contract of the run has no code on this chain."""


class RunMismatch(OperatorError):
    """The run file and the contracts disagree."""


class StoreBusy(OperatorError):
    """Another process holds this key's outbox."""


class StoreForeign(OperatorError):
    """The database belongs to another chain, run or key."""


class StoreDamaged(OperatorError):
    """The database cannot be read."""


class DataLogDamaged(OperatorError):
    """The public data log does not verify."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        super().__init__(
            f"the data log {path} is damaged at line {line} ({reason})",
            "move it away and let the node rebuild it from the chain",
        )
        self.line = line
        self.reason = reason


class BadSignature(Rejected):
    """Not a canonical 65-byte secp256k1 signature (r, s, v with v 27 or 28 and s in the lower half)."""


class RpcRefused(Bug):
    """The node answered a request with an error that is no revert: we asked for something impossible."""

    def __init__(self, method: str, code: int, message: str, data: bytes = b"") -> None:
        super().__init__(f"{method}: {message} (code {code})")
        self.method = method
        self.code = code
        self.message = message
        self.data = data


class Undecodable(Bug):
    """A contract's answer or event does not fit the packaged ABI."""


class KeyReused(Bug):
    """An outbox key was used before for a different call."""


class Reverted(SyntienceError):
    """A contract refused a call, in a simulation or on chain.

    Attributes:
        name: the custom error's name, ``Error`` or ``Panic`` for Solidity's own, ``Unknown`` for a selector that no
            packaged ABI has, ``OutOfGas``, or ``Empty`` for a revert without data.
        arguments: the error's arguments by name.
        label: the call that was refused.
        tx_hash: the transaction if it was included in a block, None if it was only simulated.
        data: the revert as the chain gave it, selector and arguments; empty where it was not decoded from bytes.
    """

    data: bytes = b""

    def __init__(
        self,
        name: str,
        arguments: Mapping[str, object],
        *,
        label: str,
        tx_hash: Hash32 | None = None,
    ) -> None:
        # Not super(): `FixableRevert` has a second base, whose constructor takes other arguments.
        Exception.__init__(self, describe_revert(name, arguments, label, tx_hash))
        self.name = name
        self.arguments = dict(arguments)
        self.label = label
        self.tx_hash = tx_hash


class UnexpectedRevert(Reverted, Bug):
    """A refusal that our own checks should have foreseen, unless somebody else was first."""


class FixableRevert(Reverted, OperatorError):
    """A refusal that the operator can mend."""

    def __init__(
        self,
        name: str,
        arguments: Mapping[str, object],
        *,
        label: str,
        fix: str,
        tx_hash: Hash32 | None = None,
    ) -> None:
        Reverted.__init__(self, name, arguments, label=label, tx_hash=tx_hash)
        self.problem = describe_revert(name, arguments, label, tx_hash)
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.problem}: {self.fix}"


def describe_revert(
    name: str, arguments: Mapping[str, object], label: str, tx_hash: Hash32 | None
) -> str:
    """One line: which call was refused, why, and in which transaction."""
    shown = ", ".join(f"{key}={_shown(value)}" for key, value in arguments.items())
    where = f" in transaction 0x{tx_hash.hex()}" if tx_hash else ""
    return f"{label} was refused{where} with {name}({shown})"


def empty_balance(address: Address, balance: int, needed: int) -> EmptyBalance:
    """The error for a sender that cannot pay, amounts in wei."""
    return EmptyBalance(
        f"{address} holds {_ether(balance)} of native currency and needs {_ether(needed)} for gas",
        "send it some and start again",
    )


def _ether(wei: int) -> str:
    return f"{wei / 10**18:.6g}"


def _shown(value: object) -> str:
    return "0x" + value.hex() if isinstance(value, bytes) else str(value)
