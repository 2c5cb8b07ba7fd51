"""The commands that operators give, against real contracts: what they print, and what they say when something is wrong."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ledger.abi import CONTRACT_NAMES
from ledger.connection import Connection
from ledger.outbox import Outbox
from protocol.ids import to_address
from protocol.runfile import RunFile
from syntience.cli.app import run
from syntience.session import outbox_file
from tests.chain import Anvil, start_anvil
from tests.ports import free_port
from tests.specs import tokens
from tests.syntience.town import PASSWORD, Town, found_town, small_spec

Capture = pytest.CaptureFixture[str]
NOBODY = "http://127.0.0.1:1"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("SYNTIENCE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("SYNTIENCE_PASSWORD", PASSWORD)
    monkeypatch.setenv("SYNTIENCE_OPERATOR_PASSWORD", PASSWORD)


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """One run for all tests of this file: each uses keys of its own."""
    with pytest.MonkeyPatch.context() as patch, start_anvil() as anvil:
        patch.setenv("SYNTIENCE_PASSWORD", PASSWORD)
        yield found_town(anvil, tmp_path_factory.mktemp("town"))


@pytest.fixture(scope="module")
def other_chain() -> Iterator[Anvil]:
    """A node of another chain."""
    with start_anvil("--chain-id", "4242") as anvil:
        yield anvil


@pytest.fixture
def refusal(capsys: Capture) -> Callable[[list[str]], str]:
    """Runs a command that must fail with one line, and returns the line."""

    def refused(arguments: list[str]) -> str:
        capsys.readouterr()
        assert run(arguments) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("error: ")
        assert captured.err.count("\n") == 1
        return captured.err

    return refused


def _shown(capsys: Capture) -> dict[str, str]:
    """A command's lines by their names."""
    lines = capsys.readouterr().out.splitlines()
    return {line.split()[0]: line[11:] for line in lines}


def _commands(town: Town, key: str) -> dict[str, list[str]]:
    """Every command that needs a node."""
    options = town.options(key)
    node = [*options, "--state", str(town.folder / f"state-{key}"), "--data", str(town.data)]
    return {
        "deposit": ["stake", "deposit", "--role", "miner", "--amount", "100", "--endpoint", NOBODY, *options],
        "exit": ["stake", "exit", *options],
        "withdraw": ["stake", "withdraw", *options],
        "set-endpoint": ["stake", "set-endpoint", "--endpoint", NOBODY, *options],
        "rotate-operator": [
            "stake", "rotate-operator", "--operator-keystore", str(town.path(key)), *options,
        ],
        "claim": ["rewards", "claim", *options],
        "status": ["status", *options],
        "miner": ["miner", "run", *node],
        "validator": ["validator", "run", *node],
        "hunter": ["hunter", "run", *node],
    }  # fmt: skip


COMMANDS = (
    "deposit",
    "exit",
    "withdraw",
    "set-endpoint",
    "rotate-operator",
    "claim",
    "status",
    "miner",
    "validator",
    "hunter",
)
SIGNING = tuple(name for name in COMMANDS if name != "status")
SPENDING = ("deposit", "miner", "validator", "hunter")


@pytest.fixture(scope="module")
def stranger(town: Town) -> str:
    """A funded key that never did anything."""
    town.key("stranger", tokens=tokens(1000))
    return "stranger"


def _replaced(arguments: list[str], flag: str, value: str) -> list[str]:
    at = arguments.index(flag)
    return [*arguments[: at + 1], value, *arguments[at + 2 :]]


