"""What a game about a computation costs, move by move, up to the committee's verdict; and a request for data."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from ledger.abi import AbiValue, contract_abi, encode
from ledger.transactions import Receipt
from protocol.hashing import abi_words, keccak256
from protocol.ids import Address, Hash32, Round, Slot
from protocol.merkle import MerkleTree, node_hash
from protocol.submission import SignedSubmission
from scripts.bench.evidence import commit, hire, pair
from scripts.bench.figures import Figure
from scripts.bench.stage import Move, Stage, hash_named
from scripts.bench.subnet import SALT, Person, Subnet

_LISTS = 5
"""Levels of a tree that one list opens."""
_LEVEL, _KIND, _ENTERED, _DEPTH, _COUNT, _INDEX, _NODE = 6, 7, 8, 9, 11, 12, 13
"""Places in the contract's struct `Position`."""
_FRESH = 2
_LIST_PLACES = 256
_DISPUTED = (21, 2)
"""The first wrong leaf, by level."""
_MOVE = {"Dave": 90_175}
_OPEN = {"Graph, in one": 287_001, "OP Succinct, in one": 448_465}


@dataclass(slots=True, kw_only=True)
class Game:
    """A game that the challenger wins: where it stands, and what each transaction cost."""

    stage: Stage
    hunter: Address
    miner: Person
    trees: Sequence[MerkleTree]
    id: bytes = b""
    position: tuple[AbiValue, ...] = ()
    costs: dict[str, list[int]] = field(default_factory=dict)

    def note(self, name: str, receipt: Receipt) -> None:
        """Keeps the cost, and the position that the receipt shows."""
        self.costs.setdefault(name, []).append(receipt.gas_used)
        events = contract_abi("Disputes").events
        for log in receipt.logs:
            event = events.get(log.topics[0])
            if event is not None and event.name == "Moved":
                shown = event.decode_event(log.topics[1:], log.data)
                position, game = shown["position"], shown["game"]
                assert isinstance(position, tuple)
                assert isinstance(game, bytes)
                self.position, self.id = position, game

    def at(self, place: int) -> int:
        """A number of the position."""
        value = self.position[place]
        assert isinstance(value, int)
        return value

    async def open(self, signed: SignedSubmission) -> None:
        """Commits and reveals the challenge."""
        arguments = pair(signed)
        types = [item.type for item in contract_abi("Disputes").function("openGame").inputs[1:]]
        evidence_hash = keccak256(encode(types, arguments))
        self.costs["commit"] = [await commit(self.stage, "Disputes", self.hunter, evidence_hash)]
        receipt = await self.stage.send(self.hunter, "Disputes.openGame", SALT, *arguments)
        self.note("open", receipt)

    async def descend(self) -> None:
        """Answers and picks until the judge's turn."""
        while self.at(_KIND) != 0:
            if not self.position[_ENTERED]:
                await self._enter()
            await self._narrow()

    async def _enter(self) -> None:
        assert self.at(_KIND) == _FRESH
        tree = self.trees[self.at(_LEVEL)]
        proof = tree.proof(self.at(_COUNT) - 1)
        arguments = (self.id, self.position, tree.root, proof, b"")
        self.note(
            "enter", await self.stage.send(self.miner.owner, "Disputes.enterFresh", *arguments)
        )

    async def _narrow(self) -> None:
        level, depth, index = self.at(_LEVEL), self.at(_DEPTH), self.at(_INDEX)
        width = min(_LISTS, depth)
        row = nodes(self.trees[level], depth - width)[index << width : index + 1 << width]
        arguments = (self.id, self.position, tuple(row))
        self.note(
            "list", await self.stage.send(self.miner.operator, "Disputes.postList", *arguments)
        )
        child = (_DISPUTED[level] >> (depth - width)) - (index << width)
        siblings = MerkleTree(row).proof(child)
        picked = (self.id, self.position, child, row[child], siblings, b"")
        self.note("pick", await self.stage.send(self.hunter, "Disputes.pick", *picked))

    async def vote(self, validators: Sequence[Person]) -> None:
        """Everybody finds the miner guilty."""
        stage, run = self.stage, self.stage.run_file.run
        await self._decide("ask")
        votes = [(v, abi_words(run, self.id, v.owner, 1, SALT)) for v in validators]
        commits = [
            Move(v.operator, "Committee.commitVote", (self.id, keccak256(words)))
            for v, words in votes
        ]
        self.costs["vote"] = [receipt.gas_used for receipt in await stage.send_all(commits)]
        await stage.mine(stage.run_file.spec.chain.vote_commit_blocks + 1)
        reveals = [
            Move(v.operator, "Committee.revealVote", (self.id, v.slot, True, SALT))
            for v, _ in votes
        ]
        self.costs["show"] = [receipt.gas_used for receipt in await stage.send_all(reveals)]
        await stage.mine(stage.run_file.spec.chain.vote_reveal_blocks + 1)
        await self._decide("verdict")

    async def _decide(self, name: str) -> None:
        arguments = (self.id, self.position, b"")
        self.note(name, await self.stage.send(self.hunter, "Disputes.decide", *arguments))


