"""What a miner signs for a round, and how it is published.

A `Submission` is an EIP-712 struct; its digest is both what the miner's operator key signs and what
it commits on chain before it publishes anything, so nobody can copy what nobody can see. A
`Publication` adds the locators of the blobs behind the roots; the locators are not signed, because
every blob is checked against a signed root.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from protocol import canonical
from protocol.errors import Rejected
from protocol.hashing import abi_words, keccak256
from protocol.ids import Address, Hash32, Round, to_address, to_hash32

SUBMISSION_TYPE = (
    b"Submission(bytes32 run,bytes32 specHash,uint64 round,bytes32 beacon,address miner,"
    b"bytes32 initialRoot,uint64 localFromRound,bytes32 localIn,bytes32 localOut,bytes32 dataRoot,"
    b"bytes32 payloadRoot,uint64 payloadBytes,bytes32 traceRoot,uint32 steps)"
)
CONSENT_TYPE = b"OperatorConsent(bytes32 run,address account,uint64 nonce)"
_DOMAIN_TYPE = b"EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
_SIGNATURE_BYTES = 65
_MAX_BLOB_BYTES = 1 << 40

BLOB_KINDS = ("data", "local", "payload", "trace")
"""What a publication carries: the data leaves, the local state, the payload, the trace leaves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """The EIP-712 domain of a run: one chain, one registry."""

    chain_id: int
    registry: Address

    def separator(self) -> Hash32:
        """The domain separator."""
        return Hash32(
            keccak256(
                abi_words(
                    keccak256(_DOMAIN_TYPE),
                    keccak256(b"Syntience"),
                    keccak256(b"1"),
                    self.chain_id,
                    self.registry,
                )
            )
        )

    def digest(self, struct_hash: bytes) -> Hash32:
        """The digest that a key signs for a struct under this domain."""
        return Hash32(keccak256(b"\x19\x01" + self.separator() + struct_hash))


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A miner's claim about one round: data in, data out, weights before, weights after.

    Attributes:
        miner: the owner account, not the operator key that signs.
        initial_root: state root of the model that the miner started from.
        local_from_round: the round whose `local_out` is this `local_in`; 0 after a reset.
        payload_root: root over the chunks of the decoded update, in canonical fixed-width form.
        payload_bytes: size of the transport blob.
        steps: inner steps, H of the spec.
    """

    run: Hash32
    spec_hash: Hash32
    round: Round
    beacon: Hash32
    miner: Address
    initial_root: Hash32
    local_from_round: Round
    local_in: Hash32
    local_out: Hash32
    data_root: Hash32
    payload_root: Hash32
    payload_bytes: int
    trace_root: Hash32
    steps: int

    def __post_init__(self) -> None:
        for name in ("round", "local_from_round", "payload_bytes"):
            if not 0 <= getattr(self, name) < 1 << 64:
                raise Rejected(f"submission: {name} is not a uint64")
        if not 0 <= self.steps < 1 << 32:
            raise Rejected("submission: steps is not a uint32")

    def struct_hash(self) -> Hash32:
        """The EIP-712 struct hash."""
        values = (getattr(self, field.name) for field in fields(self))
        return Hash32(keccak256(abi_words(keccak256(SUBMISSION_TYPE), *values)))

    def digest(self, domain: Domain) -> Hash32:
        """What the operator signs, and what is committed on chain."""
        return domain.digest(self.struct_hash())

    def to_json(self) -> dict[str, canonical.Json]:
        """Field by field: hashes as hex without prefix, numbers as numbers."""
        return {
            field.name: value.hex() if isinstance(value, bytes) else value
            for field in fields(self)
            for value in (getattr(self, field.name),)
        }

    @classmethod
    def from_json(cls, value: canonical.Json) -> Submission:
        """Strict inverse of `to_json`; raises `Rejected`."""
        names = {field.name for field in fields(cls)}
        obj = _object(value, names)
        numbers = {"round", "local_from_round", "payload_bytes", "steps"}
        parsed: dict[str, object] = {}
        for name in names:
            if name in numbers:
                parsed[name] = _number(obj[name])
            elif name == "miner":
                parsed[name] = to_address(_text(obj[name]))
            else:
                parsed[name] = to_hash32(_text(obj[name]))
        return cls(**parsed)  # type: ignore[arg-type]  # each value was parsed by its field's kind


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedSubmission:
    """A submission with its operator's signature, r || s || v, 65 bytes."""

    submission: Submission
    signature: bytes

    def __post_init__(self) -> None:
        if len(self.signature) != _SIGNATURE_BYTES:
            raise Rejected(f"a signature has 65 bytes, not {len(self.signature)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobRef:
    """Where a blob's bytes can be asked for: its sha-256 and its size in bytes."""

    digest: Hash32
    size: int

    def __post_init__(self) -> None:
        if not 0 <= self.size < _MAX_BLOB_BYTES:
            raise Rejected(f"blob size out of range: {self.size}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """A signed submission and the locators of its blobs, as a node serves it to others."""

    signed: SignedSubmission
    blobs: Mapping[str, BlobRef]

    def __post_init__(self) -> None:
        if set(self.blobs) != set(BLOB_KINDS):
            raise Rejected(f"a publication has the blobs {', '.join(BLOB_KINDS)}")

    def to_bytes(self) -> bytes:
        """Canonical JSON."""
        return canonical.dumps(
            {
                "blobs": {
                    kind: {"digest": ref.digest.hex(), "size": ref.size}
                    for kind, ref in self.blobs.items()
                },
                "signature": self.signed.signature.hex(),
                "submission": self.signed.submission.to_json(),
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Publication:
        """Strict inverse of `to_bytes`; raises `Rejected` for anything else."""
        obj = _object(canonical.loads(data), {"blobs", "signature", "submission"})
        blobs = {}
        for kind, ref in _object(obj["blobs"], set(BLOB_KINDS)).items():
            parts = _object(ref, {"digest", "size"})
            blobs[kind] = BlobRef(
                digest=to_hash32(_text(parts["digest"])), size=_number(parts["size"])
            )
        signature = _hex(_text(obj["signature"]))
        signed = SignedSubmission(
            submission=Submission.from_json(obj["submission"]), signature=signature
        )
        publication = cls(signed=signed, blobs=blobs)
        if publication.to_bytes() != data:
            raise Rejected("publication: not in canonical form")
        return publication


def operator_consent_digest(*, domain: Domain, run: Hash32, account: Address, nonce: int) -> Hash32:
    """What an operator key signs to prove possession.

    Args:
        domain: the run's domain.
        run: the run's id.
        account: the owner account that the key will act for.
        nonce: number of operators that the account had before.
    """
    return domain.digest(keccak256(abi_words(keccak256(CONSENT_TYPE), run, account, nonce)))


def run_id(*, chain_id: int, registry: Address, nonce: int) -> Hash32:
    """The id of a run: keccak(chainId, registry, nonce)."""
    return Hash32(keccak256(abi_words(chain_id, registry, nonce)))


def _object(value: canonical.Json, keys: set[str]) -> Mapping[str, canonical.Json]:
    if not isinstance(value, Mapping) or set(value) != keys:
        raise Rejected(f"expected an object with the keys {', '.join(sorted(keys))}")
    return value


def _number(value: canonical.Json) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise Rejected("expected a whole number")
    return value


def _text(value: canonical.Json) -> str:
    if not isinstance(value, str):
        raise Rejected("expected a string")
    return value


def _hex(value: str) -> bytes:
    try:
        return bytes.fromhex(value)
    except ValueError as error:
        raise Rejected("expected hex digits") from error
