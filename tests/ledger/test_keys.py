"""Key files and signatures."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from eth_account import Account

from ledger.errors import (
    BadSignature,
    KeyFileExists,
    KeyFileInvalid,
    KeyFileMissing,
    WrongPassword,
)
from ledger.keys import LocalSigner, create_key_file, key_file_address, load_key_file
from ledger.recover import recover
from protocol.errors import OperatorError
from protocol.hashing import keccak256
from protocol.ids import Hash32

CHEAP = 1 << 10
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


def digest(number: int) -> Hash32:
    return Hash32(keccak256(number.to_bytes(4, "big")))


def test_key_file__created__opens_with_its_password_alone(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "miner.json"
    address = create_key_file(path, "secret", scrypt_cost=CHEAP)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert key_file_address(path) == address
    assert load_key_file(path, "secret").address == address
    with pytest.raises(WrongPassword, match="does not open the key file"):
        load_key_file(path, "Secret")
    assert [item.name for item in path.parent.iterdir()] == ["miner.json"]


def test_key_file__taken_name__is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "key.json"
    create_key_file(path, "first", scrypt_cost=CHEAP)
    before = path.read_bytes()
    with pytest.raises(KeyFileExists, match="never overwritten"):
        create_key_file(path, "second", scrypt_cost=CHEAP)
    assert path.read_bytes() == before


def test_key_file__name_taken_meanwhile__is_never_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "key.json"
    path.write_text("precious")
    monkeypatch.setattr(Path, "exists", lambda self: False)
    with pytest.raises(KeyFileExists):
        create_key_file(path, "second", scrypt_cost=CHEAP)
    assert path.read_text() == "precious"


def test_key_file__no_place_for_it__says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(OperatorError, match=r"can't write the key file .*choose a place"):
        create_key_file(tmp_path / "file" / "key.json", "pw", scrypt_cost=CHEAP)


def test_key_file__scrypt_cost__is_configurable_and_bounded(tmp_path: Path) -> None:
    path = tmp_path / "key.json"
    create_key_file(path, "secret", scrypt_cost=2 * CHEAP)
    parameters = json.loads(path.read_text())["crypto"]["kdfparams"]
    assert parameters["n"] == 2 * CHEAP
    for cost in (CHEAP // 2, CHEAP + 1):
        with pytest.raises(OperatorError, match="power of two"):
            create_key_file(tmp_path / "other.json", "secret", scrypt_cost=cost)


def test_key_file__of_another_tool__opens(tmp_path: Path) -> None:
    account = Account.create()
    path = tmp_path / "geth.json"
    path.write_text(json.dumps(Account.encrypt(account.key, "pw", kdf="scrypt", iterations=CHEAP)))
    path.chmod(0o600)
    assert load_key_file(path, "pw").address == account.address


@pytest.mark.parametrize(
    "content",
    [
        "",
        "nonsense",
        "[]",
        "{}",
        '{"version": 3}',
        '{"version": 3, "crypto": {}}',
        pytest.param("[" * 100_000, id="deep"),
    ],
)
def test_key_file__damaged__says_so(tmp_path: Path, content: str) -> None:
    path = tmp_path / "key.json"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(KeyFileInvalid, match="not a usable key file"):
        load_key_file(path, "pw")


def test_key_file__missing_or_open_to_others__says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "key.json"
    with pytest.raises(KeyFileMissing, match="keys new"):
        load_key_file(path, "pw")
    create_key_file(path, "pw", scrypt_cost=CHEAP)
    path.chmod(0o644)
    with pytest.raises(KeyFileInvalid, match="chmod 600"):
        load_key_file(path, "pw")


def test_key_file__empty_password__is_refused(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="password"):
        create_key_file(tmp_path / "key.json", "")


@pytest.mark.parametrize("raw", [b"", bytes(32), b"\xff" * 32, bytes(31), bytes(33)])
def test_local_signer__no_valid_key__is_refused(raw: bytes) -> None:
    with pytest.raises(KeyFileInvalid):
        LocalSigner(raw)


def test_local_signer__shown__keeps_the_key_to_itself() -> None:
    signer = LocalSigner(b"\x01" * 32)
    assert "01" * 32 not in repr(signer)


def test_sign_digest__many_digests__canonical_and_recovered() -> None:
    signer = LocalSigner(b"\x11" * 32)
    parities = set()
    for number in range(64):
        signature = signer.sign_digest(digest(number))
        assert len(signature) == 65
        parities.add(signature[64])
        assert int.from_bytes(signature[32:64], "big") <= ORDER // 2
        assert recover(digest(number), signature) == signer.address
        assert recover(digest(number + 1), signature) != signer.address
    assert parities == {27, 28}


def test_sign_digest__same_key_in_eth_account__same_signature() -> None:
    key = b"\x22" * 32
    theirs = Account.unsafe_sign_hash(digest(1), key).signature
    assert LocalSigner(key).sign_digest(digest(1)) == bytes(theirs)


def test_sign_digest__not_32_bytes__is_refused() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        LocalSigner(b"\x11" * 32).sign_digest(Hash32(b"short"))


def test_recover__second_form_of_a_signature__is_refused() -> None:
    signature = LocalSigner(b"\x33" * 32).sign_digest(digest(1))
    s = int.from_bytes(signature[32:64], "big")
    high = signature[:32] + (ORDER - s).to_bytes(32, "big") + bytes([55 - signature[64]])
    with pytest.raises(BadSignature):
        recover(digest(1), high)
    compact = signature[:32] + (s | (signature[64] - 27) << 255).to_bytes(32, "big")
    with pytest.raises(BadSignature):
        recover(digest(1), compact)


@pytest.mark.parametrize("v", [0, 1, 26, 29, 35, 255])
def test_recover__other_v__is_refused(v: int) -> None:
    signature = LocalSigner(b"\x33" * 32).sign_digest(digest(1))
    with pytest.raises(BadSignature):
        recover(digest(1), signature[:64] + bytes([v]))


@pytest.mark.parametrize("r", [0, ORDER, 2**256 - 1])
def test_recover__r_or_s_out_of_range__is_refused(r: int) -> None:
    word = r.to_bytes(32, "big")
    fine = (1).to_bytes(32, "big")
    for signature in (word + fine + b"\x1b", fine + word + b"\x1b"):
        with pytest.raises(BadSignature):
            recover(digest(1), signature)


def test_recover__r_off_the_curve__is_refused() -> None:
    refused = 0
    for r in range(1, 20):
        try:
            recover(digest(1), r.to_bytes(32, "big") + (1).to_bytes(32, "big") + b"\x1b")
        except BadSignature:
            refused += 1
    assert refused > 0
