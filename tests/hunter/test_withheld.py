"""What answers to data requests prove: leaves and chunks that are not what they must be, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

import pytest

from hunter.withheld import Seeker
from ledger.contracts.evidence import BadEncodingEvidence, WrongDataEvidence
from ledger.contracts.requests import Item, ItemKind, Opening
from ledger.event_types import ItemAnswered
from miner.work import Work
from node.node import Node
from protocol.ids import ZERO_ADDRESS, Hash32, Round, Slot, Units
from protocol.merkle import MerkleTree, leaf_hash
from protocol.submission import Publication
from tests.bench import Desk, desk_over
from tests.specs import some_hash
from tests.subnet.stepped import key_named
from tests.training.vectors import CHUNK, cases_of
from training.dataset import TokenDataset

MINER, KEY = key_named("miner").address, key_named("operator")


@dataclass(kw_only=True)
class Answers:
    """A node that knows one publication, and what was answered on chain."""

    desk: Desk
    publication: Publication
    events: list[ItemAnswered] = field(default_factory=list)

    def show(self, kind: ItemKind, index: int, opening: Opening) -> None:
        submission = self.publication.signed.submission
        item = Item(
            round=Round(1),
            miner=Slot(0),
            digest=self.desk.digest(self.publication),
            kind=kind,
            index=index,
        )
        self.events.append(
            ItemAnswered(
                block=1,
                log_index=len(self.events),
                tx_hash=some_hash("tx"),
                id=some_hash(f"{len(self.events)}"),
                paid=ZERO_ADDRESS,
                fee=Units(0),
                item=item,
                submission=submission,
                opening=opening,
            )
        )

    def evidence(self) -> list[WrongDataEvidence | BadEncodingEvidence]:
        known = {MINER: {self.desk.digest(self.publication): self.publication}}
        node = SimpleNamespace(
            chain=SimpleNamespace(events=SimpleNamespace(events=lambda kind: self.events)),
            exchange=SimpleNamespace(versions=lambda round_: known),
            run_file=self.desk.run_file,
            dataset=self.desk.dataset,
        )
        return Seeker(cast(Node, node)).evidence()


@pytest.fixture(scope="module")
def desk(text: TokenDataset) -> Desk:
    return desk_over(text)


@pytest.fixture(scope="module")
def work(desk: Desk) -> Work:
    return desk.work("zero", MINER)[0]


def test_vectors__are_of_the_desks_codec(desk: Desk) -> None:
    assert desk.spec.codec.bits == 2
    assert desk.spec.codec.chunk >= CHUNK


def opening(tree: MerkleTree, position: int, content: bytes) -> Opening:
    return Opening(position=position, content=content, proof=tree.proof(position))


def test_evidence__answered_chunks__are_cases_where_no_encoder_wrote_them(
    desk: Desk, work: Work
) -> None:
    leaves = [leaf for _, leaf, canonical in cases_of(2, 4) if canonical]
    leaves.append(next(leaf for name, leaf, _ in cases_of(2, 4) if name == "quiet NaN"))
    tree = MerkleTree([leaf_hash(leaf) for leaf in leaves])
    answers = Answers(desk=desk, publication=desk.publish(work, KEY, payload_root=tree.root))
    last = len(leaves) - 1
    answers.show(ItemKind.PAYLOAD, 0, opening(tree, 0, leaves[0]))
    assert answers.evidence() == []
    answers.show(ItemKind.PAYLOAD, 900, opening(tree, last, leaves[last]))
    [found] = answers.evidence()
    assert isinstance(found, BadEncodingEvidence)
    assert (found.chunk, found.leaf) == (last, leaves[last])
    assert found.signed == answers.publication.signed


def test_evidence__answered_data_leaves__are_cases_where_another_was_assigned(
    desk: Desk, work: Work
) -> None:
    leaves = [desk.dataset.leaf_hash(sample) for sample in desk.assigned(MINER)]
    last = len(leaves) - 1
    leaves[3] = some_hash("a nicer sample")
    tree = MerkleTree(leaves)
    answers = Answers(desk=desk, publication=desk.publish(work, KEY, data_root=tree.root))
    answers.show(ItemKind.DATA, 2, opening(tree, 2, leaves[2]))
    answers.show(ItemKind.DATA, 1 << 20, opening(tree, last, leaves[last]))
    absent = Opening(position=last + 1, content=Hash32(bytes(32)))
    answers.show(ItemKind.DATA, last + 1, absent)
    assert answers.evidence() == []
    answers.show(ItemKind.DATA, 3, opening(tree, 3, leaves[3]))
    [found] = answers.evidence()
    assert isinstance(found, WrongDataEvidence)
    assert (found.index, found.claimed_leaf) == (3, leaves[3])
