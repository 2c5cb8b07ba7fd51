"""Founding a run on a real chain: everybody has a slot, a stake and money for bonds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ledger.connection import Connection
from ledger.contracts.registry import Role
from ledger.outbox import Outbox
from protocol.ids import Epoch
from syntience.devnet.gas import GasMeter
from syntience.devnet.launch import Founder, bonds_of, stake_of
from tests.chain import Anvil
from tests.ledger.world import FAST
from tests.specs import SPEC
from tests.syntience.devnet.stage import CHEAT, FIRST, HONEST, HUNTER, PLAYERS, SECOND


async def test_founder__a_fresh_chain__registers_everybody(
    own_anvil: Anvil, tmp_path: Path
) -> None:
    spec = replace(SPEC, chain=replace(SPEC.chain, genesis_time=own_anvil.time() + 10_000))
    async with (
        await Connection.open(own_anvil.url) as connection,
        await Outbox.open(
            tmp_path / "box.db", connection, own_anvil.key(), settings=FAST
        ) as outbox,
    ):
        founder = Founder(connection, PLAYERS, folder=tmp_path, outbox=outbox)
        founding = await founder.deploy(spec)
        assert founding.path.exists()
        await founder.enrol(founding)
        registry, token = founding.contracts.registry, founding.contracts.token
        miners = await registry.slots(Role.MINER, Epoch(1))
        validators = await registry.slots(Role.VALIDATOR, Epoch(1))
        assert {held.account for held in miners} == {HONEST.account, CHEAT.account}
        assert {held.account for held in validators} == {FIRST.account, SECOND.account}
        assert {held.endpoint for held in validators} == {FIRST.endpoint, SECOND.endpoint}
        assert {held.stake for held in validators} == {stake_of(FIRST, spec.chain)}
        assert await token.balance_of(FIRST.operator) == bonds_of(FIRST, spec.chain)
        assert await token.balance_of(HUNTER.account) == bonds_of(HUNTER, spec.chain)

        run_file = founding.run_file
        meter = GasMeter(connection, run_file.contracts, from_block=run_file.deploy_block)
        await meter.read_upto(own_anvil.block_number())
        await meter.read_upto(own_anvil.block_number())
        functions = [function for function, _ in meter.used]
        assert functions.count("Registry.register") == 4
        assert functions.count("StakeVault.depositWithPermit") == 4
        assert functions.count("SynToken.transfer") == 7
        assert all(gas > 21_000 for _, gas in meter.used)
