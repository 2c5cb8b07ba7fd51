"""One typed wrapper per contract: views as async methods, transactions as pure builders of `Call`."""

from __future__ import annotations

from ledger.connection import Connection
from ledger.contracts.committee import Committee
from ledger.contracts.disputes import Disputes
from ledger.contracts.epochs import EpochManager
from ledger.contracts.faults import ObjectiveFaults
from ledger.contracts.registry import Registry
from ledger.contracts.requests import DataRequests
from ledger.contracts.rewards import RewardsDistributor
from ledger.contracts.scores import ScoreRegistry
from ledger.contracts.token import SynToken
from ledger.contracts.vault import StakeVault
from ledger.contracts.verdicts import Verdicts
from protocol.runfile import ContractAddresses


class Contracts:
    """The contracts of one run."""

    def __init__(self, connection: Connection, addresses: ContractAddresses) -> None:
        self.addresses = addresses
        self.token = SynToken(connection, addresses.token)
        self.registry = Registry(connection, addresses.registry)
        self.vault = StakeVault(connection, addresses.vault)
        self.epochs = EpochManager(connection, addresses.epochs)
        self.scores = ScoreRegistry(connection, addresses.scores)
        self.rewards = RewardsDistributor(connection, addresses.rewards)
        self.faults = ObjectiveFaults(connection, addresses.faults)
        self.disputes = Disputes(connection, addresses.disputes)
        self.committee = Committee(connection, addresses.committee)
        self.verdicts = Verdicts(connection, addresses.verdicts)
        self.requests = DataRequests(connection, addresses.requests)
