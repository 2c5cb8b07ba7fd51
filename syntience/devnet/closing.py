"""The end of a run: its report, and its promises held against it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ledger.connection import Connection
from protocol.canonical import Json
from protocol.ids import Epoch, Round, Units
from syntience.devnet.disturber import Kill, lasting
from syntience.devnet.judgements import FALSE_ACCUSING, OVERPAYING
from syntience.devnet.launch import Founding, bonds_of
from syntience.devnet.picture import Picture
from syntience.devnet.players import Part, Player
from syntience.devnet.promise import Promise
from syntience.devnet.promises import Evidence, hold_promises
from syntience.devnet.settings import DevnetSettings
from syntience.devnet.stage import Stage
from syntience.devnet.summary import (
    epoch_ends,
    heldout_losses,
    summarise_hunters,
    summarise_miners,
    summarise_roots,
    summarise_validators,
)
from syntience.devnet.watch import Onlooker
from syntience.report import (
    AccountingSummary,
    DevnetReport,
    LossSummary,
    RunSummary,
    summarise_gas,
    summarise_payloads,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a devnet ended."""

    report: DevnetReport
    promises: tuple[Promise, ...]

    @property
    def kept(self) -> bool:
        """Whether the run held all that it promises."""
        return all(promise.holds for promise in self.promises)


@dataclass(frozen=True, slots=True, kw_only=True)
class Closer:
    """Draws up the end of one run."""

    settings: DevnetSettings
    stage: Stage
    players: Sequence[Player]
    founding: Founding
    onlooker: Onlooker
    connection: Connection
    kills: Sequence[Kill]

    async def close(self, picture: Picture, *, wall_s: float) -> Ending:
        """Reads what is left to read, all as of the picture's block."""
        report = await self._report(picture, wall_s)
        evidence = await self._evidence(picture, report)
        return Ending(report=report, promises=hold_promises(report, evidence))

    async def _report(self, picture: Picture, wall_s: float) -> DevnetReport:
        boards, last = self.onlooker.boards, self.onlooker.last_round
        books = await self.onlooker.take_books()
        return DevnetReport(
            run=RunSummary(
                params=self._params(),
                epochs=self.settings.epochs,
                rounds=self.settings.rounds,
                wall_s=round(wall_s, 1),
            ),
            loss=LossSummary(heldout=heldout_losses(self.stage.first_loss, boards, last=last)),
            miners=summarise_miners(self.players, picture, boards, last=last),
            validators=summarise_validators(self.players, picture),
            hunters=summarise_hunters(self.players, picture),
            roots=summarise_roots(self.players, picture, boards, last=Round(last + 1)),
            gas=summarise_gas(await self.onlooker.read_gas(self.connection)),
            accounting=AccountingSummary(
                token_balance=books.token_balance, accounted=books.accounted
            ),
            payload_bytes=summarise_payloads(boards.payload_sizes()),
        )

    async def _evidence(self, picture: Picture, report: DevnetReport) -> Evidence:
        hunters = [
            player for player in self.players if player.part is Part.HUNTER and player.is_honest
        ]
        overpayers = {each.operator for each in self.players if each.behaviour == OVERPAYING}
        last = self.onlooker.last_round
        return Evidence(
            settled=frozenset(epoch for epoch in picture.settled if epoch <= self.settings.epochs),
            unclaimed=len(self.onlooker.unclaimed()),
            epoch_losses=epoch_ends(
                report.loss.heldout,
                rounds_per_epoch=self.settings.rounds_per_epoch,
                last=Epoch(self.settings.epochs),
            ),
            verdicts=picture.verdicts,
            hunters=len(hunters),
            gained=await self._gained(hunters, picture.block),
            penalised=Units(
                sum(
                    picture.slashed.get(player.account, 0)
                    for player in self.players
                    if player.part is Part.VALIDATOR and player.is_honest
                )
            ),
            parameters=self.stage.parameters,
            kills=len(self.kills),
            missed=tuple(
                f"{kill.player.name} in round {kill.round + 1}"
                for kill in lasting(self.kills, last=last)
                if not self.onlooker.worked(kill.player, Round(kill.round + 1))
            ),
            overpaying=tuple(each for each in picture.postings if each.poster in overpayers),
            disputes=self.settings.disputes,
            trials=picture.trials,
            false_accusers=[
                each.account for each in self.players if each.behaviour == FALSE_ACCUSING
            ],
        )

    async def _gained(self, hunters: Sequence[Player], block: int) -> Units:
        """How much more the hunters hold than they were given, bonds that came back included."""
        chain = self.founding.run_file.spec.chain
        token = self.founding.contracts.token
        held = await token.balances_of([hunter.account for hunter in hunters], block=block)
        books = (self.founding.contracts.faults, self.founding.contracts.disputes)
        bonds = [
            await book.free_bond(hunter.account, block=block)
            for hunter in hunters
            for book in books
        ]
        given = sum(bonds_of(hunter, chain) for hunter in hunters)
        return Units(sum(held) + sum(bonds) - given)

    def _params(self) -> dict[str, Json]:
        settings, run_file = self.settings, self.founding.run_file
        chain = run_file.spec.chain
        return {
            "miners": settings.miners,
            "validators": settings.validators,
            "hunters": settings.hunters,
            "cheats": list(settings.all_cheats),
            "disputes": settings.disputes,
            "seed": settings.seed,
            "model": settings.model,
            "set": list(settings.changes),
            "parameters": self.stage.parameters,
            "vocabulary": run_file.spec.model.vocab_size,
            "data": run_file.spec.data.name,
            "rounds_per_epoch": settings.rounds_per_epoch,
            "round_s": chain.round_s,
            "windows_s": [
                chain.train_s,
                chain.put_s,
                chain.publish_s,
                chain.attest_s,
                chain.apply_s,
            ],
            "chain_id": run_file.chain_id,
            "run": "0x" + run_file.run.hex(),
            "spec_hash": "0x" + run_file.spec.hash().hex(),
            "emission_per_epoch": str(chain.emission_per_epoch),
        }
