"""Key files (Ethereum keystores, version 3, scrypt) and the signer that holds an opened key.

A key file is created with mode 600 and never overwritten: losing a key is losing a stake.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
from pathlib import Path

from eth_keyfile import create_keyfile_json, decode_keyfile_json
from eth_keys.datatypes import PrivateKey

from ledger.errors import KeyFileExists, KeyFileInvalid, KeyFileMissing, WrongPassword
from protocol.canonical import MAX_DEPTH, nesting
from protocol.errors import OperatorError
from protocol.ids import Address, Hash32, to_address

SCRYPT_COST = 1 << 17
"""scrypt's n: about 128 MiB and half a second per attempt. Memory = 1 KiB * n."""
SCRYPT_COST_MINIMUM = 1 << 10
_ORDER = 0xFFFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFE_BAAEDCE6_AF48A03B_BFD25E8C_D0364141


class LocalSigner:
    """Signs with a key in this process's memory (`protocol.ports.Signer`)."""

    def __init__(self, private_key: bytes) -> None:
        if len(private_key) != 32 or not 0 < int.from_bytes(private_key, "big") < _ORDER:
            raise KeyFileInvalid(
                "not a secp256k1 private key", "a private key has 32 bytes (64 hex digits)"
            )
        self._key = PrivateKey(private_key)
        self._address = to_address(self._key.public_key.to_canonical_address())

    @property
    def address(self) -> Address:
        """The key's address."""
        return self._address

    def sign_digest(self, digest: Hash32) -> bytes:
        """r || s || v, 65 bytes, v 27 or 28, s in the lower half; deterministic (RFC 6979)."""
        if len(digest) != 32:
            raise ValueError(f"a digest has 32 bytes, not {len(digest)}")
        r_s_parity: bytes = self._key.sign_msg_hash(digest).to_bytes()
        return r_s_parity[:64] + bytes([27 + r_s_parity[64]])

    def __repr__(self) -> str:
        return f"LocalSigner({self._address})"


def new_private_key() -> bytes:
    """A private key from the system's randomness."""
    return (secrets.randbelow(_ORDER - 1) + 1).to_bytes(32, "big")


def create_key_file(
    path: Path, password: str, *, private_key: bytes | None = None, scrypt_cost: int = SCRYPT_COST
) -> Address:
    """Encrypts a key (a new one by default) into a file that only its owner reads.

    Args:
        scrypt_cost: scrypt's n, a power of two.

    Returns:
        The key's address.

    Raises:
        KeyFileExists: there is a file already; it stays as it is.
    """
    if scrypt_cost < SCRYPT_COST_MINIMUM or scrypt_cost & (scrypt_cost - 1):
        raise OperatorError(
            f"scrypt cost {scrypt_cost} is not usable",
            f"give a power of two of at least {SCRYPT_COST_MINIMUM}",
        )
    if not password:
        raise OperatorError(
            "an empty password protects nothing", "give a password for the key file"
        )
    if path.exists():
        raise _exists(path)
    secret = private_key or new_private_key()
    address = LocalSigner(secret).address
    document = create_keyfile_json(secret, password.encode(), kdf="scrypt", iterations=scrypt_cost)
    _write_private(path, json.dumps(document).encode() + b"\n")
    return address


def load_key_file(path: Path, password: str) -> LocalSigner:
    """Opens a key file.

    Raises:
        KeyFileMissing, KeyFileInvalid, WrongPassword: with what to do about it.
    """
    document = _read(path)
    try:
        secret = decode_keyfile_json(document, password.encode())
    except ValueError as error:
        if "MAC" in str(error):
            raise WrongPassword(
                f"the password does not open the key file {path}",
                "check the password (or the password file)",
            ) from error
        raise _invalid(path, str(error)) from error
    except (KeyError, TypeError, NotImplementedError) as error:
        raise _invalid(path, f"{type(error).__name__}: {error}") from error
    return LocalSigner(bytes(secret))


def key_file_address(path: Path) -> Address:
    """The address that a key file names, without its password."""
    named = _read(path).get("address")
    if not isinstance(named, str):
        raise _invalid(path, "it names no address")
    try:
        return to_address(bytes.fromhex(named.removeprefix("0x")))
    except ValueError as error:
        raise _invalid(path, "its address is not hex") from error


def _read(path: Path) -> dict[str, object]:
    try:
        mode = path.stat().st_mode
        raw = path.read_bytes()
    except FileNotFoundError as error:
        raise KeyFileMissing(
            f"there is no key file {path}",
            "make one with `syntience keys new`, or give the right path",
        ) from error
    except OSError as error:
        raise KeyFileInvalid(
            f"cannot read the key file {path} ({error.strerror})", "mend its permissions"
        ) from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise KeyFileInvalid(
            f"the key file {path} is open to other users", f"run: chmod 600 {path}"
        )
    try:
        document = json.loads(raw if nesting(raw) <= MAX_DEPTH else b"")
    except ValueError as error:
        raise _invalid(path, "it is not JSON") from error
    if not isinstance(document, dict) or document.get("version") != 3:
        raise _invalid(path, "it is not a version 3 keystore")
    return document


def _write_private(path: Path, data: bytes) -> None:
    """Appears under its name whole or not at all: a hard link to a finished file fails if the name is taken."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(draft, path)
            except FileExistsError as error:
                raise _exists(path) from error
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise OperatorError(
            f"can't write the key file {path} ({error.strerror or error})",
            "choose a place that this user may write and that has room",
        ) from error


def _exists(path: Path) -> KeyFileExists:
    return KeyFileExists(
        f"the key file {path} exists and is never overwritten",
        "choose another path, or move the old file away",
    )


def _invalid(path: Path, why: str) -> KeyFileInvalid:
    return KeyFileInvalid(
        f"{path} is not a usable key file ({why})", "restore it from a copy, or give another file"
    )
