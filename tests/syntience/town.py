"""A small but complete run on a real chain, for tests of the commands: real text, a real data set, key files.

The model is so small that a round trains in milliseconds; everything else is as in any run.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from ledger.keys import SCRYPT_COST_MINIMUM, LocalSigner, create_key_file, new_private_key
from protocol.ids import Units
from protocol.merkle import depth_of
from protocol.runfile import RunFile
from protocol.spec import ChainParams, InnerSpec, RunSpec
from syntience.cli.app import run
from tests.chain import Anvil
from tests.ports import free_port
from tests.specs import CHAIN, MODEL, SPEC
from training.parameters import initial_parameters
from training.prepare import prepare_dataset
from training.roots import state_root

PASSWORD = "correct horse"
_TALE = "Once upon a time there was a {} who lived by the sea and counted {} boats every day. "
_STEPS, _BATCH = 2, 2


def small_spec(folder: Path, chain: ChainParams = CHAIN) -> RunSpec:
    """Makes a data set in `folder`, which must not exist, and a spec that fits it."""
    animals = ("cat", "dog", "heron", "mole", "pike")
    texts = ["".join(_TALE.format(animal, n) for n in range(60)) for animal in animals]
    model = replace(MODEL, vocab_size=300, hidden_size=16, intermediate_size=32, layers=1)
    data = prepare_dataset(texts, folder, vocab_size=300, context=model.context, name="tales")
    inner: InnerSpec = replace(SPEC.inner, steps=_STEPS, batch=_BATCH)
    return replace(
        SPEC,
        model=model,
        data=data,
        inner=inner,
        compute=replace(SPEC.compute, micro_batch=1),
        chain=replace(
            chain,
            samples_per_round=_STEPS * _BATCH,
            steps=_STEPS,
            train_samples=data.train_samples,
            dataset_depth=depth_of(data.total_samples),
            dataset_root=data.dataset_root,
            genesis_root=state_root(initial_parameters(model)),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Town:
    """A deployed run and its founder, who holds all tokens."""

    anvil: Anvil
    folder: Path
    founder: LocalSigner
    ports: dict[str, int] = field(default_factory=dict)

    @property
    def run_file(self) -> Path:
        return self.folder / "run.json"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def read(self) -> RunFile:
        """The run file's contents."""
        return RunFile.from_bytes(self.run_file.read_bytes())

    def key(self, name: str, *, ether: int = 100, tokens: Units | None = None) -> LocalSigner:
        """A key with a key file `<name>.json`, native currency and tokens."""
        signer = LocalSigner(self.make_key(name))
        self.anvil.fund(signer.address, ether)
        if tokens:
            self.give(signer.address, tokens)
        return signer

    def make_key(self, name: str) -> bytes:
        """Writes a key file, cheaply encrypted."""
        secret = new_private_key()
        path = self.path(name)
        create_key_file(path, PASSWORD, private_key=secret, scrypt_cost=SCRYPT_COST_MINIMUM)
        return secret

    def path(self, name: str) -> Path:
        """A key's file."""
        return self.folder / f"{name}.json"

    def give(self, address: str, amount: Units) -> None:
        """Tokens from the founder, as a wallet would send them."""
        selector = "a9059cbb"  # transfer(address,uint256)
        call = f"0x{selector}{address[2:].rjust(64, '0')}{amount:064x}"
        self.anvil.rpc("anvil_impersonateAccount", self.founder.address)
        token = self.read().contracts.token
        self.anvil.rpc(
            "eth_sendTransaction", {"from": self.founder.address, "to": token, "data": call}
        )

    def options(self, key: str) -> list[str]:
        """Run, node and key, as every command takes them."""
        return [
            "--run",
            str(self.run_file),
            "--rpc",
            self.anvil.url,
            "--keystore",
            str(self.path(key)),
        ]

    def port(self, key: str) -> int:
        """Where the node of an account serves; the same at every call."""
        if key not in self.ports:
            self.ports[key] = free_port()
        return self.ports[key]

    def deposit(self, key: str, role: str, amount: str, *more: str) -> int:
        """`syntience stake deposit`; returns the exit status."""
        endpoint = ["--endpoint", f"http://127.0.0.1:{self.port(key)}"]
        chosen = ["--role", role, "--amount", amount, *endpoint]
        return run(["stake", "deposit", *chosen, *self.options(key), *more])


def found_town(
    anvil: Anvil, folder: Path, *, genesis_in_s: int = 100_000, chain: ChainParams = CHAIN
) -> Town:
    """Deploys with the command itself; SYNTIENCE_PASSWORD must be set."""
    spec = small_spec(folder / "data", chain)
    (folder / "spec.json").write_bytes(spec.to_bytes())
    secret = new_private_key()
    founder = LocalSigner(secret)
    create_key_file(
        folder / "founder.json", PASSWORD, private_key=secret, scrypt_cost=SCRYPT_COST_MINIMUM
    )
    anvil.fund(founder.address)
    status = run(
        [
            "deploy",
            "--rpc",
            anvil.url,
            "--keystore",
            str(folder / "founder.json"),
            "--spec",
            str(folder / "spec.json"),
            "--genesis-in",
            str(genesis_in_s),
            "--out",
            str(folder / "run.json"),
            "--governor",
            founder.address,
        ]
    )
    assert status == 0
    return Town(anvil=anvil, folder=folder, founder=founder)
