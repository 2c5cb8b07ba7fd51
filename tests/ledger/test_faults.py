"""Every kind of evidence against the real contracts: each fault is proven end to end, and what would be refused is known before."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import pytest_asyncio

from hunter.evidence import bad_encoding, wrong_spec
from hunter.local_state import PastRound, local_state
from hunter.objections import objection_to
from ledger.contracts.epochs import Ballot
from ledger.contracts.evidence import (
    BadEncodingEvidence,
    EquivocationEvidence,
    Evidence,
    LocalStateEvidence,
    WrongDataEvidence,
    WrongSpecEvidence,
    kind_of,
)
from ledger.contracts.registry import Role
from ledger.contracts.verdicts import Fault
from ledger.errors import Reverted
from ledger.event_types import BondWithdrawn, ChallengeExpired, Convicted, FaultProven
from protocol.assignment import assigned_sample
from protocol.beacon import Purpose
from protocol.ids import Hash32, Round, Slot, Units
from protocol.merkle import MerkleTree, leaf_hash
from protocol.submission import SignedSubmission
from scoring.acceptance import Attestation
from tests.chain import Anvil
from tests.ledger.world import Member, World, deployed
from tests.specs import SPEC, some_hash, tokens
from tests.training.vectors import cases_of, leaf_of

SAMPLES = [some_hash(f"sample {number}") for number in range(120)]
DATASET = MerkleTree(SAMPLES)
SALT = Hash32(b"\x09" * 32)
STAKES = [tokens(1_000), tokens(1_000), tokens(2_000)]
ROOT, OTHER_ROOT = SPEC.chain.genesis_root, some_hash("another root")


@dataclass(kw_only=True)
class Court:
    """A run with a miner and three validators of stakes 1, 1 and 2, and a hunter with tokens for two bonds."""

    world: World
    miner: Member
    validators: Sequence[Member]
    past: dict[Round, PastRound] = field(default_factory=dict)

    @property
    def hunter(self) -> Member:
        return self.validators[0]

    def local_out(self, round_: Round) -> Hash32:
        return some_hash(f"local {round_}")

    async def hand_in(self, round_: Round, **changes: object) -> SignedSubmission:
        """Commits a submission of the miner for a round, under its canonical beacon."""
        world = self.world
        beacon = await world.draw(round_, Purpose.ASSIGNMENT)
        changes = {"initial_root": ROOT, "local_out": self.local_out(round_), **changes}
        signed = world.submission(self.miner, round_, beacon, **changes)
        world.to(world.clock.put_opens(round_))
        digest = signed.submission.digest(world.run_file.domain)
        await world.act(self.miner.operator, world.contracts.epochs.commit_call(round_, digest))
        return signed

    async def play(
        self, round_: int, carry: int = 0, *, bits: str = "111", roots: str = "111", **more: object
    ) -> SignedSubmission:
        """A whole round: each validator attests with the miner's bit and the root that a 1 stands for; a dash stays away."""
        number, world = Round(round_), self.world
        if carry:
            more = {"local_in": self.local_out(Round(carry)), **more}
        signed = await self.hand_in(number, local_from_round=Round(carry), **more)
        world.to(world.clock.publish_deadline(number) + 1)
        votes = []
        for place, (bit, root) in enumerate(zip(bits, roots, strict=True)):
            if bit == "-":
                continue
            voter = self.validators[place]
            bitmap = b"\x01" if bit == "1" else b""
            voted = ROOT if root == "1" else OTHER_ROOT
            call = world.contracts.epochs.attest_call(number, voted, bitmap)
            await world.act(voter.operator, call)
            votes.append(
                Attestation(
                    validator=voter.account,
                    slot=voter.slot,
                    stake=STAKES[place],
                    root=voted,
                    bitmap=bitmap,
                )
            )
        world.to(world.clock.attest_deadline(number) + 1)
        self.past[number] = PastRound(
            beacon=signed.submission.beacon,
            slot=self.miner.slot,
            committed=signed,
            votes=votes,
            total_stake=Units(sum(STAKES)),
        )
        return signed

    async def objection(self, evidence: Evidence) -> str | None:
        return await objection_to(evidence, self.world.contracts, self.world.run_file)

    async def commit(self, evidence: Evidence) -> None:
        world, faults = self.world, self.world.contracts.faults
        commitment = faults.commitment(self.hunter.account, evidence, SALT)
        await world.act(self.hunter.owner, faults.commit_challenge_call(commitment))
        world.anvil.mine()

    async def convict(self, evidence: Evidence) -> None:
        """The evidence is sound, it is proven, and the bond is free again."""
        world, faults = self.world, self.world.contracts.faults
        accused = evidence.accused.submission
        assert await self.objection(evidence) is None
        await self.commit(evidence)
        await world.act(self.hunter.owner, faults.prove_call(evidence, SALT))
        await world.reader.poll()
        proven = world.reader.events(FaultProven, round_=accused.round)
        assert [(each.miner, each.kind) for each in proven] == [(accused.miner, kind_of(evidence))]
        verdict = await world.contracts.verdicts.verdict_of(accused.miner, accused.round)
        assert verdict is not None
        assert verdict.hunter == self.hunter.account
        [convicted] = world.reader.events(Convicted, round_=accused.round)
        assert convicted.bounty == verdict.bounty > 0
        bond = world.run_file.spec.chain.challenge_bond
        assert await faults.free_bond(self.hunter.account) == bond == await faults.challenge_bond()

    async def refuse(self, evidence: Evidence) -> str:
        """The evidence is objected to, and refused by the contract; returns the name of its error."""
        assert await self.objection(evidence) is not None
        await self.commit(evidence)
        call = self.world.contracts.faults.prove_call(evidence, SALT)
        with pytest.raises(Reverted) as refused:
            await self.world.act(self.hunter.owner, call)
        return refused.value.name


