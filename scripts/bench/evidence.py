"""What it costs to prove a fault: the hunter's commit, and the revealing transaction with the slash in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from ledger.abi import AbiValue, contract_abi, encode
from protocol.assignment import assigned_sample
from protocol.hashing import abi_words, keccak256
from protocol.ids import Address, Hash32, Round, Slot, Units
from protocol.merkle import MerkleTree, leaf_hash
from protocol.submission import SignedSubmission
from scripts.bench.figures import Figure
from scripts.bench.stage import Stage, account_named, hash_named
from scripts.bench.subnet import DATASET, SALT, SPENDERS, TOKEN, Person, Subnet

_JUDGE = "ObjectiveFaults"
_GOAL = 200_000
_PER_BALLOT = 8_000
_BYTE_GAS = 16
_ANCHORS = {"Graph, in one": 287_001, "OP Succinct, in one": 448_465}
_KEPT = 64
_BITS = 2
"""Of a code; as the run's spec says."""
_INDEX = 3
"""Of the sample that is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A proving function of the judge and its arguments after the salt; `ballots`: how many bitmaps it opens."""

    function: str
    arguments: tuple[AbiValue, ...]
    ballots: int = 0

    def evidence_hash(self) -> bytes:
        """What the hunter commits to."""
        types = [item.type for item in contract_abi(_JUDGE).function(self.function).inputs[1:]]
        return keccak256(encode(types, self.arguments))


@dataclass(slots=True, kw_only=True)
class Crimes:
    """Miners that commit faults in three rounds, one kind each. `said` holds what they signed and committed."""

    subnet: Subnet
    first: Round
    cast: Mapping[str, Person]
    said: dict[tuple[str, Round], SignedSubmission] = field(default_factory=dict)

    def commit(self, round_: Round, beacon: Hash32) -> Mapping[Slot, Hash32]:
        """The digests of a round (`Subnet.script`)."""
        digests = {}
        for name, miner in self.cast.items():
            changes = self._changes(name, round_)
            signed = self.subnet.submission(miner, round_, beacon, **changes)
            self.said[name, round_] = signed
            domain = self.subnet.stage.run_file.domain
            digests[miner.slot] = signed.submission.digest(domain)
        return digests

    def _changes(self, name: str, round_: Round) -> dict[str, object]:
        if name == "spec":
            return {"spec_hash": hash_named("another spec")}
        if name == "data":
            return {"data_root": _own_data(self.subnet).root}
        if name == "chunk":
            return {"payload_root": _payload().root}
        if name == "state" and round_ > self.first:
            return {"local_from_round": Round(round_ - 1), "local_in": hash_named("another state")}
        if name.startswith("skip") and round_ == self.first + 2:
            return {"local_from_round": self.first, "local_in": hash_named("made up")}
        return {}

    def equivocation(self, name: str) -> Proof:
        """A second submission for the first round."""
        signed = self.said[name, self.first]
        other = self.subnet.submission(
            self.cast[name], self.first, signed.submission.beacon, payload_bytes=1
        )
        return Proof(function="proveEquivocation", arguments=(*pair(signed), *pair(other)))

    def spec(self) -> Proof:
        """A spec that nobody registered."""
        return Proof(function="proveWrongSpec", arguments=pair(self.said["spec", self.first]))

    def data(self) -> Proof:
        """A leaf of its own instead of the assigned one."""
        signed, tree = self.said["data", self.first], _own_data(self.subnet)
        run_file = self.subnet.stage.run_file
        sample = assigned_sample(
            run=run_file.run,
            round_=self.first,
            beacon=signed.submission.beacon,
            miner=signed.submission.miner,
            index=_INDEX,
            train_samples=run_file.spec.chain.train_samples,
        )
        shown = (_INDEX, tree.leaves[_INDEX], tree.proof(_INDEX))
        true = (DATASET.leaves[sample], DATASET.proof(sample))
        return Proof(function="proveWrongData", arguments=(*pair(signed), *shown, *true))

    def chunk(self) -> Proof:
        """A chunk whose indices don't ascend."""
        tree = _payload()
        arguments = (
            *pair(self.said["chunk", self.first]),
            _INDEX,
            _bad_chunk(),
            tree.proof(_INDEX),
        )
        return Proof(function="proveBadEncoding", arguments=arguments)

    def state(self) -> Proof:
        """Another local state than came out of the round before."""
        before = self.said["state", self.first]
        after = self.said["state", Round(self.first + 1)]
        return Proof(function="proveLocalState", arguments=(*pair(after), *pair(before), ()))

    def skip(self, name: str, *, ballots: int) -> Proof:
        """The state of two rounds before, though the round between was accepted, as the ballots show."""
        between = self.said[name, Round(self.first + 1)]
        after = self.said[name, Round(self.first + 2)]
        opened = self.subnet.ballots(Round(self.first + 1))[:ballots]
        arguments = (*pair(after), *pair(between), opened)
        return Proof(function="proveLocalState", arguments=arguments, ballots=ballots)


