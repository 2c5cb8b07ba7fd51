"""The run file: all that a stranger needs to join a run, besides an RPC endpoint and a stake."""

from __future__ import annotations

from dataclasses import dataclass

from protocol import canonical, record
from protocol.errors import Rejected
from protocol.ids import Address, Hash32
from protocol.spec import RunSpec
from protocol.submission import Domain, run_id

RUN_FILE_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractAddresses:
    """Where the run's contracts live."""

    token: Address
    registry: Address
    vault: Address
    epochs: Address
    beacon: Address
    scores: Address
    rewards: Address
    faults: Address
    verdicts: Address
    requests: Address
    disputes: Address
    committee: Address


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """Chain, contracts, spec. `run` must follow from chain id, registry and nonce.

    Attributes:
        deploy_block: block of the first deployment; nothing of the run is older.
        nonce: tells apart several runs of one registry address on one chain id.
    """

    version: int
    run: Hash32
    chain_id: int
    nonce: int
    deploy_block: int
    contracts: ContractAddresses
    spec: RunSpec

    def __post_init__(self) -> None:
        if self.version != RUN_FILE_VERSION:
            raise Rejected(f"run file version {self.version} is not {RUN_FILE_VERSION}")
        expected = run_id(
            chain_id=self.chain_id, registry=self.contracts.registry, nonce=self.nonce
        )
        if self.run != expected:
            raise Rejected("run file: the run id does not follow from chain, registry and nonce")

    @property
    def domain(self) -> Domain:
        """The EIP-712 domain of everything that is signed in this run."""
        return Domain(chain_id=self.chain_id, registry=self.contracts.registry)

    def to_bytes(self) -> bytes:
        """Canonical JSON."""
        return canonical.dumps(record.to_json(self))

    @classmethod
    def from_bytes(cls, data: bytes) -> RunFile:
        """Strict inverse of `to_bytes` (a trailing newline is allowed); raises `Rejected`."""
        return record.from_json(cls, canonical.loads(data.rstrip(b"\n")))
