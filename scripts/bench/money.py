"""What it costs to stake, leave, be slashed, settle and be paid."""

from __future__ import annotations

from ledger.contracts.registry import Role
from protocol.ids import Epoch, Units
from scripts.bench.figures import Figure
from scripts.bench.stage import account_named
from scripts.bench.subnet import TOKEN, Subnet

_SOME = Units(10 * TOKEN)
_JUDGE = "Verdicts"
"""The only one but ScoreRegistry."""


async def staking(subnet: Subnet) -> list[Figure]:
    """Deposits of somebody new, in epoch after epoch until its history is as long as it gets, and a miner's exit."""
    stage, owner = subnet.stage, account_named("staker")
    await stage.enrich([owner])
    await subnet.fund([owner], Units(10**6 * TOKEN))

    async def deposit() -> int:
        return await stage.gas(owner, "StakeVault.deposit", _SOME)

    first, more = await deposit(), await deposit()
    later = []
    epochs = (await stage.read("StakeVault.epochsKnown")).integer(0)
    for _ in range(epochs + 6):
        await subnet.play_epoch()
        later.append(await deposit())
    eigen, graph = {"EigenLayer": 254_816, "Graph": 89_000}, {"EigenLayer": 122_833}
    return [
        Figure(name="first stake", value=first, goal=90_000, anchors=eigen),
        Figure(name="stake more", value=more, goal=60_000, anchors=graph),
        Figure(
            name="stake more, in a new epoch", value=max(later[-4:]), goal=60_000, anchors=graph
        ),
        *await _leaving(subnet),
    ]


async def _leaving(subnet: Subnet) -> list[Figure]:
    """A part of a miner's stake, then more of it, then all and with it the slot."""
    stage = subnet.stage
    await subnet.add(Role.MINER, 1)
    miner = subnet.miners[-1]
    await subnet.play_epoch()
    await subnet.play_epoch()
    queue = "StakeVault.requestUnbond"
    part = await stage.gas(miner.owner, queue, _SOME)
    again = await stage.gas(miner.owner, queue, _SOME)
    left = Units(miner.stake - 2 * _SOME)
    everything = await stage.gas(miner.owner, queue, left)
    subnet.leaves(miner)
    anchors = {"EigenLayer": 435_294, "Graph": 138_000}
    return [
        Figure(name="queue an exit", value=part, goal=90_000, anchors=anchors),
        Figure(name="queue more of it", value=again, goal=90_000, anchors=anchors),
        Figure(name="queue an exit that gives up the slot", value=everything),
    ]


async def slashing(subnet: Subnet) -> list[Figure]:
    """A judge's call to the vault, on its own, with a bounty to somebody who holds tokens."""
    stage, judge, offender = subnet.stage, subnet.stage.address(_JUDGE), account_named("staker")
    await stage.enrich([judge])
    arguments = (offender, _SOME // 5, stage.deployer, _SOME // 50)
    costs = []
    for _ in range(2):
        await subnet.play_epoch()
        costs.append(await stage.gas(judge, "StakeVault.slash", *arguments))
    anchors = {"EigenLayer": 410_240, "Graph": 115_000}
    return [Figure(name="slash", value=max(costs), goal=120_000, anchors=anchors)]


async def settling(subnet: Subnet) -> list[Figure]:
    """A post, and claims of a miner that never claimed and of one that did."""
    stage = subnet.stage
    stage.spent.clear()
    await subnet.play_epoch()
    post = next(gas for name, gas in stage.spent if name == "RewardsDistributor.postSettlement")
    last = Epoch(subnet.epoch - 1)
    first = (await stage.send_all([subnet.claim(last, 0)]))[0].gas_used
    await subnet.play_epoch()
    repeat = (await stage.send_all([subnet.claim(Epoch(last + 1), 0)]))[0].gas_used
    return [
        Figure(name="post a settlement", value=post, goal=100_000, anchors={"EigenLayer": 103_797}),
        Figure(
            name="claim, first",
            value=first,
            goal=92_000,
            anchors={"EigenLayer": 143_818, "Uniswap (2 leaves)": 81_970, "Uniswap": 95_256},
        ),
        Figure(name="claim, repeat", value=repeat, goal=65_000, anchors={"EigenLayer": 89_730}),
    ]
