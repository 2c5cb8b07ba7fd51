"""The command line: what it prints, where, and with which exit status."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from protocol.errors import Bug, OperatorError, Rejected, Retryable
from syntience import corpus
from syntience.cli import app as program
from syntience.cli.app import primary_cause, run
from syntience.errors import DownloadFailed, Interrupted
from syntience.signals import run_interruptible

HEAVY = (
    "aiohttp",
    "matplotlib",
    "numpy",
    "sqlalchemy",
    "tokenizers",
    "torch",
    "web3",
    "eth_keys",
    "prometheus_client",
)


class Refused(Bug, OperatorError):
    """A leaf under two kinds, as the chain's refusals are."""

    def __init__(self) -> None:
        OperatorError.__init__(self, "refused", "deposit more")


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("SYNTIENCE_"):
            monkeypatch.delenv(name)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], int]:
    """Runs a command that raises the given error."""

    def run_failing(error: BaseException, *arguments: str) -> int:
        broken = typer.Typer()

        @broken.command()
        def fail() -> None:
            raise error

        monkeypatch.setattr(program, "app", broken)
        return run(list(arguments))

    return run_failing


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (OperatorError("no stake", "deposit some"), 1, "error: no stake: deposit some\n"),
        (OperatorError("two\nlines", "one  fix"), 1, "error: two lines: one fix\n"),
        (Refused(), 1, "error: refused: deposit more\n"),
        (Rejected("not a run file"), 1, "error: not a run file\n"),
        (Retryable("the node is busy"), 75, "error: the node is busy\n"),
        (Interrupted(signal.SIGTERM), 143, ""),
        (Interrupted(signal.SIGINT), 130, ""),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_run__known_error__is_one_line_and_a_status(
    failing: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    status: int,
    line: str,
) -> None:
    assert failing(error) == status
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == line


@pytest.mark.parametrize("error", [Bug("root mismatch"), ZeroDivisionError("by zero")])
def test_run__fault_of_ours__shows_the_traceback_and_asks_for_a_report(
    failing: Callable[..., int], capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    assert failing(error) == 70
    shown = capsys.readouterr().err
    assert shown.startswith("Traceback")
    assert re.search(
        rf"error: a fault of the program \({type(error).__name__}: .*please report", shown
    )


def test_run__debug__adds_the_traceback_of_a_known_error(
    failing: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert failing(OperatorError("no stake", "deposit some"), "--debug") == 1
    shown = capsys.readouterr().err
    assert shown.startswith("Traceback")
    assert shown.endswith("\nerror: no stake: deposit some\n")


def test_run__errors_of_several_tasks__shows_the_gravest(
    failing: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    error = ExceptionGroup(
        "tasks", [Retryable("busy"), ExceptionGroup("", [OperatorError("no stake", "deposit")])]
    )
    assert failing(error) == 1
    assert capsys.readouterr().err == "error: no stake: deposit\n"
    group = BaseExceptionGroup("", [OperatorError("a", "b"), KeyError("x")])
    assert isinstance(primary_cause(group), KeyError)


@pytest.mark.parametrize(
    "arguments", [["no-such-command"], ["keys", "new", "--no-such-flag"], ["keys", "nix"]]
)
def test_run__wrong_usage__is_status_two_without_traceback(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    assert "No such" in captured.err


def test_version__prints_the_installed_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert re.fullmatch(r"syntience \d+\.\d+\.\d+\n", capsys.readouterr().out)


def test_help__imports_nothing_heavy() -> None:
    code = f"import sys, syntience.cli; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_module__without_arguments__shows_help() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "syntience"], capture_output=True, text=True, check=False
    )
    assert "keys" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_keys_new__then_show__name_one_address_and_keep_the_key_private(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYNTIENCE_PASSWORD", "correct horse")
    file = tmp_path / "keys" / "owner.json"
    assert run(["keys", "new", "--keystore", str(file)]) == 0
    address = capsys.readouterr().out
    assert re.fullmatch(r"0x[0-9a-fA-F]{40}\n", address)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text())["version"] == 3
    assert run(["keys", "show", "--keystore", str(file)]) == 0
    assert capsys.readouterr().out == address
    assert run(["keys", "new", "--keystore", str(file)]) == 1
    assert "exists and is never overwritten" in capsys.readouterr().err


def test_keys_new__no_password_and_no_terminal__says_how_to_give_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert run(["keys", "new", "--keystore", str(tmp_path / "k")]) == 1
    assert capsys.readouterr().err == (
        "error: the key file's password is not set: "
        "give --password-file, SYNTIENCE_PASSWORD_FILE or SYNTIENCE_PASSWORD\n"
    )
    assert not (tmp_path / "k").exists()


def test_keys_show__no_keystore_given__names_the_ways(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["keys", "show"]) == 1
    assert "give --keystore, SYNTIENCE_KEYSTORE" in capsys.readouterr().err


def test_data_prepare__own_text__makes_a_data_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tales.txt").write_text("Once upon a time there was a cat. <|endoftext|>" * 200)
    out = tmp_path / "set"
    arguments = [
        "data",
        "prepare",
        str(out),
        "--data",
        str(tmp_path / "tales.txt"),
        "--vocab",
        "300",
    ]
    assert run([*arguments, "--context", "16"]) == 0
    shown = capsys.readouterr().out
    manifest = json.loads((out / "manifest.json").read_text())
    assert f"dataset root  0x{manifest['dataset_root']}" in shown
    assert manifest["name"] == "tales"
    assert run([*arguments, "--context", "16"]) == 1
    assert capsys.readouterr().err.startswith(f"error: {out} exists: ")


def test_data_prepare__missing_text__is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["data", "prepare", str(tmp_path / "set"), "--data", str(tmp_path / "none")]) == 1
    assert capsys.readouterr().err == (
        f"error: there is no file or folder {tmp_path / 'none'}: give the path of your text with --data\n"
    )


def test_data_fetch__offline__is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def offline(archive: object) -> bytes:
        raise DownloadFailed("can't get it", "check the network")

    monkeypatch.setattr(corpus, "_from_index", offline)
    assert run(["data", "fetch", "--cache", str(tmp_path)]) == 1
    assert capsys.readouterr().err == "error: can't get it: check the network\n"


def test_doctor__this_machine__lists_every_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = run(
        [
            "doctor",
            "--cache",
            str(tmp_path),
            "--state",
            str(tmp_path / "state"),
            "--listen-port",
            "1",
        ]
    )
    shown = capsys.readouterr().out
    for name in ("python", "packages", "anvil", "text", "port", "disk"):
        assert re.search(rf"^(ok|warn|FAIL) +{name} ", shown, re.MULTILINE)
    assert "syntience data fetch" in shown
    assert status == int("FAIL" in shown)
    assert not list(tmp_path.iterdir())


def test_run_interruptible__no_signal__returns_the_result() -> None:
    async def work() -> int:
        return 3

    assert run_interruptible(work()) == 3


def test_run_interruptible__signal__lets_clean_up_run_first() -> None:
    done = []

    async def work() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0)
            done.append("cleaned up")

    with pytest.raises(Interrupted, match="stopped by SIGTERM"):
        run_interruptible(work())
    assert done == ["cleaned up"]
