"""The chain takes blocks back: nodes go back with it, and forward again on what it says then."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from ledger.event_types import BeaconRecorded, RootFinalised, Slashed
from protocol.beacon import Purpose
from protocol.ids import Round
from tests.chain import Anvil
from tests.subnet.stepped import FAST, subnet
from training.dataset import TokenDataset

PATIENT = replace(FAST, finality_blocks=64, rebroadcast_s=0.1)
"""A reorganisation must not reach deeper than what an outbox holds for final."""


async def test_chain__takes_an_evaluation_beacon_back__nodes_conclude_the_round_again(
    stepped_anvil: Anvil, tmp_path: Path, text: TokenDataset
) -> None:
    async with subnet(stepped_anvil, tmp_path, text, outbox=PATIENT) as net:
        await net.run_round()
        before = net.assert_agreement()
        undone = await net.run_round()
        net.assert_agreement()
        recorded = [
            event
            for event in (await net.poll()).events(BeaconRecorded, round_=undone)
            if event.purpose is Purpose.EVALUATION
        ]
        stepped_anvil.rpc("anvil_reorg", stepped_anvil.block_number() - recorded[0].block + 1, [])
        await net.work(only=net.miners)
        assert {(m.head, m.root) for m in net.miners} == {(undone, before)}, "they went back"
        await net.work()
        await asyncio.sleep(0.5)
        again = await net.run_round()
        moving = await net.run_round()
        net.assert_agreement()
        reader = await net.poll()
        roots = {event.round: event.root for event in reader.events(RootFinalised)}
        assert set(roots) == set(range(1, moving + 1))
        assert roots[undone] == before
        assert again == undone + 1
        for member in net.members:
            known = member.open_node.follower.roots
            assert {number: known[number] for number in roots} == roots
        assert roots[Round(moving)] != before
        assert reader.events(Slashed) == [], "a submission for a beacon that is gone is no fraud"
        await net.assert_balanced()
