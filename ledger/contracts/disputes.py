"""The dispute manager: games about computations, from the bonded challenge to the verdict."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum

from ledger.abi import AbiValue, encode
from ledger.connection import BlockId
from ledger.contracts.base import Contract, Values
from ledger.contracts.evidence import submission_to_abi
from ledger.transactions import Call
from protocol.hashing import abi_words, keccak256
from protocol.ids import Address, Hash32, Round, Units
from protocol.submission import SignedSubmission


class Turn(IntEnum):
    """Whose turn it is (the numbers are the contract's)."""

    NONE = 0
    DEFENDANT_POSTS = 1
    DEFENDANT_ENTERS = 2
    CHALLENGER_PICKS = 3
    CHALLENGER_PROVES = 4
    JUDGE_DECIDES = 5
    OVER = 6


class GameOutcome(IntEnum):
    """How a game ended (the numbers are the contract's)."""

    NONE = 0
    CHALLENGER_WON = 1
    DEFENDANT_WON = 2
    UNDECIDED = 3


class LevelKind(IntEnum):
    """How a level of a game relates to the one above it (the numbers are the contract's)."""

    DONE = 0
    COMMITTED = 1
    FRESH = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """What a game is about and where it stands (struct ``Position``, field by field).

    Attributes:
        fault: what is proven if the challenger wins.
        claim: the digest of the disputed submission.
        level: that is being descended; 0 is the submission's trace.
        entered: whether `node` is a node of this level's tree already.
        depth: levels of the tree below `node`.
        lists: that the levels entered so far need together.
        count: leaves of this level's tree.
        index: of `node` among the nodes of its depth.
        roots, picks, leaves: by level, its root, its disputed leaf's index and hash; 0 until known.
    """

    judge: Address
    challenger: Address
    defendant: Address
    fault: int
    round: Round
    claim: Hash32
    level: int
    kind: LevelKind
    entered: bool
    depth: int
    lists: int
    count: int
    index: int
    node: Hash32
    roots: tuple[Hash32, ...]
    picks: tuple[int, ...]
    leaves: tuple[Hash32, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GameClock:
    """A game's word. Blocks are of the run's clock."""

    turn: Turn
    outcome: GameOutcome
    answers: int
    since: int
    challenger_left: int
    defendant_left: int
    committed_block: int


class Disputes(Contract):
    """Opens games, takes their moves, and has their judge decide."""

    ABI = "Disputes"

    async def challenge_block(self, hunter: Address, commitment: Hash32) -> int | None:
        """Block of a hunter's commit; None if there is none (any more)."""
        return (await self._read("challengeBlock", hunter, commitment)).integer(0) or None

    async def free_bond(self, account: Address, *, block: BlockId = "latest") -> Units:
        """What an account can withdraw here, or commit its next challenges with."""
        return Units((await self._read("freeBond", account, block=block)).integer(0))

    async def bonds_held(self, *, block: BlockId = "latest") -> Units:
        return Units((await self._read("bondsHeld", block=block)).integer(0))

    async def clock_of(self, game: Hash32) -> GameClock | None:
        """A game's word; None if there is no such game, or if it is over and another one took its place."""
        word = (await self._read("clockOf", game)).record(0)
        turn = Turn(word.integer(0))
        if turn is Turn.NONE:
            return None
        return GameClock(
            turn=turn,
            outcome=GameOutcome(word.integer(1)),
            answers=word.integer(2),
            since=word.integer(3),
            challenger_left=word.integer(4),
            defendant_left=word.integer(5),
            committed_block=word.integer(6),
        )

    async def longest_game_blocks(self) -> int:
        """No game lasts longer."""
        return (await self._read("longestGameBlocks")).integer(0)

    def commitment(self, hunter: Address, signed: SignedSubmission, salt: Hash32) -> Hash32:
        """What a hunter commits, with the game's bond, at least one block before it opens the game."""
        types = [item.type for item in self.abi.function("openGame").inputs[1:]]
        evidence = keccak256(encode(types, _evidence(signed)))
        return Hash32(keccak256(abi_words(hunter, evidence, salt)))

    def commit_challenge_call(self, commitment: Hash32) -> Call:
        """Needs a free bond here, or an allowance."""
        return self._call("commitChallenge", commitment)

    def open_game_call(self, salt: Hash32, signed: SignedSubmission) -> Call:
        """Sent by the hunter that committed to this submission and salt."""
        return self._call("openGame", salt, *_evidence(signed))

    def post_list_call(
        self, game: Hash32, position: Position, children: tuple[Hash32, ...]
    ) -> Call:
        """The nodes below the disputed one; anybody's to send."""
        return self._call("postList", game, _position(position), children)

    def enter_fresh_call(
        self, game: Hash32, position: Position, root: Hash32, proof: tuple[Hash32, ...]
    ) -> Call:
        """The root of a level that only the defendant knows; sent by itself or by its operator.

        Args:
            proof: siblings of the level's last leaf, bottom-up.
        """
        return self._call("enterFresh", game, _position(position), root, proof, b"")

    def pick_call(
        self,
        game: Hash32,
        position: Position,
        *,
        child: int,
        node: Hash32,
        siblings: tuple[Hash32, ...],
    ) -> Call:
        """The first wrong node of a list, sent by the challenger; `siblings` lead up to the disputed node."""
        return self._call("pick", game, _position(position), child, node, siblings, b"")

    def decide_call(self, game: Hash32, position: Position) -> Call:
        """Opens a committee's vote, or closes it; anybody's to send."""
        return self._call("decide", game, _position(position), b"")

    def resolve_timeout_call(self, game: Hash32, position: Position) -> Call:
        """Ends a game whose turn ran out of time; anybody's to send."""
        return self._call("resolveTimeout", game, _position(position))

    def withdraw_bond_call(self, amount: Units) -> Call:
        return self._call("withdrawBond", amount)


def path_of(position: Position) -> Hash32:
    """Names a level of a claim that is not entered yet, for every game that comes this way."""
    return Hash32(keccak256(abi_words(position.claim, position.level, *position.picks)))


def position_from_abi(values: Values) -> Position:
    """A decoded struct ``Position``."""
    roots, picks, leaves = (values.record(place) for place in (14, 15, 16))
    return Position(
        judge=values.address(0),
        challenger=values.address(1),
        defendant=values.address(2),
        fault=values.integer(3),
        round=Round(values.integer(4)),
        claim=values.hash(5),
        level=values.integer(6),
        kind=LevelKind(values.integer(7)),
        entered=values.truth(8),
        depth=values.integer(9),
        lists=values.integer(10),
        count=values.integer(11),
        index=values.integer(12),
        node=values.hash(13),
        roots=tuple(roots.hash(place) for place in range(len(roots))),
        picks=tuple(picks.integer(place) for place in range(len(picks))),
        leaves=tuple(leaves.hash(place) for place in range(len(leaves))),
    )


def _position(position: Position) -> tuple[AbiValue, ...]:
    """The fields of `Position` are in the order of the contract's struct."""
    return tuple(getattr(position, item.name) for item in fields(position))


def _evidence(signed: SignedSubmission) -> tuple[AbiValue, ...]:
    return submission_to_abi(signed.submission), signed.signature