@pytest_asyncio.fixture
async def court(own_anvil: Anvil, tmp_path: Path) -> AsyncIterator[Court]:
    params = replace(SPEC.chain, dataset_root=DATASET.root, min_validator_stake=tokens(1_000))
    async with deployed(own_anvil, tmp_path, params=params) as world:
        validators = [await world.join(Role.VALIDATOR, stake) for stake in STAKES]
        miner = await world.join(Role.MINER, tokens(200))
        yield Court(world=world, miner=miner, validators=validators)


# -- the bytes -------------------------------------------------------------------------------------


async def test_commitment__any_evidence__is_what_the_contract_computes(court: Court) -> None:
    """Refused for want of a challenge, the contract names the one that it looked for."""
    faults = court.world.contracts.faults
    chance = random.Random(5)

    def hash_() -> Hash32:
        return Hash32(chance.randbytes(32))

    def hashes() -> tuple[Hash32, ...]:
        return tuple(hash_() for _ in range(chance.randrange(5)))

    def signed() -> SignedSubmission:
        return court.world.submission(
            court.miner,
            Round(chance.randrange(1 << 64)),
            hash_(),
            local_from_round=Round(chance.randrange(1 << 64)),
            local_in=hash_(),
            payload_bytes=chance.randrange(1 << 64),
            steps=chance.randrange(1 << 32),
        )

    def ballot() -> Ballot:
        slot = Slot(chance.randrange(1 << 32))
        return Ballot(slot=slot, root=hash_(), bitmap=chance.randbytes(chance.randrange(70)))

    for turn in range(6):
        some: list[Evidence] = [
            EquivocationEvidence(first=signed(), second=signed()),
            WrongSpecEvidence(signed=signed()),
            WrongDataEvidence(
                signed=signed(),
                index=chance.randrange(1 << 32),
                claimed_leaf=hash_(),
                claimed_proof=hashes(),
                true_leaf=hash_(),
                true_proof=hashes(),
            ),
            LocalStateEvidence(
                signed=signed(),
                other=signed() if turn % 2 else None,
                ballots=tuple(ballot() for _ in range(turn)),
            ),
            BadEncodingEvidence(
                signed=signed(),
                chunk=chance.randrange(1 << 256),
                leaf=chance.randbytes(chance.randrange(200)),
                proof=hashes(),
            ),
        ]
        for evidence in some:
            salt = hash_()
            with pytest.raises(Reverted) as refused:
                await court.world.act(court.hunter.owner, faults.prove_call(evidence, salt))
            assert refused.value.name == "NotChallenged"
            assert refused.value.arguments == {
                "hunter": court.hunter.account,
                "commitment": faults.commitment(court.hunter.account, evidence, salt),
            }


# -- each fault ------------------------------------------------------------------------------------


async def test_equivocation__two_signed__is_proven(court: Court) -> None:
    first = await court.hand_in(Round(1))
    second = court.world.submission(court.miner, Round(1), first.submission.beacon, steps=1)
    await court.convict(EquivocationEvidence(first=first, second=second))
    assert await court.world.contracts.vault.active_of(court.miner.account) == tokens(160)