def nodes(tree: MerkleTree, height: int) -> list[Hash32]:
    """All nodes so many levels above the leaves, padding included."""
    row = [*tree.leaves, *[Hash32(bytes(32))] * ((1 << tree.depth) - len(tree.leaves))]
    for _ in range(height):
        row = [node_hash(row[i], row[i + 1]) for i in range(0, len(row), 2)]
    return row


async def games(subnet: Subnet) -> list[Figure]:
    """Much the same game against two miners; the second is what counts."""
    stage, hunter = subnet.stage, await hire(subnet, "game hunter")
    players = subnet.seated[-2:]
    trees = [_computation(subnet, players[0])]
    # The second one's list falls into the place of the first one's: places are few, and used again and again.
    tries = (_computation(subnet, players[1], attempt) for attempt in itertools.count())
    trees.append(next(each for each in tries if _place(each[0]) == _place(trees[0][0])))
    said: list[SignedSubmission] = []

    def script(round_: Round, beacon: Hash32) -> dict[Slot, Hash32]:
        signed = [
            subnet.submission(miner, round_, beacon, trace_root=trace.root)
            for miner, (trace, _) in zip(players, trees, strict=True)
        ]
        said.extend(signed)
        domain = stage.run_file.domain
        return {p.slot: s.submission.digest(domain) for p, s in zip(players, signed, strict=True)}

    subnet.script = script
    await subnet.play_epoch()
    subnet.script = None
    played = []
    for miner, signed, levels in zip(players, said, trees, strict=False):
        game = Game(stage=stage, hunter=hunter, miner=miner, trees=levels)
        await game.open(signed)
        await game.descend()
        await game.vote(subnet.validators)
        played.append(game.costs)
        subnet.leaves(miner)
    costs = {name: max(gas) for name, gas in played[1].items()}
    full_list = played[1]["list"][0]
    return [
        Figure(
            name="commit a challenge to a game", value=costs["commit"], goal=60_000, anchors=_OPEN
        ),
        Figure(name="reveal that opens a game", value=costs["open"], goal=150_000, anchors=_OPEN),
        Figure(name="move: a list of 32", value=full_list, goal=90_000, anchors=_MOVE),
        Figure(name="move: a pick", value=costs["pick"], goal=90_000, anchors=_MOVE),
        Figure(name="move: a level's root", value=costs["enter"], goal=90_000, anchors=_MOVE),
        Figure(name="ask a committee", value=costs["ask"]),
        Figure(name="commit a vote", value=costs["vote"]),
        Figure(name="reveal a vote", value=costs["show"]),
        Figure(name="a committee's verdict, slash included", value=costs["verdict"]),
    ]


def _computation(subnet: Subnet, miner: Person, attempt: int = 0) -> tuple[MerkleTree, MerkleTree]:
    """A miner's trace, and the states within the interval that is disputed."""
    chain = subnet.stage.run_file.spec.chain
    name = f"{miner.slot} {attempt}"
    count = 2 + -(-chain.steps // chain.trace_every)
    trace = MerkleTree([hash_named(f"state {name} {number}") for number in range(count)])
    inner = [hash_named(f"inner {name} {number}") for number in range(chain.trace_every - 1)]
    return trace, MerkleTree([*inner, trace.leaves[_DISPUTED[0]]])


def _place(trace: MerkleTree) -> int:
    """Where the contract remembers the first list of a trace."""
    key = keccak256(abi_words(trace.root, min(_LISTS, trace.depth)))
    return int.from_bytes(key, "big") % _LIST_PLACES
