"""Runs that start from a checkpoint: one validator has it, everybody else fetches it by its root, and it is fine-tuned."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from ledger.contracts.registry import Role
from node.errors import WrongStart
from node.kept import read_kept
from protocol.ids import Round
from protocol.model_spec import LlamaSpec, TransformersSpec
from syntience.exporting import Export, export_model, verify_export
from syntience.layers import Secret
from tests.chain import Anvil
from tests.subnet.stepped import Subnet, subnet
from tests.training import llama2c_reference as reference
from tests.training.foreigners import VOCABULARY, save_model
from training.dataset import TOKENIZER, TokenDataset
from training.llama2c import read_llama2c
from training.model_folder import StoredModel, read_model, write_model
from training.roots import state_root
from training.words import Words

ROUNDS = 3


def from_llama2c(folder: Path) -> None:
    """As if somebody had trained it with llama2.c."""
    shape = reference.Shape(vocabulary=VOCABULARY, layers=1)
    path = folder.with_suffix(".bin")
    reference.write_model(path, shape, reference.random_weights(shape))
    model, params = read_llama2c(path)
    write_model(StoredModel(model=model, params=params, words=None), folder)


def from_transformers(folder: Path) -> None:
    save_model(folder, "gpt2", n_embd=16, n_layer=1)


async def learns(net: Subnet) -> None:
    """A few rounds: everybody agrees in each, and the held-out loss falls in each."""
    roots = [net.assert_agreement()]
    assert roots == [net.run_file.spec.chain.genesis_root]
    losses = []
    for _ in range(ROUNDS):
        round_ = await net.run_round()
        roots.append(net.assert_agreement())
        losses.append(net.heldout_loss(round_))
    assert len(set(roots)) == ROUNDS + 1
    assert losses == sorted(losses, reverse=True), losses
    assert net.failed_transactions() == []
    await net.assert_balanced()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("make", "kind"), [(from_llama2c, LlamaSpec), (from_transformers, TransformersSpec)]
)
async def test_subnet__from_a_checkpoint__agrees_learns_and_exports(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset, make, kind: type
) -> None:  # type: ignore[no-untyped-def]
    make(tmp_path / "start")
    start = tmp_path / "start"
    async with subnet(stepped_anvil, tmp_path / "net", text, hunters=1, start=start) as net:
        assert isinstance(net.run_file.spec.model, kind)
        await learns(net)
        joiner = await net.join(Role.MINER, "joiner")
        joiner.data_dir = None
        await net.open(joiner)
        assert (joiner.head, joiner.root) == (1, net.run_file.spec.chain.genesis_root)
        await net.work(only=[joiner])
        assert joiner.root == net.assert_agreement()
        run_file = tmp_path / "run.json"
        run_file.write_bytes(net.run_file.to_bytes())
        state = net.validators[1].folder
        kept = await asyncio.to_thread(read_kept, state, net.run_file.spec)
        assert (kept.round, kept.root) == (Round(ROUNDS + 1), joiner.root)
        export = Export(out=tmp_path / "out", run_file=run_file, state=state, data=text.folder)
        origin = await export_model(export)
        assert origin.root == verify_export(tmp_path / "out", None) == joiner.root
        asked = replace(export, rpc_url=Secret(stepped_anvil.url))
        newest = await export_model(replace(asked, out=tmp_path / "newest"))
        before = await export_model(replace(asked, out=tmp_path / "before", round=Round(ROUNDS)))
        assert (newest.finalised, before.finalised) == (False, True)
        assert before.root == await net.final_root(Round(ROUNDS))


async def test_follower__another_model_than_the_run_s__stops_before_it_signs_anything(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    from_llama2c(tmp_path / "start")
    stored = read_model(tmp_path / "start")
    words = Words(json=(text.folder / TOKENIZER).read_bytes(), start=None, end=None)
    other = {name: tensor * 2 for name, tensor in stored.params.items()}
    write_model(StoredModel(model=stored.model, params=other, words=words), tmp_path / "other")
    async with subnet(
        stepped_anvil, tmp_path / "net", text, start=tmp_path / "start", miners=["honest"]
    ) as net:
        stranger = await net.join(Role.MINER, "stranger")
        stranger.start_dir = tmp_path / "other"
        with pytest.raises(WrongStart, match=state_root(other).hex()):
            await net.open(stranger)
        net.members.remove(stranger)