async def test_equivocation__unsound__is_objected_to_and_refused(court: Court) -> None:
    first = await court.hand_in(Round(1))
    other = court.world.submission(court.miner, Round(2), first.submission.beacon)
    assert await court.refuse(EquivocationEvidence(first=first, second=first)) == "SameSubmission"
    assert (
        await court.refuse(EquivocationEvidence(first=first, second=other))
        == "DifferentSubmissions"
    )


async def test_wrong_data__a_chosen_sample__is_proven(court: Court) -> None:
    params = court.world.run_file.spec.chain
    claimed = MerkleTree([some_hash(f"own {i}") for i in range(params.samples_per_round)])
    signed = await court.hand_in(Round(1), data_root=claimed.root)
    sample = assigned_sample(
        run=court.world.run_file.run,
        round_=Round(1),
        beacon=signed.submission.beacon,
        miner=court.miner.account,
        index=3,
        train_samples=params.train_samples,
    )
    sound = WrongDataEvidence(
        signed=signed,
        index=3,
        claimed_leaf=some_hash("own 3"),
        claimed_proof=tuple(claimed.proof(3)),
        true_leaf=SAMPLES[sample],
        true_proof=tuple(DATASET.proof(sample)),
    )
    far = replace(sound, index=params.samples_per_round)
    assert await court.refuse(far) == "NoSuchSample"
    assert await court.refuse(replace(sound, true_leaf=sound.claimed_leaf)) == "DataMatches"
    assert await court.refuse(replace(sound, claimed_leaf=some_hash("own 4"))) == "InvalidProof"
    assert await court.refuse(replace(sound, true_proof=sound.true_proof[1:])) == "InvalidProof"
    await court.convict(sound)
    assert await court.world.contracts.vault.active_of(court.miner.account) == tokens(100)


async def test_wrong_spec__another_hash__is_proven(court: Court) -> None:
    signed = await court.hand_in(Round(1), spec_hash=some_hash("another spec"))
    evidence = wrong_spec(signed, court.world.run_file.spec.hash())
    assert evidence is not None
    await court.convict(evidence)
    assert await court.world.contracts.vault.active_of(court.miner.account) == tokens(160)


async def test_wrong_spec__unsound__is_objected_to_and_refused(court: Court) -> None:
    signed = await court.hand_in(Round(1))
    beacon = signed.submission.beacon
    assert await court.refuse(WrongSpecEvidence(signed=signed)) == "SpecMatches"
    other = court.world.submission(court.miner, Round(1), beacon, spec_hash=some_hash("another"))
    assert await court.refuse(WrongSpecEvidence(signed=other)) == "NotCommitted"
    foreign = court.world.submission(court.validators[0], Round(1), beacon)
    stranger = SignedSubmission(
        submission=replace(foreign.submission, miner=court.miner.account),
        signature=foreign.signature,
    )
    assert await court.refuse(WrongSpecEvidence(signed=stranger)) == "NotSigned"


async def test_bad_encoding__a_chunk_out_of_order__is_proven(court: Court) -> None:
    leaves = [leaf_of([3, 9, 20], [0, 1, 2], 0x3F800000) for _ in range(5)]
    leaves[2] = next(leaf for name, leaf, _ in cases_of(2, 3) if name == "duplicate index")
    tree = MerkleTree([leaf_hash(leaf) for leaf in leaves])
    signed = await court.hand_in(Round(1), payload_root=tree.root)
    evidence = bad_encoding(signed, leaves, court.world.run_file.spec.codec)
    assert evidence is not None
    good = replace(evidence, chunk=0, leaf=leaves[0], proof=tree.proof(0))
    assert await court.refuse(good) == "ChunkIsCanonical"
    assert await court.refuse(replace(evidence, chunk=3)) == "InvalidProof"
    await court.convict(evidence)
    assert await court.world.contracts.vault.active_of(court.miner.account) == tokens(100)


# -- local states out of line ----------------------------------------------------------------------


async def test_local_state__not_what_came_out__is_proven_without_ballots(court: Court) -> None:
    await court.play(1)
    signed = await court.hand_in(Round(2), local_from_round=Round(1), local_in=some_hash("made up"))
    evidence = local_state(signed, court.past)
    assert evidence is not None
    assert evidence.ballots == ()
    assert evidence.other == court.past[Round(1)].committed
    await court.convict(evidence)
    assert await court.world.contracts.vault.active_of(court.miner.account) == tokens(100)


