"""A miner's round without chain or network: what it starts from, what it hands in, and under which spec."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache

from ledger.keys import LocalSigner
from miner.cheats import behaviour_named
from miner.prefetch import Prefetch
from miner.work import Start, Work, Workbench
from protocol.assignment import assigned_samples
from protocol.ids import Address, Hash32, Round
from protocol.runfile import RUN_FILE_VERSION, ContractAddresses, RunFile
from protocol.spec import RunSpec
from protocol.submission import Publication, SignedSubmission, run_id
from tests.specs import some_hash
from tests.subnet.stepped import key_named, subnet_spec
from training.codec import Payload
from training.dataset import TokenDataset
from training.local_state import LocalState
from training.parameters import initial_parameters
from training.roots import state_root, zero_local_root
from training.threads import pin_threads

CHAIN_ID = 31337
RUN = run_id(chain_id=CHAIN_ID, registry=key_named("registry").address, nonce=0)
BEACON = some_hash("assignment beacon")
ROUND = Round(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Everything that a run fixes, over one data set."""

    dataset: TokenDataset
    spec: RunSpec
    run_file: RunFile

    def bench(self, miner: Address) -> Workbench:
        return Workbench(
            run=RUN,
            spec=self.spec,
            spec_hash=self.spec.hash(),
            miner=miner,
            dataset=self.dataset,
            prefetch=Prefetch(self.dataset),
        )

    def start(self, miner: Address, *, others: tuple[Payload, ...] = ()) -> Start:
        """Where the first round begins for a miner."""
        params = initial_parameters(self.spec.model)
        return Start(
            round=ROUND,
            beacon=BEACON,
            params=params,
            initial_root=state_root(params),
            local=LocalState.zeros(self.spec.model),
            local_from=Round(0),
            local_root=zero_local_root(self.spec.model),
            assigned=self.assigned(miner),
            others=others,
        )

    def assigned(self, miner: Address) -> tuple[int, ...]:
        return assigned_samples(
            run=RUN,
            round_=ROUND,
            beacon=BEACON,
            miner=miner,
            count=self.spec.chain.samples_per_round,
            train_samples=self.spec.data.train_samples,
        )

    def work(self, kind: str, miner: Address, **start: object) -> Sequence[Work]:
        """What a miner of this kind hands in."""
        begun = replace(self.start(miner), **start)  # type: ignore[arg-type]  # fields of any type, by name
        return behaviour_named(kind).work(self.bench(miner), begun)

    def publish(self, work: Work, key: LocalSigner, **changes: object) -> Publication:
        """The work signed by a key, with fields of the submission changed before."""
        submission = replace(work.submission, **changes)  # type: ignore[arg-type]  # fields of any type, by name
        signature = key.sign_digest(submission.digest(self.run_file.domain))
        signed = SignedSubmission(submission=submission, signature=signature)
        return Publication(signed=signed, blobs=work.refs())

    def digest(self, publication: Publication) -> Hash32:
        return publication.signed.submission.digest(self.run_file.domain)


@lru_cache(maxsize=1)
def desk_over(dataset: TokenDataset) -> Desk:
    """The desk of a data set. Computes with one thread from then on, as every role does."""
    pin_threads(1)
    spec = subnet_spec(dataset)
    names = [item.name for item in fields(ContractAddresses)]
    run_file = RunFile(
        version=RUN_FILE_VERSION,
        run=RUN,
        chain_id=CHAIN_ID,
        nonce=0,
        deploy_block=1,
        contracts=ContractAddresses(**{name: key_named(name).address for name in names}),
        spec=spec,
    )
    return Desk(dataset=dataset, spec=spec, run_file=run_file)
