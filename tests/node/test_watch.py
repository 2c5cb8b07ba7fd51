"""What a node tells its operator of the run, once each, and when it stops."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from node.errors import OtherTerms
from node.watch import RunWatch
from protocol.clock import RoundClock
from protocol.ids import ZERO_ADDRESS, Epoch
from protocol.terms import Terms, terms_of
from tests.specs import CHAIN, SPEC, some_hash

MINE = terms_of(SPEC, from_epoch=Epoch(1), judge=ZERO_ADDRESS)
OTHER = replace(MINE, from_epoch=Epoch(9), spec_hash=some_hash("other spec"))


@dataclass
class FakeChain:
    """A run in an epoch, under some terms, paused or not."""

    epoch: Epoch = MINE.from_epoch
    terms: tuple[Terms, ...] = (MINE,)
    paused_since: int | None = None
    block_time: int = CHAIN.genesis_time
    clock: RoundClock = field(default_factory=lambda: RoundClock(CHAIN))

    def schedule(self) -> list[Terms]:
        return list(self.terms)


def test_look__own_terms_alone__says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    watch = RunWatch(FakeChain(), MINE.spec_hash)  # type: ignore[arg-type]
    watch.look()
    watch.look()
    assert caplog.text == ""


def test_look__other_terms__warns_when_announced_and_an_epoch_ahead_then_stops(
    caplog: pytest.LogCaptureFixture,
) -> None:
    chain = FakeChain(terms=(MINE, OTHER))
    watch = RunWatch(chain, MINE.spec_hash)  # type: ignore[arg-type]
    for epoch, warnings in ((0, 1), (1, 1), (7, 1), (8, 2), (8, 2)):
        chain.epoch = Epoch(epoch)
        watch.look()
        assert len(caplog.records) == warnings, epoch
    assert "from epoch 9 on the run goes by another spec" in caplog.records[0].getMessage()
    assert "that is the next epoch" in caplog.records[1].getMessage()
    chain.epoch = Epoch(9)
    with pytest.raises(OtherTerms, match=r"since epoch 9 .* get the run's new run file"):
        watch.look()


def test_look__terms_withdrawn__goes_on() -> None:
    chain = FakeChain(terms=(MINE, OTHER))
    watch = RunWatch(chain, MINE.spec_hash)  # type: ignore[arg-type]
    watch.look()
    chain.terms, chain.epoch = (MINE,), Epoch(9)
    watch.look()


def test_look__run_file_of_terms_to_come__says_from_when_on() -> None:
    watch = RunWatch(FakeChain(terms=(MINE, OTHER)), OTHER.spec_hash)  # type: ignore[arg-type]
    with pytest.raises(OtherTerms, match="applies from epoch 9 on, and epoch 1 is under way"):
        watch.look()


def test_look__pause__is_told_at_its_start_and_its_end(caplog: pytest.LogCaptureFixture) -> None:
    chain = FakeChain()
    watch = RunWatch(chain, MINE.spec_hash)  # type: ignore[arg-type]
    chain.paused_since = chain.block_time
    for _ in range(3):
        watch.look()
        chain.block_time += 7
    chain.paused_since = None
    watch.look()
    watch.look()
    assert [record.getMessage() for record in caplog.records] == [
        "the run is paused: nothing is sent until it goes on, which anyone can make it do in 600 s",
        "the run goes on; it was paused for 21 s",
    ]
