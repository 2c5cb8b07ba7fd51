"""What `syntience data` says about samples: checked data sets, the documents of a sample, and proofs for third parties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from protocol import record
from protocol.canonical import Json
from protocol.errors import OperatorError, Rejected
from protocol.hashing import sha256
from protocol.spec import DataSpec
from syntience.errors import DataMissing
from training.dataset import TokenDataset, parse_manifest
from training.sources import Passage, SourceProof, check_document, check_proof
from training.tokenizer import encode_documents, read_tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What documents show of a sample.

    Attributes:
        index: the sample's.
        tokens: how many it has.
        parts: all its parts.
        proven: those whose document was there and gives these tokens.
    """

    index: int
    tokens: int
    parts: Sequence[Passage]
    proven: Sequence[Passage]

    @property
    def is_whole(self) -> bool:
        """Whether every token of the sample is shown to come from a document."""
        return set(self.parts) == set(self.proven)


def trusted_spec(*, run: Path | None, manifest: Path | None) -> DataSpec:
    """The data set's spec from a run file, a run's spec or a manifest: whoever checks decides whom to believe."""
    if (run is None) == (manifest is None):
        raise OperatorError(
            "what to check against is not clear", "give either --run FILE or --manifest FILE"
        )
    if manifest is not None:
        return parse_manifest(manifest)
    assert run is not None
    from syntience.deployment import load_spec  # brings all of the chain along

    return load_spec(run).data


def read_proof(path: Path) -> SourceProof:
    """A proof that `syntience data source --json` printed; raises OperatorError."""
    try:
        return SourceProof.from_bytes(_read(path).strip())
    except Rejected as error:
        raise OperatorError(
            f"{path} is no proof of a sample's source ({error})",
            "write it with `syntience data source DATASET INDEX --json`",
        ) from error


def check_source(
    proof: SourceProof, spec: DataSpec, *, documents: Sequence[Path], tokenizer: Path
) -> Shown:
    """Checks a proof and what the documents say to it.

    Args:
        proof: of a sample.
        spec: what is believed.
        documents: files, each the UTF-8 text of one document and nothing else.
        tokenizer: the data set's `tokenizer.json`.

    Raises:
        OperatorError: the proof doesn't hold, a document isn't the sample's, or the tokenizer is another one.
    """
    if sha256(_read(tokenizer)) != spec.tokenizer_digest:
        raise OperatorError(
            f"{tokenizer} is not the data set's tokenizer", "give its tokenizer.json"
        )
    words, dtype = read_tokenizer(tokenizer), "<u2" if spec.token_bytes == 2 else "<u4"
    proven: list[Passage] = []
    try:
        parts = check_proof(proof, spec)
        for path in documents:
            text = _read(path)
            encoded = encode_documents(
                words, [_decoded(text, path)], end_token=spec.end_token, dtype=dtype
            )
            proven += check_document(proof, spec, text, encoded.tokens.tolist())
    except Rejected as error:
        raise OperatorError(str(error), "ask for another proof, or the right documents") from error
    return Shown(index=proof.index, tokens=spec.sample_tokens, parts=parts, proven=proven)


def to_json(passage: Passage) -> dict[str, Json]:
    """A passage for programs."""
    return record.to_json(passage)


def require_sample(dataset: TokenDataset, index: int) -> None:
    """Raises OperatorError if there is no such sample."""
    if not 0 <= index < dataset.total_samples:
        raise OperatorError(
            f"there is no sample {index}", f"they count from 0 to {dataset.total_samples - 1}"
        )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataMissing(
            f"can't read {path} ({error.strerror or error})", "check its name and permissions"
        ) from error


def _decoded(text: bytes, path: Path) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise DataMissing(
            f"{path} is not UTF-8 text (byte {error.start})", "give the document as it was prepared"
        ) from error
