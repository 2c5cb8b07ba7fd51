"""From the chain's picture and the boards to what is shown."""

from __future__ import annotations

import math

from ledger.contracts.verdicts import Fault
from protocol.ids import Epoch, Round
from syntience.devnet.boards import Boards
from syntience.devnet.picture import Verdict
from syntience.devnet.summary import (
    epoch_ends,
    heldout_losses,
    summarise_hunters,
    summarise_miners,
    summarise_roots,
    summarise_validators,
)
from tests.specs import some_hash, tokens
from tests.syntience.devnet.stage import (
    CHEAT,
    FIRST,
    HONEST,
    HUNTER,
    PLAYERS,
    SECOND,
    FakeBoards,
    boards_of,
    peer,
    picture,
    report,
)

ROOT = some_hash("root")


async def looked(nodes: FakeBoards, newest: int) -> Boards:
    boards = boards_of(nodes)
    await boards.look(Round(newest), everything=True)
    return boards


async def test_summarise_miners__two_reports__shows_their_median() -> None:
    nodes = FakeBoards()
    mine = HONEST.account
    nodes.put_report(FIRST, report(FIRST, 1, peers=(peer(mine, ordinal=1.0, mu=0.2),)))
    nodes.put_report(SECOND, report(SECOND, 1, peers=(peer(mine, ordinal=3.0, mu=0.4),)))
    seen = picture(earned={mine: tokens(5)}, claimed={mine: tokens(3)}, weights={mine: 65535})
    honest, cheat = summarise_miners(PLAYERS, seen, await looked(nodes, 1), last=Round(1))
    assert (honest.rating, honest.weight) == (2.0, 65535)
    assert honest.mu is not None
    assert math.isclose(honest.mu, 0.3)
    assert (honest.earned, honest.claimed, honest.status) == (tokens(5), tokens(3), "active")
    assert (cheat.rating, cheat.mu, cheat.earned) == (None, None, 0)


async def test_summarise_miners__barred_by_a_majority__says_why() -> None:
    nodes = FakeBoards()
    barred = (peer(CHEAT.account, barred="reused-payload"),)
    nodes.put_report(FIRST, report(FIRST, 1, peers=barred))
    nodes.put_report(SECOND, report(SECOND, 1, peers=barred))
    boards = await looked(nodes, 1)
    assert summarise_miners(PLAYERS, picture(), boards, last=Round(1))[1].status == "reused-payload"
    out = picture(excluded=frozenset({CHEAT.account}))
    assert summarise_miners(PLAYERS, out, boards, last=Round(1))[1].status == "excluded"
    left = picture(gone=frozenset({CHEAT.account}))
    assert summarise_miners(PLAYERS, left, boards, last=Round(1))[1].status == "left"


async def test_summarise_validators_and_hunters__a_verdict__is_counted_for_its_hunter() -> None:
    verdict = Verdict(
        kind=Fault.WRONG_DATA,
        round=Round(1),
        miner=CHEAT.account,
        hunter=HUNTER.account,
        bounty=tokens(40),
    )
    seen = picture(verdicts=(verdict, verdict), agreement={FIRST.account: 0.5})
    (hunter,) = summarise_hunters(PLAYERS, seen)
    assert (hunter.proofs, hunter.bounty) == (2, tokens(80))
    first, second = summarise_validators(PLAYERS, seen)
    assert (first.weight_agreement, second.weight_agreement) == (0.5, None)


async def test_summarise_roots__a_cheat_and_a_node_that_changed_its_mind__do_not_agree() -> None:
    nodes = FakeBoards()
    for player in (HONEST, CHEAT, FIRST, SECOND):
        nodes.put(player, "roots/1", ROOT)
    nodes.put(SECOND, "roots/1", some_hash("other"))
    seen = picture(final_roots={Round(1): ROOT, Round(3): ROOT})
    (summary,) = summarise_roots(PLAYERS, seen, await looked(nodes, 1), last=Round(2))
    assert (summary.round, summary.root) == (1, ROOT)
    # Honest: a miner, two validators, a hunter; the hunter told nothing.
    assert (summary.nodes_agreeing, summary.nodes_total) == (2, 4)


async def test_heldout_losses__a_round_without_report__is_a_gap() -> None:
    nodes = FakeBoards()
    nodes.put_report(FIRST, report(FIRST, 1, heldout=6.5))
    nodes.put_report(FIRST, report(FIRST, 3, heldout=6.0))
    losses = heldout_losses(6.9, await looked(nodes, 4), last=Round(4))
    assert losses[:2] == (6.9, 6.5)
    assert math.isnan(losses[2])
    assert losses[3:] == (6.0,)


def test_epoch_ends__losses_by_round__takes_those_between_epochs() -> None:
    losses = [7.0, 6.5, 6.0, 5.5]
    ends = epoch_ends(losses, rounds_per_epoch=2, last=Epoch(2))
    assert ends[:2] == [7.0, 6.0]
    assert math.isnan(ends[2])
