"""What it costs to ask for withheld data on chain, to answer, and to fine those who don't."""

from __future__ import annotations

from ledger.abi import AbiValue
from protocol.ids import Hash32, Round, Slot
from protocol.merkle import MerkleTree, leaf_hash
from protocol.submission import SignedSubmission
from scripts.bench.evidence import hire, pair
from scripts.bench.figures import Figure
from scripts.bench.stage import hash_named
from scripts.bench.subnet import Subnet

_PAYLOAD = 3
"""Of the contract's enum `Kind`."""
_CHUNK = bytes(range(116))
"""As long as a chunk of 64 kept values; only an encoder minds what is in it."""
_INDICES = (5, 6, 7)


async def data_requests(subnet: Subnet) -> list[Figure]:
    """Two requests that are answered, of which the second counts, and one that is not."""
    stage, requester = subnet.stage, await hire(subnet, "requester")
    miner = subnet.seated[-1]
    leaves = [hash_named(f"chunk {number}") for number in range(4096)]
    for index in _INDICES:
        leaves[index] = leaf_hash(_CHUNK)
    payload = MerkleTree(leaves)
    said: list[SignedSubmission] = []

    def script(round_: Round, beacon: Hash32) -> dict[Slot, Hash32]:
        said.append(subnet.submission(miner, round_, beacon, payload_root=payload.root))
        return {miner.slot: said[-1].submission.digest(stage.run_file.domain)}

    first = stage.clock.first_round(subnet.epoch)
    subnet.script = script
    await subnet.play_epoch()
    subnet.script = None
    ballots = subnet.ballots(first)
    digest = said[0].submission.digest(stage.run_file.domain)
    asked = answered = 0
    items = [(first, miner.slot, digest, _PAYLOAD, index) for index in _INDICES]
    for item in items:
        asked = await stage.gas(requester, "DataRequests.request", item, ballots)
        index = item[-1]
        if item is items[-1]:
            break
        turn = (await stage.read("DataRequests.turnOf", item)).integer(0)
        opening: tuple[AbiValue, ...] = (index, _CHUNK, payload.proof(index), 0, b"", ())
        arguments = (item, pair(said[0])[0], opening)
        operator = subnet.validators[turn].operator
        answered = await stage.gas(operator, "DataRequests.answer", *arguments)
    chain = stage.run_file.spec.chain
    turns = chain.answer_turn_blocks * len(subnet.validators)
    await stage.mine(turns + chain.answer_blocks + 16)
    fined = await stage.gas(requester, "DataRequests.resolve", items[-1])
    everybody = len(subnet.validators)
    return [
        Figure(name=f"ask for a chunk, {everybody} bitmaps", value=asked),
        Figure(name="answer with a chunk, depth 12", value=answered),
        Figure(name=f"fine {everybody} validators that don't", value=fined),
    ]