@pytest.mark.parametrize("command", COMMANDS)
def test_command__no_node_answers__says_so(
    town: Town, stranger: str, refusal: Callable[[list[str]], str], command: str
) -> None:
    arguments = _replaced(_commands(town, stranger)[command], "--rpc", NOBODY)
    assert re.search(
        r"no Ethereum node answers at http://127.0.0.1:1 .*: check --rpc", refusal(arguments)
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_command__node_of_another_chain__says_so(
    town: Town, stranger: str, other_chain: Anvil, refusal: Callable[[list[str]], str], command: str
) -> None:
    arguments = _replaced(_commands(town, stranger)[command], "--rpc", other_chain.url)
    assert "follows chain 4242, the run lives on chain 31337: give --rpc" in refusal(arguments)


@pytest.mark.parametrize("command", COMMANDS)
def test_command__no_run_file__says_so(
    town: Town, stranger: str, refusal: Callable[[list[str]], str], command: str
) -> None:
    arguments = _replaced(_commands(town, stranger)[command], "--run", "/none/run.json")
    assert "there is no run file /none/run.json: get it from the run's operator" in refusal(
        arguments
    )


@pytest.mark.parametrize("command", SIGNING)
def test_command__wrong_password__says_so(
    town: Town,
    stranger: str,
    refusal: Callable[[list[str]], str],
    monkeypatch: pytest.MonkeyPatch,
    command: str,
) -> None:
    monkeypatch.setenv("SYNTIENCE_PASSWORD", "wrong")
    line = refusal(_commands(town, stranger)[command])
    assert f"the password does not open the key file {town.path(stranger)}: check" in line


@pytest.mark.parametrize("command", SIGNING)
def test_command__no_key_file__says_so(
    town: Town, stranger: str, refusal: Callable[[list[str]], str], command: str
) -> None:
    arguments = _replaced(_commands(town, stranger)[command], "--keystore", "/none/key.json")
    assert "there is no key file /none/key.json: make one with `syntience keys new`" in refusal(
        arguments
    )


@pytest.mark.parametrize("command", SPENDING)
def test_command__empty_balance__says_so(
    town: Town, refusal: Callable[[list[str]], str], command: str
) -> None:
    key = f"poor-{command}"
    signer = town.key(key, ether=0, tokens=tokens(1000))
    line = refusal(_commands(town, key)[command])
    assert signer.address in line
    assert "native currency" in line
    assert "send it some and start again" in line


@pytest.mark.parametrize("command", ["miner", "validator", "hunter"])
def test_role__port_in_use__says_so(
    town: Town, stranger: str, refusal: Callable[[list[str]], str], command: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refusal([*_commands(town, stranger)[command], "--listen-port", str(port)])
    assert f"port {port} on 127.0.0.1 is in use: stop the process that listens there" in line
    assert "--listen-port" in line


@pytest.mark.parametrize("command", ["miner", "validator", "hunter"])
def test_role__missing_data__says_so(
    town: Town, stranger: str, refusal: Callable[[list[str]], str], command: str
) -> None:
    arguments = _replaced(_commands(town, stranger)[command], "--data", "/none")
    assert "there is no data set in /none: make it with `syntience data prepare`" in refusal(
        arguments
    )


def test_role__another_run_s_data__says_so(
    town: Town, stranger: str, refusal: Callable[[list[str]], str], tmp_path: Path
) -> None:
    other = tmp_path / "other"
    small_spec(other)
    manifest = json.loads((other / "manifest.json").read_text())
    (other / "manifest.json").write_text(
        json.dumps({**manifest, "name": "other"}, sort_keys=True, separators=(",", ":"))
    )
    arguments = _replaced(_commands(town, stranger)["hunter"], "--data", str(other))
    line = refusal([*arguments, "--listen-port", str(free_port())])
    assert "holds another data set than the run's: give the right --data" in line


@pytest.mark.parametrize("command", ["miner", "validator", "hunter"])
def test_role__state_that_can_t_be_kept__says_so(
    town: Town, stranger: str, refusal: Callable[[list[str]], str], command: str
) -> None:
    state = str(town.run_file / "state")
    line = refusal(_replaced(_commands(town, stranger)[command], "--state", state))
    assert f"can't keep the node's state in {state}" in line
    assert "choose another folder with --state" in line


@pytest.mark.parametrize("command", ["miner", "validator"])
def test_role__event_files_that_can_t_be_written__says_so(
    town: Town, stranger: str, refusal: Callable[[list[str]], str], command: str
) -> None:
    line = refusal([*_commands(town, stranger)[command], "--tensorboard", str(town.run_file)])
    assert f"can't write {town.run_file}/" in line
    assert "choose a place that this user may write" in line


def test_role__unknown_behaviour__names_those_that_exist(
    town: Town, stranger: str, refusal: Callable[[list[str]], str]
) -> None:
    line = refusal([*_commands(town, stranger)["miner"], "--behaviour", "polite"])
    assert "unknown behaviour 'polite': choose one of honest, copier" in line


@pytest.mark.parametrize(
    ("role", "amount", "words"),
    [
        (
            "miner",
            "99.5",
            "a miner needs a stake of at least 100 tokens, this would be 99.5: deposit",
        ),
        ("validator", "100", "a validator needs a stake of at least 1000 tokens"),
        ("miner", "1001", "holds 1000 tokens, too few to deposit 1001"),
        ("miner", "lots", "'lots' is no amount of tokens: give --amount as a decimal number"),
    ],
)
def test_deposit__amount_that_can_t_be__says_so(
    town: Town,
    stranger: str,
    refusal: Callable[[list[str]], str],
    role: str,
    amount: str,
    words: str,
) -> None:
    arguments = _replaced(_commands(town, stranger)["deposit"], "--amount", amount)
    assert words in refusal(_replaced(arguments, "--role", role))
    assert town.anvil.nonce(_address(town, stranger)) == 0


def test_run_file__of_a_chain_that_started_anew__says_so(
    town: Town, stranger: str, refusal: Callable[[list[str]], str]
) -> None:
    with start_anvil() as fresh:
        arguments = _replaced(_commands(town, stranger)["status"], "--rpc", fresh.url)
        assert "a development chain that was restarted has lost the run" in refusal(arguments)


def test_deposit__first_one_without_role_or_endpoint__names_the_flags(
    town: Town, stranger: str, refusal: Callable[[list[str]], str]
) -> None:
    bare = ["stake", "deposit", "--amount", "100", *town.options(stranger)]
    assert "has no role in this run yet: give --role miner or validator" in refusal(bare)
    assert "give --endpoint http://HOST:PORT" in refusal([*bare, "--role", "miner"])
    wrong = refusal([*bare, "--role", "miner", "--endpoint", "ftp://host"])
    assert "is no plain http address" in wrong


def test_stake__from_deposit_to_withdrawal__prints_where_the_account_stands(
    town: Town, capsys: Capture
) -> None:
    owner, operator = town.key("life", tokens=tokens(300)), town.key("life-operator")
    later = town.key("life-later")
    hot = ["--operator-keystore", str(town.path("life-operator"))]
    assert town.deposit("life", "miner", "150", *hot, "--payout", later.address) == 0
    shown = _shown(capsys)
    assert shown["account"] == owner.address
    assert re.fullmatch(r"miner, slot \d+ from epoch 1 on", shown["role"])
    assert (shown["operator"], shown["payout"]) == (operator.address, later.address)
    assert (shown["deposited"], shown["stake"]) == ("150 tokens", "150 tokens")

    assert run(["stake", "deposit", "--amount", "50.25", *town.options("life")]) == 0
    assert _shown(capsys)["stake"] == "200.25 tokens"
    moved = ["--endpoint", "http://127.0.0.1:7711"]
    assert run(["stake", "set-endpoint", *moved, *town.options("life-operator")]) == 1
    assert "does not act for" in capsys.readouterr().err
    assert run(["stake", "set-endpoint", *moved, *town.options("life")]) == 0
    assert _shown(capsys) == {"account": owner.address, "endpoint": "http://127.0.0.1:7711"}

    assert run(["status", *town.options("life-operator")]) == 0
    shown = _shown(capsys)
    assert shown["account"] == owner.address
    assert shown["operator"] == f"{operator.address} at http://127.0.0.1:7711"
    assert shown["stake"] == "200.25 tokens"
    assert re.fullmatch(r"before genesis, [\d,]+ s more", shown["phase"])
    assert re.fullmatch(r"miner \d+", shown["slot"])
    assert shown["windows"].startswith("train 8 s, commit 4 s, publish 4 s, ")
    assert shown["stakes"] == "at least miner 100, validator 1000 tokens"

    agreed = ["stake", "consent", "--account", owner.address, *town.options("life-later")]
    assert run(agreed) == 0
    consent = capsys.readouterr().out.strip()
    named = ["--operator", later.address, "--consent", consent]
    assert run(["stake", "rotate-operator", *named, *town.options("life")]) == 0
    assert _shown(capsys)["operator"] == f"{later.address} from round 1 on"

    assert run(["stake", "exit", *town.options("life")]) == 0
    assert _shown(capsys)["unbonding"] == "200.25 tokens"
    assert run(["status", "--json", *town.options("life")]) == 0
    status = json.loads(capsys.readouterr().out)
    assert status["account"]["unbonding"] == str(tokens(200.25))
    assert status["min_stakes"] == {"miner": str(tokens(100)), "validator": str(tokens(1000))}
    assert (status["round"], status["epoch"], status["settled"]) == (0, 0, [])
    assert run(["stake", "withdraw", *town.options("life")]) == 1
    assert re.search(r"200.25 tokens are locked for [\d,]+ s more", capsys.readouterr().err)


def test_deposit__consent_of_another_key__is_refused_before_anything_is_sent(
    town: Town, stranger: str, refusal: Callable[[list[str]], str], capsys: Capture
) -> None:
    town.key("consenting")
    account = _address(town, stranger)
    assert run(["stake", "consent", "--account", account, *town.options("consenting")]) == 0
    consent = capsys.readouterr().out.strip()
    arguments = _commands(town, stranger)["deposit"]
    named = ["--operator", town.founder.address, "--consent"]
    assert "the consent was not signed by" in refusal([*arguments, *named, consent])
    assert "65 bytes in hex" in refusal([*arguments, *named, "0x12"])
    assert town.anvil.nonce(account) == 0


def test_deposit__another_command_uses_the_key__says_so(
    town: Town, refusal: Callable[[list[str]], str]
) -> None:
    signer = town.key("busy", tokens=tokens(100))

    async def hold() -> str:
        path = outbox_file(town.folder / "state", 31337, signer.address)
        async with (
            await Connection.open(town.anvil.url) as connection,
            await Outbox.open(path, connection, signer),
        ):
            return await asyncio.to_thread(_refused_elsewhere, town)

    assert "another process" in asyncio.run(hold())


def _refused_elsewhere(town: Town) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "syntience", *_commands(town, "busy")["deposit"]],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    return done.stderr


def test_deploy__wrong_node_key_or_password__says_so(
    town: Town,
    refusal: Callable[[list[str]], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = ["--spec", str(town.folder / "spec.json"), "--out", str(tmp_path / "run.json")]
    key = ["--keystore", str(town.path("founder"))]
    assert "no Ethereum node answers" in refusal(["deploy", "--rpc", NOBODY, *key, *spec])
    none = ["--keystore", str(tmp_path / "none.json")]
    assert "there is no key file" in refusal(["deploy", "--rpc", NOBODY, *none, *spec])
    monkeypatch.setenv("SYNTIENCE_PASSWORD", "wrong")
    line = refusal(["deploy", "--rpc", town.anvil.url, *key, *spec])
    assert "the password does not open the key file" in line
    assert not (tmp_path / "run.json").exists()


def test_deploy__run_file_exists__is_not_overwritten(
    town: Town, refusal: Callable[[list[str]], str]
) -> None:
    options = ["--rpc", town.anvil.url, "--keystore", str(town.path("founder"))]
    spec = ["--spec", str(town.folder / "spec.json"), "--genesis-in", "1000"]
    line = refusal(["deploy", *options, *spec, "--out", str(town.run_file)])
    assert f"the run file {town.run_file} exists: choose another --out" in line


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (None, "can't read the spec"),
        ("{}", "is no valid spec"),
        ("not json", "is no valid spec"),
        pytest.param("[" * 100_000, "nested deeper than", id="deep"),
        ('{"version": 1.5}', "is no valid spec"),
    ],
)
def test_deploy__spec_that_can_t_be__says_so(
    town: Town,
    refusal: Callable[[list[str]], str],
    tmp_path: Path,
    spec: str | None,
    words: str,
) -> None:
    file = tmp_path / "spec.json"
    if spec is not None:
        file.write_text(spec)
    options = ["--rpc", town.anvil.url, "--keystore", str(town.path("founder"))]
    out = tmp_path / "run.json"
    assert words in refusal(["deploy", *options, "--spec", str(file), "--out", str(out)])
    assert not out.exists()


def test_deploy__genesis_in_the_past_or_nothing_to_pay_with__says_so(
    town: Town, refusal: Callable[[list[str]], str], tmp_path: Path
) -> None:
    spec = ["--spec", str(town.folder / "spec.json"), "--out", str(tmp_path / "run.json")]
    options = ["--rpc", town.anvil.url, "--keystore"]
    line = refusal(["deploy", *options, str(town.path("founder")), *spec])
    assert "s in the past: choose a later genesis time" in line
    town.key("penniless", ether=0)
    genesis = ["--genesis-in", "1000"]
    fresh = ["--spec", str(town.folder / "spec.json"), "--out", str(tmp_path / "second.json")]
    line = refusal(["deploy", *options, str(town.path("penniless")), *fresh, *genesis])
    assert "send it some and start again" in line
    left = [path.name for path in tmp_path.iterdir()]
    assert left == [], "nothing was sent: another genesis may be chosen later"


def test_deploy__interrupted__goes_on_with_the_same_contracts(
    town: Town, tmp_path: Path, capsys: Capture
) -> None:
    founder = town.key("second-founder", ether=0)
    out = tmp_path / "run.json"
    arguments = [
        "deploy",
        "--rpc",
        town.anvil.url,
        "--keystore",
        str(town.path("second-founder")),
        "--spec",
        str(town.run_file),
        "--genesis-in",
        "5000",
        "--out",
        str(out),
    ]
    town.anvil.rpc("anvil_setBalance", founder.address, hex(6 * 10**15))
    assert run(arguments) == 1
    assert "send it some" in capsys.readouterr().err
    sent = town.anvil.nonce(founder.address)
    assert 0 < sent < len(CONTRACT_NAMES)
    assert (tmp_path / "run.json.founding").is_dir()
    town.anvil.fund(founder.address)
    assert run([*arguments, "--cap", "5"]) == 1
    assert "another run was being deployed" in capsys.readouterr().err
    assert run(arguments) == 0
    assert town.anvil.nonce(founder.address) == len(CONTRACT_NAMES)
    assert RunFile.from_bytes(out.read_bytes()).spec.chain.genesis_time > town.anvil.time()
    assert not (tmp_path / "run.json.founding").exists()


def test_claim__nothing_settled__says_so_and_sends_nothing(
    town: Town, stranger: str, capsys: Capture
) -> None:
    assert run(_commands(town, stranger)["claim"]) == 0
    assert "once it is settled" in capsys.readouterr().out
    assert town.anvil.nonce(_address(town, stranger)) == 0


def test_address__mistyped__says_so(
    town: Town, stranger: str, refusal: Callable[[list[str]], str]
) -> None:
    account = _address(town, stranger)
    mistyped = account[:-1] + ("0" if account[-1] != "0" else "1")
    claim = [*_commands(town, stranger)["claim"], "--account", mistyped]
    assert "checksum" in refusal(claim)
    assert "give --account an address" in refusal([*claim[:-1], "nonsense"])


def _address(town: Town, key: str) -> str:
    named = json.loads(town.path(key).read_text())["address"]
    return to_address(named)
