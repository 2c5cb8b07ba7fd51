"""Everything that can go wrong while moving bytes, in one tree.

SyntienceError
└── TransportError
    ├── PeerUnavailable   Retryable      no connection, too slow, cut off, or a server error
    │   └── PeerBusy      Retryable      the peer asked us to slow down
    ├── BlobMissing       Retryable      this store or this peer does not hold the blob
    ├── BlobUnavailable   Retryable      no mirror delivered the blob; says why, mirror by mirror
    ├── DownloadBusy      Retryable      another process is fetching the same blob into this store
    ├── WrongBytes        Rejected       bytes that are not those of the digest
    │   └── WrongLength   Rejected       bytes of another number than the reference says
    ├── BadAnswer         Rejected       the peer's answer breaks the wire format or a limit
    ├── BadEndpoint       Rejected       a registered endpoint that is malformed or not public
    ├── BadName           Rejected       a topic, key or digest outside its grammar
    ├── RecordRefused     Rejected       a board or a peer will not take the record
    ├── StorageFull       OperatorError  quota or disk exhausted
    ├── StorageBroken     OperatorError  the folder can't be read or written
    └── CannotListen      OperatorError  the server's address is taken, privileged or not ours
"""

from __future__ import annotations

from collections.abc import Sequence

from protocol.errors import OperatorError, Rejected, Retryable, SyntienceError


class TransportError(SyntienceError):
    """Base of every error of this package."""


class PeerUnavailable(TransportError, Retryable):
    """The peer could not be reached, stalled, cut the connection or failed inside."""


class PeerBusy(PeerUnavailable):
    """The peer limits us.

    Args:
        message: what happened.
        retry_after_s: how long the peer asked us to wait; 0 when it did not say.
    """

    def __init__(self, message: str, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class BlobMissing(TransportError, Retryable):
    """The blob is not here (or not at that peer); it may be elsewhere, or here later."""


class BlobUnavailable(TransportError, Retryable):
    """No mirror delivered the blob.

    Args:
        message: which blob.
        failures: one (mirror, reason) per failed attempt, in order.
        blamed: mirrors that served wrong bytes, proven.
    """

    def __init__(
        self,
        message: str,
        failures: Sequence[tuple[str, str]] = (),
        blamed: frozenset[str] = frozenset(),
    ) -> None:
        reasons = "; ".join(f"{mirror}: {reason}" for mirror, reason in failures)
        super().__init__(f"{message} ({reasons})" if reasons else message)
        self.failures = tuple(failures)
        self.blamed = blamed


class DownloadBusy(TransportError, Retryable):
    """Another process holds the partial file of the same blob."""


class WrongBytes(TransportError, Rejected):
    """The peer served bytes that are not those of the digest."""


class WrongLength(WrongBytes):
    """The peer holds, or the reference names, another number of bytes.

    Not yet proof against the peer: references are unsigned, and it may be the reference that lies.
    """


class BadAnswer(TransportError, Rejected):
    """The peer's answer breaks the wire format or exceeds a limit."""


class BadEndpoint(TransportError, Rejected):
    """An endpoint that is malformed, or that leads to an address which is not public."""


class BadName(TransportError, Rejected):
    """A topic, key or digest outside its grammar."""


class RecordRefused(TransportError, Rejected):
    """A record that a board or a peer does not take: too large, too many, or not verified."""


class StorageFull(TransportError, OperatorError):
    """The quota or the disk is exhausted by what may not be dropped."""


class StorageBroken(TransportError, OperatorError):
    """The storage folder can't be read or written."""


class CannotListen(TransportError, OperatorError):
    """The server can't listen on its address."""
