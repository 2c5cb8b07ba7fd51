"""The public data ledger that validators keep: the same bytes at each, true to the chain, and any flip is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.errors import DataLogDamaged
from ledger.runs import write_run_file
from syntience.layers import Secret
from syntience.ledger_check import LOG, check_ledger
from tests.chain import Anvil
from tests.subnet.stepped import subnet
from training.dataset import TokenDataset
from validator.chronicle import FINAL_DEPTH, FOLDER


async def test_chronicle__after_rounds__verifies_alone_and_against_the_chain(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text, miners=["honest"] * 2) as net:
        await net.run_rounds(2)
        net.anvil.mine(FINAL_DEPTH + 1)
        for member in net.validators:
            await member.validator().step()
        run_file, url = tmp_path / "run.json", Secret(net.anvil.url)
        write_run_file(run_file, net.run_file)
        folders = [member.folder / FOLDER for member in net.validators]
        assert len({(folder / LOG).read_bytes() for folder in folders}) == 1
        for folder in folders:
            alone = await check_ledger(folder, run_file=run_file, rpc_url=None)
            assert alone == await check_ledger(folder, run_file=run_file, rpc_url=url)
            found = {(each.round, each.account) for each in alone.disclosures}
            assert found == {(r, miner.owner) for r in (1, 2) for miner in net.miners}
        log = folders[0] / LOG
        whole = log.read_bytes()
        for place in range(0, len(whole), max(1, len(whole) // 16)):
            log.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            with pytest.raises(DataLogDamaged):
                await check_ledger(folders[0], run_file=run_file, rpc_url=None)
