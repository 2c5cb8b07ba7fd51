"""Looks whether what validators vouched for can be had, and asks for it on chain where it can't.

Every accepted submission of the last rounds is fetched with its data leaves, trace and payload, and of one miner a round its
local state. What nobody serves for `PATIENCE_ROUNDS` is asked for with a bond, one leaf of each kind: either it is shown, or
all who vouched for it pay. Which leaf is our secret until then. No more than `REQUESTS_PER_EPOCH` are made in an epoch, so
that a subnet gone dark can't empty the hunter's purse.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from hunter.evidence import bad_chunk, wrong_leaf
from ledger.contracts.epochs import Ballot
from ledger.contracts.evidence import BadEncodingEvidence, WrongDataEvidence
from ledger.contracts.requests import Item, ItemKind
from ledger.contracts.token import UNLIMITED
from ledger.errors import Reverted
from ledger.event_types import Attested, ItemAnswered, ItemRequested, ItemWithheld
from node.answers import described
from node.contents import (
    read_data_leaves,
    read_local,
    read_payload,
    read_trace,
    trace_leaf_count,
)
from node.exchange import Roster
from node.node import Node
from node.openings import BLOB_OF, local_leaf_counts
from node.outcome import RoundFacts
from node.requests import OpenRequest, open_requests
from protocol.beacon import Draw, seed_from
from protocol.errors import Rejected, Retryable
from protocol.hashing import abi_words, keccak256
from protocol.ids import Hash32, Round, Slot
from protocol.submission import Publication, SignedSubmission
from training.layout import chunk_layout

logger = logging.getLogger(__name__)

PATIENCE_ROUNDS = 2
REQUESTS_PER_EPOCH = 8
_ROUNDS_BACK = 6
_READERS: Mapping[ItemKind, Callable[..., object]] = {
    ItemKind.DATA: read_data_leaves,
    ItemKind.TRACE: read_trace,
    ItemKind.PAYLOAD: read_payload,
    ItemKind.LOCAL: read_local,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """Something of a submission that a majority vouched for."""

    round: Round
    miner: Slot
    digest: Hash32
    kind: ItemKind


class Seeker:
    """One hunter's search for what is withheld."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._had: set[Want] = set()
        self._missed: dict[Want, Round] = {}
        self._looked: dict[Round, Round] = {}
        self._read: set[Hash32] = set()

    async def work(self) -> None:
        """Looks at the last rounds, asks for what stayed away, and follows what was asked."""
        chain = self._node.chain
        if chain.paused:
            return
        first = Round(max(1, chain.round - _ROUNDS_BACK))
        self._forget_before(first)
        for number in range(first, chain.round + 1):
            round_ = Round(number)
            # Once a round is often enough: what is missing is a matter of rounds.
            late = chain.time > chain.clock.attest_deadline(round_)
            if late and self._looked.get(round_) != chain.round:
                await self._look(round_)
                self._looked[round_] = chain.round
        for want, since in sorted(self._missed.items(), key=lambda item: item[0].round):
            if chain.round - since >= PATIENCE_ROUNDS:
                await self._ask(want)
        await self._follow()

    def evidence(self) -> list[WrongDataEvidence | BadEncodingEvidence]:
        """What the answers since the last call prove: data leaves other than those assigned, chunks that no encoder writes."""
        found = []
        for event in self._node.chain.events.events(ItemAnswered):
            if event.id in self._read or event.item.kind not in (ItemKind.DATA, ItemKind.PAYLOAD):
                continue
            signed = self._signed(event)
            if signed is None:
                continue
            self._read.add(event.id)
            evidence = self._evidence_in(event, signed)
            if evidence is not None:
                found.append(evidence)
        return found

    def _evidence_in(
        self, event: ItemAnswered, signed: SignedSubmission
    ) -> WrongDataEvidence | BadEncodingEvidence | None:
        # Of an item that does not exist, the last leaf is shown.
        opening, spec = event.opening, self._node.run_file.spec
        if event.item.kind is ItemKind.PAYLOAD:
            return bad_chunk(
                signed,
                opening.position,
                leaf=opening.content,
                proof=opening.proof,
                codec=spec.codec,
            )
        if opening.position >= spec.chain.samples_per_round:
            return None
        return wrong_leaf(
            signed,
            opening.position,
            claimed=Hash32(opening.content),
            proof=opening.proof,
            dataset=self._node.dataset,
        )

    def is_waiting(self) -> bool:
        """Whether a request of ours is still open."""
        return bool(self._own())

    async def _look(self, round_: Round) -> None:
        roster = await self._node.chain.roster(round_)
        if roster is None:
            return
        facts = await self._node.chain.round_facts(round_)
        bits = facts.tally().bits
        vouched = [
            slot for slot, miner in facts.miners.items() if bits[slot] and miner in facts.commits
        ]
        for slot in vouched:
            await self._fetch(facts, roster, slot, with_local=slot == self._drawn(facts, vouched))

    async def _fetch(
        self, facts: RoundFacts, roster: Roster, slot: Slot, *, with_local: bool
    ) -> None:
        miner = facts.miners[slot]
        want = partial(Want, round=facts.round, miner=slot, digest=facts.commits[miner])
        submission = want(kind=ItemKind.SUBMISSION)
        publication = await self._publication(roster, submission)
        if publication is None:
            return
        self._have(submission)
        for kind in _READERS:
            wanted = want(kind=kind)
            if (kind is ItemKind.LOCAL and not with_local) or wanted in self._had:
                continue
            if await self._can_be_had(publication, kind):
                self._have(wanted)
            else:
                self._miss(wanted)

    async def _publication(self, roster: Roster, want: Want) -> Publication | None:
        """The submission, from memory, from our board, or from whoever lists it now."""
        exchange, chain = self._node.exchange, self._node.chain
        miner = next(each for each, digest in roster.commits.items() if digest == want.digest)
        if miner not in exchange.committed(roster):
            exchange.reload(roster)
        if miner not in exchange.committed(roster):
            endpoints = [*await chain.miner_endpoints(), *await chain.validator_endpoints()]
            await exchange.pull(roster, endpoints)
        publication = exchange.committed(roster).get(miner)
        if publication is None:
            self._miss(want)
        return publication

    async def _can_be_had(self, publication: Publication, kind: ItemKind) -> bool:
        node, submission = self._node, publication.signed.submission
        endpoints = node.chain.endpoints()
        mirrors = [*await node.chain.validator_endpoints(), endpoints.get(submission.miner, "")]
        read = partial(_READERS[kind], submission=submission, spec=node.run_file.spec)
        try:
            await node.exchange.content(
                publication, BLOB_OF[kind], [mirror for mirror in mirrors if mirror], read
            )
        except (Retryable, Rejected) as error:
            logger.debug("%s of %s: %s", BLOB_OF[kind], submission.miner, error)
            return False
        return True

    async def _ask(self, want: Want) -> None:
        """Opens a request for a leaf, unless the same was asked for before or the purse says no."""
        node, chain = self._node, self._node.chain
        events = chain.events.events(ItemRequested)
        asked = {(event.item.digest, event.item.kind) for event in events}
        params = node.run_file.spec.chain
        last = chain.clock.epoch_of(want.round) + params.fraud_window_epochs
        if (want.digest, want.kind) in asked or chain.epoch > last:
            return
        item = self._item(want)
        key = f"ask/{item.id.hex()}"
        if not node.outbox.known(key) and not await self._can_pay(item):
            return
        await self._approve()
        ballots = [
            Ballot(slot=event.slot, root=event.root, bitmap=event.bitmap)
            for event in chain.events.events(Attested, round_=want.round)
        ]
        try:
            await node.outbox.submit(chain.contracts.requests.request_call(item, ballots), key)
        except Reverted as error:
            logger.warning("can't ask for %s: %s", described(item), error)
            self._have(want)
            return
        logger.warning("asked on chain for %s, which nobody serves", described(item))

    async def _can_pay(self, item: Item) -> bool:
        node, params = self._node, self._node.run_file.spec.chain
        note = f"requests/{node.chain.epoch}"
        made = int.from_bytes(node.journal.noted(note) or b"", "big")
        if (
            made >= REQUESTS_PER_EPOCH
            or len(self._own(item.digest)) >= params.requests_per_submission
        ):
            return False
        if await node.chain.contracts.token.balance_of(node.signer.address) < params.request_bond:
            logger.warning("no tokens for the bond of a request for %s", described(item))
            return False
        node.journal.note(note, (made + 1).to_bytes(4, "big"))
        return True

    async def _approve(self) -> None:
        node = self._node
        spender = node.run_file.contracts.requests
        call = node.chain.contracts.token.approve_call(spender, UNLIMITED)
        await node.outbox.submit(call, "approve/requests")

    async def _follow(self) -> None:
        """Has what nobody answered decided, and takes back the bonds of what is over."""
        node, chain = self._node, self._node.chain
        open_ones = self._own()
        if open_ones:
            block = await chain.contracts.epochs.run_block()
            for request in open_ones:
                key = f"resolve/{request.id.hex()}"
                if block > request.deadline and not node.outbox.known(key):
                    call = chain.contracts.requests.resolve_call(request.item)
                    await node.outbox.submit(call, key)
        await self._withdraw()

    async def _withdraw(self) -> None:
        node, chain = self._node, self._node.chain
        mine = {
            event.id
            for event in chain.events.events(ItemRequested)
            if event.requester == node.signer.address
        }
        closed = [event.id for event in chain.events.events(ItemAnswered) if event.id in mine]
        closed += [event.id for event in chain.events.events(ItemWithheld) if event.id in mine]
        key = f"withdraw-bonds/{len(closed)}"
        if closed and not node.outbox.known(key):
            requests = chain.contracts.requests
            if await requests.balance_of(node.signer.address):
                await node.outbox.submit(requests.withdraw_call(node.signer.address), key)

    def _own(self, digest: Hash32 | None = None) -> list[OpenRequest]:
        return [
            request
            for request in open_requests(self._node.chain.events)
            if request.requester == self._node.signer.address
            and digest in (None, request.item.digest)
        ]

    def _item(self, want: Want) -> Item:
        return Item(
            round=want.round,
            miner=want.miner,
            digest=want.digest,
            kind=want.kind,
            index=self._index(want),
        )

    def _index(self, want: Want) -> int:
        """Secret and repeatable: nobody can prepare for it, and a restarted hunter asks for the same."""
        spec = self._node.run_file.spec
        words = abi_words(want.digest, int(want.kind))
        message = self._node.run_file.domain.digest(
            keccak256(b"syntience.request.index.v1" + words)
        )
        draw = Draw(Hash32(keccak256(self._node.signer.sign_digest(message))))
        match want.kind:
            case ItemKind.SUBMISSION:
                return 0
            case ItemKind.DATA:
                return draw.below(spec.chain.samples_per_round)
            case ItemKind.TRACE:
                return draw.below(trace_leaf_count(spec))
            case ItemKind.PAYLOAD:
                return draw.below(chunk_layout(spec.model, spec.codec).chunks)
            case ItemKind.LOCAL:
                counts = local_leaf_counts(spec.model)
                tensor = draw.below(len(counts))
                return tensor << 32 | draw.below(counts[tensor])

    def _signed(self, event: ItemAnswered) -> SignedSubmission | None:
        """The answered submission with its signature, off chain or from an answer of its own."""
        submission = event.submission
        versions = self._node.exchange.versions(submission.round).get(submission.miner, {})
        if event.item.digest in versions:
            return versions[event.item.digest].signed
        for other in self._node.chain.events.events(ItemAnswered):
            same = other.item.digest == event.item.digest
            if same and other.item.kind is ItemKind.SUBMISSION:
                return SignedSubmission(submission=submission, signature=other.opening.content)
        return None

    def _drawn(self, facts: RoundFacts, vouched: list[Slot]) -> Slot | None:
        if facts.evaluation is None or not vouched:
            return None
        draw = Draw(seed_from(facts.evaluation, "local state", self._node.me))
        return sorted(vouched)[draw.below(len(vouched))]

    def _have(self, want: Want) -> None:
        self._had.add(want)
        self._missed.pop(want, None)

    def _miss(self, want: Want) -> None:
        if want not in self._had:
            self._missed.setdefault(want, self._node.chain.round)

    def _forget_before(self, round_: Round) -> None:
        self._had = {want for want in self._had if want.round >= round_}
        self._missed = {want: self._missed[want] for want in self._missed if want.round >= round_}
        self._looked = {known: self._looked[known] for known in self._looked if known >= round_}
