"""Where a sample comes from: records that say it, and proofs that anyone checks against two roots and the document alone.

The token stream is the documents' tokens one after the other, each document ended by the end-of-text token. It is cut into
samples, so a sample begins somewhere in a document and may reach into those that follow.

    SOURCE     of a sample: the number of the document in which its first token lies, and which token of it that is
    DOCUMENT   sha-256 of its UTF-8 text, and the place of its first token in the stream

A `SourceProof` opens a sample, its source and every document that it reaches into. From the source and the first document's
start follows the sample's place in the stream, from the others' starts where each begins inside the sample. What is left to
show is that a text has a document's digest and that its tokens are those of the sample: `check_document`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from protocol import canonical, record
from protocol.errors import Rejected
from protocol.hashing import sha256
from protocol.ids import Hash32
from protocol.merkle import depth_of, leaf_hash, verify_proof
from protocol.spec import DataSpec

if TYPE_CHECKING:
    from training.dataset import TokenDataset

SOURCE = np.dtype([("document", "<u8"), ("offset", "<u8")])
DOCUMENT = np.dtype([("digest", "V32"), ("start", "<u8")])
SOURCES_PER_LEAF, DOCUMENTS_PER_LEAF = 64, 32
PROOF_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A leaf of a tree of records, in hex, and its siblings bottom-up."""

    leaf: str
    proof: tuple[Hash32, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceProof:
    """The tokens of sample `index` as stored (hex), its source, and the documents from `first_document` on."""

    version: int
    dataset_root: Hash32
    index: int
    tokens: str
    proof: tuple[Hash32, ...]
    source: Opening
    first_document: int
    documents: tuple[Opening, ...]

    def to_bytes(self) -> bytes:
        """Canonical JSON."""
        return canonical.dumps(record.to_json(self))

    @classmethod
    def from_bytes(cls, data: bytes) -> SourceProof:
        """Strict inverse of `to_bytes`; raises `Rejected`."""
        return record.from_json(cls, canonical.loads(data))


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """The part of a sample that lies in one document; its last token may be the one that ends the document.

    Attributes:
        document: its number.
        digest: sha-256 of its text.
        offset: which of the document's tokens comes first.
        start, end: the tokens [start, end) of the sample.
    """

    document: int
    digest: Hash32
    offset: int
    start: int
    end: int


def passages(dataset: TokenDataset, index: int) -> list[Passage]:
    """The parts of a sample, in order; at least one."""
    source = dataset.sources.records[index]
    number, length = int(source["document"]), dataset.spec.sample_tokens
    place = int(dataset.documents.records[number]["start"]) + int(source["offset"])
    found = [number]
    records = dataset.documents.records
    while found[-1] + 1 < len(records) and int(records[found[-1] + 1]["start"]) < place + length:
        found.append(found[-1] + 1)
    return _parts(number, place, [records[each] for each in found], length)


def prove_source(dataset: TokenDataset, index: int) -> SourceProof:
    """Opens everything that says where a sample comes from."""
    documents = dataset.documents
    covered = [passage.document for passage in passages(dataset, index)]
    return SourceProof(
        version=PROOF_VERSION,
        dataset_root=dataset.root,
        index=index,
        tokens=dataset.sample_bytes(index).hex(),
        proof=dataset.proof(index),
        source=Opening(leaf=dataset.sources.leaf(index).hex(), proof=dataset.sources.proof(index)),
        first_document=covered[0],
        documents=tuple(
            Opening(leaf=documents.leaf(number).hex(), proof=documents.proof(number))
            for number in covered
        ),
    )


def check_proof(proof: SourceProof, spec: DataSpec) -> list[Passage]:
    """The parts of the sample, as the roots of `spec` bind them; raises `Rejected` for a proof that does not hold."""
    _require(proof.version == PROOF_VERSION, f"version {proof.version} is not {PROOF_VERSION}")
    _require(proof.dataset_root == spec.dataset_root, "it is of another data set")
    _require(0 <= proof.index < spec.total_samples, "there is no such sample")
    tokens = _bytes(proof.tokens)
    _require(len(tokens) == spec.sample_tokens * spec.token_bytes, "the sample has another length")
    stands = verify_proof(
        root=spec.dataset_root,
        leaf=leaf_hash(tokens),
        index=proof.index,
        proof=proof.proof,
        depth=depth_of(spec.total_samples),
    )
    _require(stands, "the tokens are not those of the sample")
    source = _opened(
        proof.source,
        proof.index,
        SOURCE,
        per_leaf=SOURCES_PER_LEAF,
        total=spec.total_samples,
        root=spec.sources_root,
    )
    first = int(source["document"])
    _require(proof.first_document == first and proof.documents != (), "it begins elsewhere")
    records = [
        _opened(
            opening,
            first + place,
            DOCUMENT,
            per_leaf=DOCUMENTS_PER_LEAF,
            total=spec.documents,
            root=spec.documents_root,
        )
        for place, opening in enumerate(proof.documents)
    ]
    place = int(records[0]["start"]) + int(source["offset"])
    starts = [*(int(each["start"]) for each in records[1:]), place + spec.sample_tokens]
    _require(place < starts[0], "the sample begins behind its document")
    _require(all(a < b for a, b in pairwise(starts)), "a document lies behind the sample")
    return _parts(first, place, records, spec.sample_tokens)


def check_document(
    proof: SourceProof, spec: DataSpec, text: bytes, tokens: Sequence[int]
) -> list[Passage]:
    """The parts of the sample that come from this document, shown token by token.

    Args:
        proof: of a sample.
        spec: the data set's, from the run or its manifest.
        text: the document's UTF-8 bytes.
        tokens: what the data set's tokenizer makes of it, with the end-of-text token.

    Raises:
        Rejected: the proof does not hold, the document is none of the sample's, or its tokens are others.
    """
    parts = check_proof(proof, spec)
    dtype = "<u2" if spec.token_bytes == 2 else "<u4"
    sample = np.frombuffer(_bytes(proof.tokens), dtype).tolist()
    found = [part for part in parts if part.digest == sha256(text)]
    _require(found != [], "this document is none of those that the sample is said to come from")
    for part in found:
        given = list(tokens[part.offset : part.offset + part.end - part.start])
        _require(given == sample[part.start : part.end], "the document's tokens are others")
        if part.end < spec.sample_tokens:
            ends = part.offset + part.end - part.start
            _require(ends == len(tokens), "the next document begins elsewhere")
    return found


def _parts(first: int, place: int, records: Iterable[np.void], sample_tokens: int) -> list[Passage]:
    """Passages of a sample at a place of the stream, from the records of the documents that it reaches into."""
    listed = list(records)
    ends = [int(each["start"]) - place for each in listed[1:]] + [sample_tokens]
    parts = []
    for number, (each, end) in enumerate(zip(listed, ends, strict=True), start=first):
        begin = int(each["start"]) - place
        parts.append(
            Passage(
                document=number,
                digest=Hash32(bytes(each["digest"])),
                offset=max(0, -begin),
                start=max(0, begin),
                end=end,
            )
        )
    return parts


def _opened(
    opening: Opening,
    record_number: int,
    dtype: np.dtype[np.void],
    *,
    per_leaf: int,
    total: int,
    root: Hash32,
) -> np.void:
    """The record out of a leaf that stands under the root."""
    _require(0 <= record_number < total, "there is no such document or sample")
    leaf, (place, within) = _bytes(opening.leaf), divmod(record_number, per_leaf)
    _require(
        len(leaf) == dtype.itemsize * min(per_leaf, total - place * per_leaf),
        "a leaf has another length",
    )
    stands = verify_proof(
        root=root,
        leaf=leaf_hash(leaf),
        index=place,
        proof=opening.proof,
        depth=depth_of(-(-total // per_leaf)),
    )
    _require(stands, "a leaf does not stand under its root")
    found: np.void = np.frombuffer(leaf, dtype)[within]
    return found


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise Rejected("the proof holds no hex where it should") from error


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Rejected(f"the proof does not hold: {otherwise}")
