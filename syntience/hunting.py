"""What a hunter does by hand: show the evidence that its node found, prove evidence from a file, take back its bonds.

Nothing is put at stake for evidence that the contract would refuse. A command that was interrupted is simply called again: the
commitment follows from key and evidence, so that it finds what it did.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hunter import evidence_json
from hunter.cases import Case, CaseBook
from hunter.objections import objection_to
from ledger.contracts.evidence import Evidence, kind_of
from ledger.contracts.verdicts import Fault, Verdict, slash_bps_of
from ledger.transactions import Call
from node.journal import Journal
from protocol.errors import Rejected
from protocol.hashing import keccak256
from protocol.ids import Address, Hash32, Round, Units
from syntience.amounts import exact_tokens
from syntience.errors import HuntingRefused
from syntience.staking import Owner, finish_earlier

_MOST_BYTES = 1 << 24
_BLOCK_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What proving came to. `verdict` is the gravest of that miner and round, whoever proved it."""

    kind: Fault
    miner: Address
    round: Round
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Takings:
    """What a hunter got back: bonds that stood behind no challenge, bounties, and what gave way to graver verdicts."""

    bonds: Units
    bounties: Units
    credit: Units


def found_evidence(state_dir: Path, *, miner: Address, round_: Round, kind: Fault) -> Evidence:
    """The evidence that a hunter's node keeps in its journal.

    Raises:
        HuntingRefused: it keeps none, with what it has.
    """
    path = state_dir / "journal.db"
    if not path.is_file():
        raise HuntingRefused(
            f"there is no hunter's journal in {state_dir}",
            "give --state the folder that `syntience hunter run` keeps",
        )
    journal = Journal.open(path)
    try:
        cases = CaseBook(journal).all_cases()
    finally:
        journal.close()
    for case in cases:
        if (case.miner, case.round, case.kind) == (miner, round_, kind):
            return case.evidence
    raise HuntingRefused(
        f"the journal in {state_dir} has no evidence of {kind.slug} against {miner} in round {round_}",
        f"it has {_list(cases)}",
    )


