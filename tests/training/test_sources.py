"""Where samples come from: against a slow reference, and proofs that hold for the right document and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from protocol.errors import Rejected
from protocol.spec import DataSpec
from tests.specs import some_hash
from tests.training.test_shuffle import slow
from training.dataset import TokenDataset
from training.prepare import prepare_dataset
from training.sources import (
    Opening,
    SourceProof,
    check_document,
    check_proof,
    passages,
    prove_source,
)
from training.tokenizer import load_tokenizer
from training.verification import verify

SEED = 4
VOCABULARY = ["a", "to be", " or not", "ü🙂", "\n"]


def texts_of(sizes: list[int]) -> list[str]:
    """Documents of so many words each; many documents are equal, and most are shorter than a sample."""
    return ["".join(VOCABULARY[n % 5] for n in range(size)) for size in sizes]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> TokenDataset:
    sizes = [3, 200, 1, 1, 40, 7, 7, 7, 0, 500] * 12
    return made(texts_of(sizes), tmp_path_factory.mktemp("sources") / "set")


def made(texts: list[str], out: Path, context: int = 16) -> TokenDataset:
    prepare_dataset(texts, out, vocab_size=262, context=context, seed=SEED)
    return TokenDataset.open(out)


def visible(texts: list[str]) -> list[str]:
    return [text for text in texts if text.strip()]


def stream_of(dataset: TokenDataset, texts: list[str]) -> list[tuple[int, int, int]]:
    """(token, document, which of its tokens) of the whole stream."""
    tokenizer = load_tokenizer(dataset)
    return [
        (token, number, offset)
        for number, text in enumerate(visible(texts))
        for offset, token in enumerate([*tokenizer.encode(text).ids, dataset.spec.end_token])
    ]


def tokens_of(dataset: TokenDataset, text: str) -> list[int]:
    return [*_tokenizer(dataset.folder).encode(text).ids, dataset.spec.end_token]


@lru_cache
def _tokenizer(folder: Path) -> Tokenizer:
    return load_tokenizer(TokenDataset.open(folder))


def check_against_reference(dataset: TokenDataset, texts: list[str]) -> None:
    stream, length = stream_of(dataset, texts), dataset.spec.sample_tokens
    documents = visible(texts)
    assert dataset.spec.documents == len(documents)
    for index in range(dataset.total_samples):
        start = slow(dataset.total_samples, SEED, index) * length
        piece = stream[start : start + length]
        assert dataset.sample(index).tolist() == [token for token, _, _ in piece]
        source = dataset.sources.records[index]
        assert (int(source["document"]), int(source["offset"])) == piece[0][1:]
        expected: list[tuple[int, int, int, int]] = []
        for place, (_, number, offset) in enumerate(piece):
            if not expected or expected[-1][0] != number:
                expected.append((number, offset, place, place + 1))
            else:
                expected[-1] = (*expected[-1][:3], place + 1)
        found = passages(dataset, index)
        assert [(p.document, p.offset, p.start, p.end) for p in found] == expected
        digests = [sha256(documents[part.document].encode()).digest() for part in found]
        assert [part.digest for part in found] == digests


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(sizes=st.lists(st.integers(0, 60), min_size=30, max_size=60), context=st.integers(1, 40))
def test_sources__any_documents__equal_the_slow_reference(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], context: int
) -> None:
    texts = texts_of([*sizes, 200])
    dataset = made(texts, tmp_path_factory.mktemp("reference") / "set", context)
    check_against_reference(dataset, texts)
    assert verify(dataset.folder).spec == dataset.spec


def test_prove__every_sample__holds_and_shows_its_documents(dataset: TokenDataset) -> None:
    texts = visible(texts_of([3, 200, 1, 1, 40, 7, 7, 7, 0, 500] * 12))
    for index in range(dataset.total_samples):
        proof = SourceProof.from_bytes(prove_source(dataset, index).to_bytes())
        parts = check_proof(proof, dataset.spec)
        assert parts == passages(dataset, index)
        for part in parts:
            text = texts[part.document]
            shown = check_document(proof, dataset.spec, text.encode(), tokens_of(dataset, text))
            assert part in shown
            assert {each.digest for each in shown} == {part.digest}


def sample_across(dataset: TokenDataset, documents: int) -> int:
    """A sample that lies in so many documents."""
    return next(
        index
        for index in range(dataset.total_samples)
        if len(passages(dataset, index)) == documents
    )


def test_check__document_of_another_sample__is_refused(dataset: TokenDataset) -> None:
    proof = prove_source(dataset, sample_across(dataset, 1))
    with pytest.raises(Rejected, match="none of those"):
        check_document(proof, dataset.spec, b"to be", tokens_of(dataset, "to be"))


def test_check__other_tokens_than_the_sample_s__are_refused(dataset: TokenDataset) -> None:
    """As another tokenizer would give them."""
    texts = visible(texts_of([3, 200, 1, 1, 40, 7, 7, 7, 0, 500] * 12))
    index = sample_across(dataset, 2)
    proof, part = prove_source(dataset, index), passages(dataset, index)[0]
    text = texts[part.document]
    tokens = tokens_of(dataset, text)
    wrong = [*tokens]
    wrong[part.offset] += 1
    for given_ in (wrong, tokens[:-1], [*tokens, 0]):
        with pytest.raises(Rejected, match=r"tokens are others|begins elsewhere"):
            check_document(proof, dataset.spec, text.encode(), given_)


def flipped(text: str) -> str:
    return ("1" if text[0] == "0" else "0") + text[1:]


def without_last(proof: SourceProof) -> SourceProof:
    return replace(proof, documents=proof.documents[:-1])


CHANGES: dict[str, Callable[[SourceProof], SourceProof]] = {
    "version": lambda p: replace(p, version=2),
    "data set": lambda p: replace(p, dataset_root=some_hash("other")),
    "index": lambda p: replace(p, index=p.index ^ 1),
    "index far away": lambda p: replace(p, index=10**9),
    "index below": lambda p: replace(p, index=-1),
    "tokens": lambda p: replace(p, tokens=flipped(p.tokens)),
    "fewer tokens": lambda p: replace(p, tokens=p.tokens[:-4]),
    "no hex": lambda p: replace(p, tokens="zz"),
    "proof": lambda p: replace(p, proof=p.proof[:-1]),
    "source": lambda p: replace(p, source=replace(p.source, leaf=flipped(p.source.leaf))),
    "shorter source": lambda p: replace(p, source=replace(p.source, leaf=p.source.leaf[32:])),
    "source proof": lambda p: replace(p, source=replace(p.source, proof=())),
    "first document": lambda p: replace(p, first_document=p.first_document + 1),
    "no documents": lambda p: replace(p, documents=()),
    "document": lambda p: replace(
        p, documents=(replace(p.documents[0], leaf=flipped(p.documents[0].leaf)), *p.documents[1:])
    ),
    "document proof": lambda p: replace(
        p, documents=(Opening(leaf=p.documents[0].leaf, proof=()), *p.documents[1:])
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_check__changed_proof__is_refused(dataset: TokenDataset, change: str) -> None:
    proof = CHANGES[change](prove_source(dataset, sample_across(dataset, 2)))
    with pytest.raises(Rejected):
        check_proof(proof, dataset.spec)


def test_check__documents_behind_the_sample__are_refused(dataset: TokenDataset) -> None:
    index = sample_across(dataset, 2)
    proof, number = prove_source(dataset, index), passages(dataset, index)[-1].document + 1
    more = Opening(leaf=dataset.documents.leaf(number).hex(), proof=dataset.documents.proof(number))
    with pytest.raises(Rejected, match="lies behind the sample"):
        check_proof(replace(proof, documents=(*proof.documents, more)), dataset.spec)


def test_check__document_left_out__shows_when_the_one_before_ends(dataset: TokenDataset) -> None:
    """Without its successor the proof claims more of a document than there is."""
    texts = visible(texts_of([3, 200, 1, 1, 40, 7, 7, 7, 0, 500] * 12))
    proof = without_last(prove_source(dataset, sample_across(dataset, 2)))
    text = texts[proof.first_document]
    check_proof(proof, dataset.spec)
    with pytest.raises(Rejected, match="tokens are others"):
        check_document(proof, dataset.spec, text.encode(), tokens_of(dataset, text))


@pytest.mark.parametrize("field", ["dataset_root", "sources_root", "documents_root"])
def test_check__other_roots__are_refused(dataset: TokenDataset, field: str) -> None:
    spec: DataSpec = replace(dataset.spec, **{field: some_hash("other")})  # type: ignore[arg-type]
    with pytest.raises(Rejected):
        check_proof(prove_source(dataset, 0), spec)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"version":1}', b"\xff"])
def test_proof__other_bytes__are_refused(data: bytes) -> None:
    with pytest.raises(Rejected):
        SourceProof.from_bytes(data)


def test_sources__as_arrays__have_a_record_each(dataset: TokenDataset) -> None:
    assert len(dataset.sources.records) == dataset.total_samples
    assert len(dataset.documents.records) == dataset.spec.documents
    assert np.all(np.diff(dataset.documents.records["start"].astype(np.int64)) > 0)
