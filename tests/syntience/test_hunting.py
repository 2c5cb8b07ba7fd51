"""Showing evidence, proving it by hand and taking back what is one's own, on a real run; what would be lost is refused before."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from hunter import evidence_json
from hunter.cases import CaseBook
from ledger.contracts.evidence import EquivocationEvidence, WrongSpecEvidence
from ledger.contracts.registry import Role
from ledger.contracts.verdicts import Fault, slash_bps_of
from ledger.event_types import ChallengeCommitted, ChallengeExpired
from ledger.keys import SCRYPT_COST_MINIMUM, LocalSigner, create_key_file, new_private_key
from ledger.runs import write_run_file
from node.journal import Journal
from protocol.beacon import Purpose
from protocol.ids import Round, Units
from syntience.cli.app import EXIT_OPERATOR, run
from syntience.errors import HuntingRefused
from syntience.hunting import found_evidence, prove, read_evidence, take_back
from syntience.staking import Owner
from tests.chain import Anvil
from tests.ledger.world import Member, World, deployed
from tests.specs import some_hash, tokens
from tests.syntience.town import PASSWORD

ROUND = Round(1)


@dataclass(kw_only=True)
class Scene:
    """A run in which a miner committed under another spec, and somebody with a key and two bonds."""

    world: World
    miner: Member
    evidence: WrongSpecEvidence
    key: LocalSigner
    told: list[str] = field(default_factory=list)

    @property
    def owner(self) -> Owner:
        return Owner(
            connection=self.world.connection,
            contracts=self.world.contracts,
            run_file=self.world.run_file,
            outbox=self.world.boxes[self.key.address],
            signer=self.key,
        )

    async def balance(self) -> Units:
        return await self.world.contracts.token.balance_of(self.key.address)

    @contextmanager
    def mining(self) -> Iterator[None]:
        """A block now and then, as on any chain."""

        async def mine() -> None:
            while True:
                await asyncio.sleep(0.3)
                self.world.anvil.mine()

        task = asyncio.get_running_loop().create_task(mine())
        try:
            yield
        finally:
            task.cancel()


@pytest.fixture
async def scene(own_anvil: Anvil, tmp_path: Path) -> AsyncIterator[Scene]:
    async with prepared(own_anvil, tmp_path) as made:
        yield made


@asynccontextmanager
async def prepared(anvil: Anvil, folder: Path) -> AsyncIterator[Scene]:
    async with deployed(anvil, folder) as world:
        miner = await world.join(Role.MINER, tokens(200))
        await world.join(Role.VALIDATOR, tokens(2000))
        beacon = await world.draw(ROUND, Purpose.ASSIGNMENT)
        signed = world.submission(miner, ROUND, beacon, spec_hash=some_hash("another spec"))
        world.to(world.clock.put_opens(ROUND))
        digest = signed.submission.digest(world.run_file.domain)
        await world.act(miner.operator, world.contracts.epochs.commit_call(ROUND, digest))
        key = anvil.key()
        await world.outbox(key)
        bond = world.run_file.spec.chain.challenge_bond
        call = world.contracts.token.transfer_call(key.address, Units(2 * bond))
        await world.act(world.deployer, call)
        yield Scene(world=world, miner=miner, evidence=WrongSpecEvidence(signed=signed), key=key)


async def test_prove__sound_evidence__convicts_and_pays_and_gives_back_the_bond(
    scene: Scene,
) -> None:
    chain, before = scene.world.run_file.spec.chain, await scene.balance()
    with scene.mining():
        proof = await prove(scene.owner, scene.evidence, scene.told.append)
    assert (proof.kind, proof.miner, proof.round) == (
        Fault.WRONG_SPEC,
        scene.miner.account,
        ROUND,
    )
    assert proof.verdict.hunter == scene.key.address
    assert scene.told == ["committed to the evidence, with a bond"]
    assert await scene.balance() == before - chain.challenge_bond
    place = (scene.miner.account, ROUND)
    with pytest.raises(HuntingRefused, match="can be paid after block"):
        await take_back(scene.owner, [place])
    scene.world.anvil.mine(chain.challenge_reveal_blocks)
    takings = await take_back(scene.owner, [place])
    assert (takings.bonds, takings.credit) == (chain.challenge_bond, 0)
    assert takings.bounties == proof.verdict.bounty > 0
    assert await scene.balance() == before + takings.bounties
    with pytest.raises(HuntingRefused, match="no bounty is held"):
        await take_back(scene.owner, [place])


async def test_prove__called_again__sends_nothing_more(scene: Scene) -> None:
    with scene.mining():
        first = await prove(scene.owner, scene.evidence, scene.told.append)
        again = await prove(scene.owner, scene.evidence, scene.told.append)
    assert again == first
    assert len((await scene.world.reader.poll()).events) > 0
    assert len(scene.world.reader.events(ChallengeCommitted)) == 1


async def test_prove__interrupted_after_its_commitment__goes_on_with_it(scene: Scene) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(6):
            await prove(scene.owner, scene.evidence, scene.told.append)
    assert scene.told == ["committed to the evidence, with a bond"]
    with scene.mining():
        proof = await prove(scene.owner, scene.evidence, scene.told.append)
    assert proof.verdict.kind is Fault.WRONG_SPEC
    assert len(scene.told) == 1


async def test_prove__interrupted_for_too_long__clears_it_away_and_starts_anew(
    scene: Scene,
) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(6):
            await prove(scene.owner, scene.evidence, scene.told.append)
    scene.world.anvil.mine(scene.world.run_file.spec.chain.challenge_reveal_blocks)
    with scene.mining():
        await prove(scene.owner, scene.evidence, scene.told.append)
    assert "lost its bond" in scene.told[1]
    await scene.world.reader.poll()
    assert len(scene.world.reader.events(ChallengeExpired)) == 1
    assert len(scene.world.reader.events(ChallengeCommitted)) == 2


async def test_prove__what_the_contract_would_refuse__puts_nothing_at_stake(scene: Scene) -> None:
    signed = scene.evidence.signed
    with pytest.raises(HuntingRefused, match="both submissions are the same"):
        await prove(
            scene.owner, EquivocationEvidence(first=signed, second=signed), scene.told.append
        )
    other = replace(signed, submission=replace(signed.submission, run=some_hash("another run")))
    with pytest.raises(HuntingRefused, match="not about this one"):
        await prove(scene.owner, WrongSpecEvidence(signed=other), scene.told.append)
    await scene.world.reader.poll()
    assert scene.world.reader.events(ChallengeCommitted) == []


async def test_prove__no_tokens_for_the_bond__says_so(scene: Scene) -> None:
    key = scene.world.anvil.key()
    await scene.world.outbox(key)
    poor = replace(scene, key=key)
    with pytest.raises(HuntingRefused, match="for the bond"):
        await prove(poor.owner, scene.evidence, scene.told.append)


async def test_prove__another_hunter_was_first__is_refused(scene: Scene) -> None:
    other = scene.world.anvil.key()
    await scene.world.outbox(other)
    call = scene.world.contracts.token.transfer_call(other.address, tokens(10))
    await scene.world.act(scene.world.deployer, call)
    with scene.mining():
        await prove(replace(scene, key=other).owner, scene.evidence, scene.told.append)
    with pytest.raises(HuntingRefused, match="is proven already: wrong-spec"):
        await prove(scene.owner, scene.evidence, scene.told.append)


async def test_penalties__of_every_fault__are_the_contracts(scene: Scene) -> None:
    for kind in Fault:
        bps, _ = await scene.world.contracts.verdicts.penalty_of(kind)
        assert slash_bps_of(kind, scene.world.run_file.spec.chain) == bps, kind


async def test_evidence__from_a_hunters_journal__survives_its_file(
    scene: Scene, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state, out = tmp_path / "hunter", tmp_path / "evidence.json"
    journal = Journal.open(state / "journal.db")
    book = CaseBook(journal)
    book.add(scene.evidence)
    book.close(book.open_cases()[0])
    journal.close()
    miner = scene.miner.account
    names = ["--miner", miner, "--round", "1", "--state", str(state), "--out", str(out)]
    assert run(["hunter", "evidence", "--kind", "wrong-spec", *names]) == 0
    assert f"wrong-spec of {miner} in round 1" in capsys.readouterr().out
    assert read_evidence(out) == scene.evidence
    assert out.read_bytes() == evidence_json.to_bytes(scene.evidence) + b"\n"
    assert run(["hunter", "evidence", "--kind", "wrong-data", *names]) == EXIT_OPERATOR
    assert f"it has wrong-spec of {miner} in round 1" in capsys.readouterr().err
    assert run(["hunter", "evidence", "--kind", "theft", *names]) == EXIT_OPERATOR
    assert "there are equivocation, wrong-spec" in capsys.readouterr().err


def test_commands__prove_and_withdraw__say_what_came_of_it(
    own_anvil: Anvil,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SYNTIENCE_PASSWORD", PASSWORD)
    file, run_file, key_file = (
        tmp_path / name for name in ("evidence.json", "run.json", "key.json")
    )
    secret = new_private_key()
    create_key_file(key_file, PASSWORD, private_key=secret, scrypt_cost=SCRYPT_COST_MINIMUM)
    hunter = LocalSigner(secret).address
    own_anvil.fund(hunter)

    async def prepare() -> tuple[str, int]:
        async with prepared(own_anvil, tmp_path) as made:
            file.write_bytes(evidence_json.to_bytes(made.evidence))
            write_run_file(run_file, made.world.run_file)
            call = made.world.contracts.token.transfer_call(hunter, tokens(5))
            await made.world.act(made.world.deployer, call)
            return made.miner.account, made.world.run_file.spec.chain.challenge_reveal_blocks

    miner, blocks = asyncio.run(prepare())
    own_anvil.rpc("evm_setIntervalMining", 1)
    options = ["--run", str(run_file), "--rpc", own_anvil.url, "--keystore", str(key_file)]
    assert run(["hunter", "prove", str(file), *options]) == 0
    told = capsys.readouterr().out
    assert f"proven     wrong-spec of {miner} in round 1" in told
    assert f"held for {hunter}" in told
    assert run(["hunter", "withdraw", "--bounty", f"{miner}/1", *options]) == EXIT_OPERATOR
    assert "can be paid after block" in capsys.readouterr().err
    own_anvil.mine(blocks)
    assert run(["hunter", "withdraw", "--bounty", f"{miner}/1", *options]) == 0
    assert capsys.readouterr().out.startswith("bonds      5 tokens\nbounties   ")
    assert run(["hunter", "withdraw", "--bounty", "7", *options]) == EXIT_OPERATOR
    assert "names no miner and round" in capsys.readouterr().err
    assert run(["hunter", "prove", str(run_file), *options]) == EXIT_OPERATOR
    assert "is no evidence" in capsys.readouterr().err


def test_evidence__no_journal__says_where_to_look(tmp_path: Path) -> None:
    with pytest.raises(HuntingRefused, match="no hunter's journal"):
        found_evidence(
            tmp_path, miner=LocalSigner(b"\1" * 32).address, round_=ROUND, kind=Fault.WRONG_SPEC
        )
    assert not (tmp_path / "journal.db").exists()


@pytest.mark.parametrize("data", [b"", b"{}", b'{"version":9}'])
def test_evidence__a_file_of_something_else__is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "evidence.json"
    path.write_bytes(data)
    with pytest.raises(HuntingRefused, match="is no evidence"):
        read_evidence(path)
    with pytest.raises(HuntingRefused, match="can't read"):
        read_evidence(tmp_path / "nowhere.json")
