"""`syntience model import` and `evaluate`, and specs that start from what was imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from protocol.errors import OperatorError
from protocol.model_spec import LlamaSpec, TransformersSpec
from syntience.cli.app import run
from syntience.importing import load_model
from syntience.spec_file import changed_spec, derive_spec
from tests.chain import ROOT
from tests.real_data import real_file
from tests.specs import SPEC
from tests.training import llama2c_reference as reference
from tests.training.foreigners import CONTEXT, VOCABULARY, add_tokenizer, save_model
from training.dataset import TOKENIZER
from training.model_folder import read_model
from training.parameters import shapes
from training.prepare import prepare_dataset
from training.roots import state_root
from training.tokenizer import END_OF_TEXT
from training.vocabulary import GivenTokenizer

pytest.importorskip("transformers", reason="transformers is not installed (an extra)")
pytestmark = pytest.mark.filterwarnings("ignore")
TEXT = (ROOT / "LICENSE").read_text()


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model's folder with its tokenizer."""
    folder = tmp_path_factory.mktemp("models") / "gpt2"
    save_model(folder, "gpt2")
    add_tokenizer(folder, [TEXT])
    return folder


@pytest.fixture(scope="module")
def data(gpt2: Path) -> Path:
    """A data set in that model's tokens."""
    folder = gpt2.parent / "data"
    given = GivenTokenizer(path=gpt2 / TOKENIZER, end_token=END_OF_TEXT)
    prepare_dataset([TEXT], folder, tokenizer=given, context=24)
    return folder


def llama2c(folder: Path) -> tuple[Path, Path]:
    """A model of llama2.c and its tokenizer."""
    pieces = [(bytes([byte]), -float(byte)) for byte in range(32, 127)]
    shape = reference.Shape(vocabulary=259 + len(pieces))
    reference.write_tokenizer(folder / "tok.bin", pieces)
    reference.write_model(folder / "model.bin", shape, reference.random_weights(shape))
    return folder / "model.bin", folder / "tok.bin"


def test_import__llama2c__is_a_folder_to_start_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, tokenizer = llama2c(tmp_path)
    command = ["model", "import", str(model), str(tmp_path / "out"), "--tokenizer", str(tokenizer)]
    assert run([*command, "--context", "12"]) == 0
    shown = capsys.readouterr().out
    stored = read_model(tmp_path / "out")
    assert state_root(stored.params).hex() in shown
    assert "texts end with '<s>'" in shown
    assert stored.model.context == 12
    assert stored.words is not None
    assert stored.words.tokenizer().encode("A cat").ids[0] == 1


def test_import__a_folder_of_transformers__keeps_model_and_words(
    gpt2: Path, tmp_path: Path
) -> None:
    assert run(["model", "import", str(gpt2), str(tmp_path / "out")]) == 0
    before, after = read_model(gpt2), read_model(tmp_path / "out")
    assert (after.model, after.words) == (before.model, before.words)
    assert state_root(after.params) == state_root(before.params)


@pytest.mark.parametrize("source", ["nothing", "no such/name at all", "owner/name/more"])
def test_import__no_such_path_or_name__says_what_would_do(
    tmp_path: Path, source: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    assert run(["model", "import", source, "out"]) == 1
    assert "give the path of a folder" in capsys.readouterr().err


def test_import__a_folder_or_file_that_is_no_model__says_so(
    tmp_path: Path, gpt2: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text.txt").write_text("words")
    for source in (tmp_path, tmp_path / "text.txt"):
        assert run(["model", "import", str(source), str(tmp_path / "out")]) == 1
        assert "neither a model's folder nor" in capsys.readouterr().err
    with pytest.raises(OperatorError, match="is for a"):
        load_model(str(gpt2), tokenizer=gpt2 / TOKENIZER)


def test_evaluate__text_and_data_set__print_the_loss_of_chance(
    gpt2: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text.txt").write_text(TEXT[:2000])
    for text in (tmp_path / "text.txt", data):
        assert run(["model", "evaluate", str(gpt2), str(text)]) == 0
        shown = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
        assert float(shown["loss"].split()[0]) == pytest.approx(5.7, abs=0.1)  # ln 300
        assert float(shown["perplexity"]) == pytest.approx(VOCABULARY, rel=0.1)


def test_evaluate__stories260k__prints_its_loss(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = real_file("tinystories_valid_794k.txt").read_text()[: 1 << 15]
    (tmp_path / "text.txt").write_text(text)
    command = ["model", "evaluate", str(real_file("stories260K.bin")), str(tmp_path / "text.txt")]
    assert run([*command, "--tokenizer", str(real_file("tok512.bin"))]) == 0
    shown = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert float(shown["loss"].split()[0]) == pytest.approx(1.4, abs=0.1)


def test_derive_spec__from_a_folder__has_its_model_context_of_the_data_and_root(
    gpt2: Path, data: Path
) -> None:
    spec = derive_spec(SPEC, data=data, changes=["inner.learning_rate=0.001"], start=gpt2)
    assert isinstance(spec.model, TransformersSpec)
    assert (spec.start, spec.model.context, spec.model.vocab_size) == ("checkpoint", 24, VOCABULARY)
    stored = read_model(gpt2, context=24)
    assert spec.chain.genesis_root == state_root(stored.params)
    assert shapes(spec.model) == shapes(stored.model)
    assert spec.data.end_token == 0
    with pytest.raises(OperatorError, match="give the one to start from with --start"):
        derive_spec(spec, data=data, changes=[])
    assert derive_spec(spec, data=data, changes=[], start=gpt2) == spec
    kept = changed_spec(spec, ["chain.train_s=77"])
    assert kept.chain.genesis_root == spec.chain.genesis_root
    assert (kept.start, kept.chain.train_s) == ("checkpoint", 77)
    with pytest.raises(OperatorError, match=r"leave model\.… out"):
        changed_spec(spec, ["model.vocab_size=400"])


def test_derive_spec__from_a_llama__is_the_project_s_own(data: Path, tmp_path: Path) -> None:
    save_model(tmp_path, "llama")
    spec = derive_spec(SPEC, data=data, changes=[], start=tmp_path)
    assert isinstance(spec.model, LlamaSpec)
    assert spec.start == "checkpoint"


def test_derive_spec__model_and_data_that_don_t_fit__say_so(
    gpt2: Path, data: Path, tmp_path: Path
) -> None:
    with pytest.raises(OperatorError, match="follows from --start"):
        derive_spec(SPEC, data=data, changes=["model.context=8"], start=gpt2)
    prepare_dataset(
        ["The cat sat on the mat. " * 40], tmp_path / "other", vocab_size=300, context=24
    )
    with pytest.raises(OperatorError, match="other tokens than the model"):
        derive_spec(SPEC, data=tmp_path / "other", changes=[], start=gpt2)
    given = GivenTokenizer(path=gpt2 / TOKENIZER)
    prepare_dataset([TEXT], tmp_path / "long", tokenizer=given, context=CONTEXT + 1)
    with pytest.raises(OperatorError, match="shorter --context"):
        derive_spec(SPEC, data=tmp_path / "long", changes=[], start=gpt2)
    save_model(tmp_path / "small", "gpt2", vocab_size=200)
    with pytest.raises(OperatorError, match="more tokens than the 200"):
        derive_spec(SPEC, data=data, changes=[], start=tmp_path / "small")
