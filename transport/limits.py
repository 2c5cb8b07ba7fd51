"""How much of this machine a peer may use, and how long we wait for one.

Passed in, never global. The defaults suit a node on a public address with a few hundred peers.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """What a server grants.

    Attributes:
        connections: open connections in all.
        connections_per_peer: open connections of one peer (an IPv4 address or an IPv6 /64).
        transfers: blobs and posted records under way at once; more are told to come back.
        transfers_per_peer: the same for one peer.
        requests_per_s: steady request rate per peer.
        request_burst: requests that a rested peer may send at once.
        bytes_per_s: steady blob and listing bytes per peer.
        byte_burst: bytes that a rested peer may draw at once; at least one largest blob.
        record_bytes: largest record taken or served.
        listing_bytes: largest page of a listing, counted in record bytes.
        listing_records: most records in a page of a listing.
        head_timeout_s: for a connection to bring a request, also between requests.
        body_timeout_s: for a posted record to arrive.
        verify_timeout_s: for the verifier to decide on a posted record.
        write_timeout_s: for one chunk of an answer to leave.
        min_bytes_per_s: a reader slower than this, over a whole blob, is cut off.
        shutdown_grace_s: what requests under way get when the server stops.
    """

    connections: int = 1024
    connections_per_peer: int = 128
    transfers: int = 256
    transfers_per_peer: int = 64
    requests_per_s: float = 100.0
    request_burst: int = 2000
    bytes_per_s: float = 64.0 * MIB
    byte_burst: int = 4 * GIB
    record_bytes: int = 64 * KIB
    listing_bytes: int = 4 * MIB
    listing_records: int = 4096
    head_timeout_s: float = 30.0
    body_timeout_s: float = 15.0
    verify_timeout_s: float = 15.0
    write_timeout_s: float = 30.0
    min_bytes_per_s: float = 16.0 * KIB
    shutdown_grace_s: float = 5.0

    def __post_init__(self) -> None:
        _require_positive(self)
        if self.record_bytes > self.listing_bytes:
            raise ValueError("a page of a listing must hold at least one record")

    def transfer_timeout_s(self, size: int) -> float:
        """The deadline of a transfer of ``size`` bytes."""
        return self.write_timeout_s + size / self.min_bytes_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimits:
    """What a client accepts from a peer.

    Attributes:
        blob_bytes: largest blob fetched.
        record_bytes: largest record accepted.
        listing_bytes: most record bytes taken from one peer's listing, over all pages.
        listing_records: most records taken from one peer's listing, over all pages.
        connect_timeout_s: for name resolution and connection.
        read_timeout_s: for the next bytes to arrive.
        request_timeout_s: for an answer that is not a blob, whole.
        transfer_grace_s: what any blob transfer may take, whatever its size.
        min_bytes_per_s: a transfer slower than this, after the grace, is given up.
        attempts_per_mirror: how often a mirror is tried for one blob; progress counts as none.
        max_backoff_s: the longest that we wait because a busy peer asked.
        connections_per_peer: open connections to one peer.
        connections: open connections in all.
        allow_private: talk to loopback and private addresses (a devnet, never a public run).
    """

    blob_bytes: int = 16 * GIB
    record_bytes: int = 64 * KIB
    listing_bytes: int = 32 * MIB
    listing_records: int = 16384
    connect_timeout_s: float = 5.0
    read_timeout_s: float = 15.0
    request_timeout_s: float = 30.0
    transfer_grace_s: float = 30.0
    min_bytes_per_s: float = 64.0 * KIB
    attempts_per_mirror: int = 2
    max_backoff_s: float = 5.0
    connections_per_peer: int = 16
    connections: int = 256
    allow_private: bool = False

    def __post_init__(self) -> None:
        _require_positive(self)

    def transfer_timeout_s(self, size: int) -> float:
        """The deadline of a transfer of ``size`` bytes."""
        return self.transfer_grace_s + size / self.min_bytes_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardLimits:
    """What a record board holds.

    Attributes:
        record_bytes: largest record.
        records_per_key: distinct records under one key; two that conflict are evidence already.
        records_per_topic: records under one topic.
        quota_bytes: record bytes in all.
    """

    record_bytes: int = 64 * KIB
    records_per_key: int = 8
    records_per_topic: int = 65536
    quota_bytes: int = 4 * GIB

    def __post_init__(self) -> None:
        _require_positive(self)


def _require_positive(limits: ServerLimits | ClientLimits | BoardLimits) -> None:
    for field in fields(limits):
        value = getattr(limits, field.name)
        if not isinstance(value, bool) and value <= 0:
            raise ValueError(f"{field.name} must be positive, not {value}")
