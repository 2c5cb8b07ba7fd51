"""A subnet without a chain: rounds and epochs, validators, consensus, and what everybody is paid.

The order is the protocol's. A round: work, selection by the consensus of epoch e - 2, each
validator's exam on its own draw, the outer step. An epoch's end: weights from each book, the
clipped median, the settlement tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from protocol.beacon import seed_from
from protocol.ids import ZERO32, ZERO_ADDRESS, Address, Epoch, Hash32, Round, Slot, Units
from scoring.book import RoundObservation, ScoreBook
from scoring.checks import Fault
from scoring.consensus import consensus_weights, weights_by_address
from scoring.sampling import evaluation_draw, sample_peers
from scoring.selection import select
from scoring.settlement import EarlierLeaf, EpochFacts, ValidatorSeat, settle
from syntience.lab.history import EpochRow, History, Standing
from syntience.lab.judges import Ballot, Judge, judge_named
from syntience.lab.scenario import HONEST, Scenario
from syntience.lab.world import Beacons, HandedIn, World

_BETWEEN = 2
"""Selection goes by the consensus of so many epochs before."""


class Validator:
    """A seat, its score book and what it makes of it."""

    def __init__(self, account: Address, stake: int, kind: str, scenario: Scenario) -> None:
        self.account, self.is_honest = account, kind == HONEST
        self.seat = ValidatorSeat(account=account, stake=Units(stake))
        self.judge: Judge = judge_named(kind)
        self.book = ScoreBook.empty(scenario.rules)
        self._count = scenario.peers_per_round
        self._examiner = ZERO_ADDRESS if scenario.shared_draws else account

    def observe(
        self,
        world: World,
        handed: HandedIn,
        beacons: Beacons,
        epoch: Epoch,
        selected: list[Address],
    ) -> None:
        """Examines a round and enters it into the book."""
        draw = evaluation_draw(beacons.evaluation, self._examiner)
        peers = sample_peers(
            handed.accepted,
            ordinals=self.book.ordinals(),
            last_evaluated=self.book.last_evaluated(),
            round_=beacons.round,
            count=self._count,
            draw=draw,
        )
        evaluations = world.examine(peers, selected, draw)
        faults = dict(handed.faults)
        for miner in sorted(world.copies(evaluations)):
            faults[miner] = (*faults.get(miner, ()), Fault.OVERLAP)
        self.book = self.book.observe_round(
            RoundObservation(
                round=beacons.round,
                epoch=epoch,
                void=not handed.accepted,
                accepted=handed.accepted,
                faults=faults,
                payload_roots=handed.payload_roots,
                evaluations=evaluations,
            )
        )


class Subnet:
    """One run of a scenario under one seed."""

    def __init__(self, scenario: Scenario, world: World, seed: Hash32) -> None:
        self._scenario, self._world, self._beacon = scenario, world, seed
        miners = [account for group in scenario.miner_accounts().values() for account in group]
        self._slots = {Slot(i): account for i, account in enumerate(miners)}
        accounts = scenario.validator_accounts()
        self._validators = [
            Validator(account, group.stake, group.kind, scenario)
            for group in scenario.validators
            for account in accounts[group.name]
        ]
        self._friends = frozenset(
            account
            for group in scenario.peers
            if group.options.get("friend")
            for account in group.addresses("peer")
        )
        self._consensus: dict[Epoch, tuple[int, ...]] = {}
        self._earlier: dict[Address, EarlierLeaf] = {}

    def run(self) -> History:
        """Plays all rounds."""
        scenario, rows = self._scenario, []
        for number in range(1, scenario.epochs + 1):
            epoch, accepted = Epoch(number), dict.fromkeys(self._slots.values(), 0)
            for _ in range(scenario.rounds_per_epoch):
                for miner in self._play(epoch):
                    accepted[miner] += 1
            rows.append(self._settle(epoch, accepted))
        return History(
            miners=scenario.miner_accounts(),
            validators=scenario.validator_accounts(),
            epochs=rows,
        )

    def _play(self, epoch: Epoch) -> tuple[Address, ...]:
        beacons = self._beacons()
        handed = self._world.work(beacons)
        selected = select(
            handed.accepted,
            self._known_weights(epoch),
            beacons.evaluation,
            top_g=self._scenario.top_g,
            newcomer_slots=self._scenario.newcomer_slots,
        )
        for validator in self._validators:
            validator.observe(self._world, handed, beacons, epoch, selected)
        self._world.apply(selected)
        return handed.accepted

    def _beacons(self) -> Beacons:
        round_ = Round(self._validators[0].book.round + 1)
        assignment = seed_from(self._beacon, "assignment", round_)
        self._beacon = seed_from(assignment, "evaluation")
        return Beacons(round=round_, assignment=assignment, evaluation=self._beacon)

    def _known_weights(self, epoch: Epoch) -> dict[Address, int]:
        consensus = self._consensus.get(Epoch(epoch - _BETWEEN))
        return weights_by_address(consensus, self._slots) if consensus else {}

    def _settle(self, epoch: Epoch, accepted: Mapping[Address, int]) -> EpochRow:
        seats = {Slot(i): validator.seat for i, validator in enumerate(self._validators)}
        facts = EpochFacts(
            epoch=epoch,
            miners=self._slots,
            validators=seats,
            reveals={slot: self._vector(epoch, slot) for slot in seats},
            pot=self._scenario.pot,
            miners_bps=self._scenario.miners_bps,
            earlier=self._earlier,
        )
        tree = settle(facts)
        assert tree is not None  # everybody reveals
        leaves = tree.leaves.values()
        self._earlier = {
            leaf.account: EarlierLeaf(epoch=epoch, cumulative=leaf.cumulative) for leaf in leaves
        }
        self._consensus[epoch] = consensus_weights(facts.all_reveals())
        return EpochRow(
            epoch=epoch,
            round=self._validators[0].book.round,
            weights=weights_by_address(self._consensus[epoch], self._slots),
            pay={leaf.account: leaf.amount for leaf in leaves},
            accepted=accepted,
            standings={miner: self._standing(miner) for miner in self._slots.values()},
            heldout=self._world.heldout(),
        )

    def _vector(self, epoch: Epoch, slot: Slot) -> tuple[int, ...]:
        validator, count = self._validators[slot], len(self._slots)
        ballot = Ballot(
            honest=validator.book.weights(epoch, slots=self._slots, slot_count=count),
            slots=self._slots,
            friends=self._friends,
            last=self._consensus.get(Epoch(epoch - 1), (0,) * count),
        )
        return validator.judge(ballot)

    def _standing(self, miner: Address) -> Standing:
        books = [validator.book for validator in self._validators if validator.is_honest]
        records = [book.record(miner) for book in books]
        return Standing(
            ordinal=fmean(record.rating.ordinal for record in records),
            mu=fmean(record.computation.mean for record in records),
            score=fmean(book.score(miner).total for book in books),
        )


def seed_of(scenario: str, number: int) -> Hash32:
    """The beacon before the first round."""
    return seed_from(ZERO32, "lab", scenario, number)