@pytest.mark.parametrize(
    ("bits", "roots", "shown", "opened"),
    [
        ("110", "111", False, [2]),
        ("000", "111", False, [2]),
        ("111", "110", True, [2]),
        ("---", "111", False, []),
        ("11-", "111", False, []),
    ],
)
async def test_local_state__carried_from_what_was_not_accepted__is_proven(
    court: Court, bits: str, roots: str, shown: bool, opened: list[int]
) -> None:
    await court.play(1, bits=bits, roots=roots)
    signed = await court.hand_in(
        Round(2), local_from_round=Round(1), local_in=court.local_out(Round(1))
    )
    evidence = local_state(signed, court.past)
    assert evidence is not None
    assert (evidence.other is not None) == shown
    assert [ballot.slot for ballot in evidence.ballots] == opened
    if opened:
        assert await court.refuse(replace(evidence, ballots=())) == "MayBeAccepted"
    await court.convict(evidence)


async def test_local_state__later_one_accepted__is_proven(court: Court) -> None:
    await court.play(1)
    await court.play(2, 1, bits="101")
    signed = await court.play(3, 1)
    evidence = local_state(signed, court.past)
    assert evidence is not None
    assert evidence.other == court.past[Round(2)].committed
    assert [ballot.slot for ballot in evidence.ballots] == [0, 2]
    await court.convict(evidence)


async def test_local_state__few_ballots__are_enough_for_the_contract(court: Court) -> None:
    await court.play(1, bits="010")
    signed = await court.play(2, 1)
    evidence = local_state(signed, court.past)
    assert evidence is not None
    assert [ballot.slot for ballot in evidence.ballots] == [2]
    await court.convict(evidence)


async def test_local_state__in_line__is_objected_to_and_refused(court: Court) -> None:
    first = await court.play(1)
    second = await court.play(2, 1)
    third = await court.play(3, 2)
    for signed in (first, second, third):
        assert local_state(signed, court.past) is None
    [*ballots] = [
        Ballot(slot=vote.slot, root=vote.root, bitmap=vote.bitmap)
        for vote in court.past[Round(1)].votes
    ]
    honest = LocalStateEvidence(signed=second, other=first, ballots=tuple(ballots))
    assert await court.refuse(honest) == "MayBeAccepted"
    assert await court.refuse(replace(honest, signed=first, other=None)) == "NothingCarried"
    misfit = replace(honest, ballots=(replace(ballots[0], bitmap=b""),))
    assert await court.refuse(misfit) == "BallotMismatch"


# -- bonds -----------------------------------------------------------------------------------------


async def test_bonds__proven_and_expired__come_back_or_burn(court: Court) -> None:
    world, faults, token = court.world, court.world.contracts.faults, court.world.contracts.token
    params, hunter = world.run_file.spec.chain, court.hunter
    signed = await court.hand_in(Round(1), spec_hash=some_hash("another spec"))
    evidence = WrongSpecEvidence(signed=signed)
    before = await token.balance_of(hunter.account)
    await court.convict(evidence)
    assert await token.balance_of(hunter.account) == before - params.challenge_bond
    too_much = faults.withdraw_bond_call(Units(params.challenge_bond + 1))
    with pytest.raises(Reverted) as refused:
        await world.act(hunter.owner, too_much)
    assert refused.value.name == "InsufficientBond"
    await world.act(hunter.owner, faults.withdraw_bond_call(params.challenge_bond))
    assert await token.balance_of(hunter.account) == before
    await court.commit(evidence)
    commitment = faults.commitment(hunter.account, evidence, SALT)
    assert await faults.challenge_block(hunter.account, commitment) is not None
    world.anvil.mine(params.challenge_reveal_blocks)
    await world.act(world.deployer, faults.expire_challenge_call(hunter.account, commitment))
    assert await faults.challenge_block(hunter.account, commitment) is None
    assert await faults.bonds_held() == 0
    await world.reader.poll()
    assert [each.amount for each in world.reader.events(BondWithdrawn)] == [params.challenge_bond]
    assert [each.bond for each in world.reader.events(ChallengeExpired)] == [params.challenge_bond]
    world.anvil.mine(params.challenge_reveal_blocks)
    verdict = await world.contracts.verdicts.verdict_of(court.miner.account, Round(1))
    assert verdict is not None
    assert verdict.kind is Fault.WRONG_SPEC
    call = world.contracts.verdicts.pay_bounty_call(court.miner.account, Round(1))
    held = await token.balance_of(hunter.account)
    await world.act(world.deployer, call)
    assert await token.balance_of(hunter.account) == held + verdict.bounty