def read_evidence(path: Path) -> Evidence:
    """Evidence from a file.

    Raises:
        HuntingRefused: it can't be read, or is none.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES)
    except OSError as error:
        raise HuntingRefused(
            f"can't read {path} ({error.strerror or error})", "check the path"
        ) from error
    try:
        return evidence_json.from_bytes(data.strip())
    except Rejected as error:
        raise HuntingRefused(
            f"{path} is no evidence ({error})",
            "make it with `syntience hunter evidence`; the format is in docs/protocol.md",
        ) from error


async def prove(owner: Owner, evidence: Evidence, tell: Callable[[str], None]) -> Proof:
    """Commits to the evidence with a bond, and proves it a block later.

    Args:
        tell: hears what is going on.

    Raises:
        HuntingRefused: the contract would refuse it, a graver fault is proven, or there is no bond; nothing was sent.
    """
    await finish_earlier(owner.outbox)
    contracts, accused = owner.contracts, evidence.accused.submission
    salt = _salt(owner, evidence)
    commitment = contracts.faults.commitment(owner.account, evidence, salt)
    if not await _is_committed(owner, commitment, tell):
        won = await _why_not(owner, evidence)
        if won is not None:
            return _proof(evidence, won)
        await _have_bond(owner)
        await _send(owner, contracts.faults.commit_challenge_call(commitment))
        tell("committed to the evidence, with a bond")
    await _next_block(owner, commitment)
    await _send(owner, contracts.faults.prove_call(evidence, salt))
    verdict = await contracts.verdicts.verdict_of(accused.miner, accused.round)
    assert verdict is not None, "it was proven"
    return _proof(evidence, verdict)


async def take_back(owner: Owner, proven: list[tuple[Address, Round]]) -> Takings:
    """Pays the sender everything that is its own by now: free bonds, credits, and the bounties of these offenders and rounds.

    Raises:
        HuntingRefused: one of the bounties can't be paid yet, or is not held.
    """
    await finish_earlier(owner.outbox)
    contracts, me = owner.contracts, owner.account
    bounties = 0
    for offender, round_ in proven:
        verdict = await contracts.verdicts.verdict_of(offender, round_)
        if verdict is None or verdict.hunter != me:
            raise HuntingRefused(
                f"no bounty is held for {me} against {offender} in round {round_}",
                "it was paid, or another hunter won it",
            )
        block = await contracts.epochs.run_block()
        if block <= verdict.payable_after:
            raise HuntingRefused(
                f"the bounty for {offender} in round {round_} can be paid after block {verdict.payable_after} "
                f"of the run's clock, now is {block}",
                "try again then; anyone may pay it out",
            )
        await _send(owner, contracts.verdicts.pay_bounty_call(offender, round_))
        bounties += verdict.bounty
    free, credit = await contracts.faults.free_bond(me), await contracts.verdicts.credit_of(me)
    if free:
        await _send(owner, contracts.faults.withdraw_bond_call(free))
    if credit:
        await _send(owner, contracts.verdicts.withdraw_credit_call())
    return Takings(bonds=free, bounties=Units(bounties), credit=credit)


def _proof(evidence: Evidence, verdict: Verdict) -> Proof:
    accused = evidence.accused.submission
    return Proof(kind=kind_of(evidence), miner=accused.miner, round=accused.round, verdict=verdict)


async def _is_committed(owner: Owner, commitment: Hash32, tell: Callable[[str], None]) -> bool:
    """Whether an earlier call committed to it and it can still be proven; one that is too old is cleared away."""
    faults = owner.contracts.faults
    block = await faults.challenge_block(owner.account, commitment)
    if block is None:
        return False
    last = block + owner.run_file.spec.chain.challenge_reveal_blocks
    if await owner.contracts.epochs.run_block() < last:
        return True
    await _send(owner, faults.expire_challenge_call(owner.account, commitment))
    tell("an earlier call came too late to prove it and lost its bond")
    return False


async def _why_not(owner: Owner, evidence: Evidence) -> Verdict | None:
    """Refuses what would put a bond at stake for nothing; returns the verdict if the sender has proven this already."""
    accused, kind = evidence.accused.submission, kind_of(evidence)
    before = await owner.contracts.verdicts.verdict_of(accused.miner, accused.round)
    if before is not None and _is_as_grave(owner, before.kind, kind):
        if (before.hunter, before.kind) == (owner.account, kind):
            return before
        raise HuntingRefused(
            f"a fault as grave of {accused.miner} in round {accused.round} is proven already: {before.kind.slug}",
            "there is no bounty for another one",
        )
    reason = await objection_to(evidence, owner.contracts, owner.run_file)
    if reason is not None:
        raise HuntingRefused(f"the contract would refuse it: {reason}", "nothing was sent")
    return None


def _salt(owner: Owner, evidence: Evidence) -> Hash32:
    """Secret and repeatable."""
    message = keccak256(
        b"syntience.challenge.salt.v2" + owner.contracts.faults.evidence_hash(evidence)
    )
    digest = owner.run_file.domain.digest(message)
    return Hash32(keccak256(owner.signer.sign_digest(digest)))


def _is_as_grave(owner: Owner, kind: Fault, as_this: Fault) -> bool:
    params = owner.run_file.spec.chain
    return slash_bps_of(kind, params) >= slash_bps_of(as_this, params)


async def _have_bond(owner: Owner) -> None:
    """Enough tokens and allowance for what the free bond lacks."""
    contracts, me = owner.contracts, owner.account
    bond, free = await contracts.faults.challenge_bond(), await contracts.faults.free_bond(me)
    missing = Units(max(0, bond - free))
    held = await contracts.token.balance_of(me)
    if held < missing:
        raise HuntingRefused(
            f"{me} holds {exact_tokens(held)} tokens and needs {exact_tokens(missing)} for the bond",
            f"send it some of {contracts.token.address}; the bond comes back with the proof",
        )
    if await contracts.token.allowance(me, contracts.faults.address) < missing:
        await _send(owner, contracts.token.approve_call(contracts.faults.address, missing))


async def _next_block(owner: Owner, commitment: Hash32) -> None:
    """Until the run's clock is past the block of the commitment."""
    committed = await owner.contracts.faults.challenge_block(owner.account, commitment)
    while (  # noqa: ASYNC110 - a chain raises no event
        committed is not None and await owner.contracts.epochs.run_block() <= committed
    ):
        await asyncio.sleep(_BLOCK_S)


async def _send(owner: Owner, call: Call) -> None:
    await owner.outbox.submit(call, f"{call.label}/{secrets.token_hex(8)}")


def _list(cases: list[Case]) -> str:
    if not cases:
        return "none at all"
    return "; ".join(f"{case.kind.slug} of {case.miner} in round {case.round}" for case in cases)