async def hire(subnet: Subnet, name: str) -> Address:
    """A hunter that holds tokens."""
    hunter = account_named(name)
    await subnet.stage.enrich([hunter])
    await subnet.fund([hunter], Units(10**5 * TOKEN), SPENDERS)
    return hunter


async def commit(stage: Stage, contract: str, hunter: Address, evidence_hash: bytes) -> int:
    """Commits a hunter to a piece of evidence and mines the block that it has to wait; what the commit cost."""
    commitment = keccak256(abi_words(hunter, evidence_hash, SALT))
    gas = await stage.gas(hunter, f"{contract}.commitChallenge", commitment)
    await stage.mine(1)
    return gas


async def prove(stage: Stage, hunter: Address, proof: Proof) -> tuple[int, int]:
    """Gas of the commit and of the reveal."""
    committed = await commit(stage, _JUDGE, hunter, proof.evidence_hash())
    proven = await stage.gas(hunter, f"{_JUDGE}.{proof.function}", SALT, *proof.arguments)
    return committed, proven


async def crimes(subnet: Subnet, names: list[str]) -> Crimes:
    """Plays two epochs in which the first miners commit faults."""
    clock = subnet.stage.clock
    cast = dict(zip(names, subnet.seated, strict=False))
    done = Crimes(subnet=subnet, first=clock.first_round(subnet.epoch), cast=cast)
    subnet.script = done.commit
    await subnet.play_epoch()
    await subnet.play_epoch()
    subnet.script = None
    return done


async def objective_faults(subnet: Subnet) -> list[Figure]:
    """Every kind of fault, each by another miner, after one that only warms the hunter's accounts up."""
    stage, hunter = subnet.stage, await hire(subnet, "fault hunter")
    done = await crimes(subnet, ["warm", "twice", "spec", "data", "chunk", "state", "skip"])
    await prove(stage, hunter, done.equivocation("warm"))
    everybody = len(subnet.validators)
    proofs = {
        "an equivocation": done.equivocation("twice"),
        "a wrong spec": done.spec(),
        "wrong data": done.data(),
        "a bad encoding": done.chunk(),
        "a wrong local state": done.state(),
        f"a skipped local state, {everybody} bitmaps": done.skip("skip", ballots=everybody),
    }
    costs = {name: await prove(stage, hunter, proof) for name, proof in proofs.items()}
    for miner in done.cast.values():
        subnet.leaves(miner)
    worst_commit = max(committed for committed, _ in costs.values())
    return [
        Figure(name="commit a challenge", value=worst_commit, goal=60_000, anchors=_ANCHORS),
        *(
            Figure(
                name=f"prove {name}",
                value=proven,
                goal=_GOAL + proofs[name].ballots * _PER_BALLOT,
            )
            for name, (_, proven) in costs.items()
        ),
    ]


async def a_bitmap(subnet: Subnet) -> Figure:
    """What one more opened bitmap costs: the same fault of two miners, one proven with a ballot less.

    The goal is that of a bitmap of a few hundred miners: the 512 bytes of 4096 cost 8,192 gas as calldata alone.
    """
    stage, hunter = subnet.stage, await hire(subnet, "bitmap hunter")
    await subnet.play_epoch()
    done = await crimes(subnet, ["skip warm", "skip less", "skip more"])
    everybody = len(subnet.validators)
    await prove(stage, hunter, done.skip("skip warm", ballots=everybody))
    _, less = await prove(stage, hunter, done.skip("skip less", ballots=everybody - 1))
    _, more = await prove(stage, hunter, done.skip("skip more", ballots=everybody))
    name = f"a bitmap more in a proof, {len(subnet.seated)} miners"
    for miner in done.cast.values():
        subnet.leaves(miner)
    goal = _PER_BALLOT if len(subnet.bitmap()) < _PER_BALLOT // _BYTE_GAS else None
    return Figure(name=name, value=more - less, goal=goal)


def pair(signed: SignedSubmission) -> tuple[AbiValue, AbiValue]:
    """A submission as the contracts' struct, and its signature."""
    submission = signed.submission
    return tuple(getattr(submission, item.name) for item in fields(submission)), signed.signature


def _own_data(subnet: Subnet) -> MerkleTree:
    samples = subnet.stage.run_file.spec.chain.samples_per_round
    return MerkleTree([hash_named(f"own sample {number}") for number in range(samples)])


def _bad_chunk() -> bytes:
    """64 times index 5, code 0, scale 1.0, ratio 0."""
    indices = sum(5 << 12 * place for place in range(_KEPT)).to_bytes(12 * _KEPT // 8, "little")
    return indices + bytes(_BITS * _KEPT // 8) + bytes.fromhex("0000803f") + bytes(1)


def _payload() -> MerkleTree:
    """4096 chunks, one of them bad."""
    leaves = [hash_named(f"chunk {number}") for number in range(4096)]
    leaves[_INDEX] = leaf_hash(_bad_chunk())
    return MerkleTree(leaves)
