"""The harness contract of the arithmetic: compiled, put on a chain, and asked for many results at a time."""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ledger.abi import ContractAbi, parse_abi
from scripts.bench.float32_operations import Results
from scripts.bench.float32_vectors import Words

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "0x" + "32" * 20
BATCH = 4_000
"""Vectors of a call: 48 kB of operands."""
_SOURCE = "contracts/test/base/Float32Harness.sol"


@dataclass(frozen=True, slots=True, kw_only=True)
class Harness:
    """What a chain must be told: `anvil_setCode` at ADDRESS, then calls."""

    code: str
    abi: ContractAbi

    @staticmethod
    def compiled() -> Harness:
        """On its own, so that neither forge's output nor its absence matters."""
        with tempfile.TemporaryDirectory(prefix="syntience-float32-") as folder:
            places = ["--out", f"{folder}/out", "--cache-path", f"{folder}/cache"]
            command = [str(ROOT / "scripts" / "forge"), "build", _SOURCE, *places]
            subprocess.run(command, check=True, capture_output=True)
            built = Path(folder) / "out" / "Float32Harness.sol" / "Float32Harness.json"
            document = json.loads(built.read_text())
        return Harness(
            code=document["deployedBytecode"]["object"],
            abi=parse_abi("Float32Harness", document["abi"]),
        )

    def placing(self) -> list[Any]:
        """Parameters of `anvil_setCode`."""
        return [ADDRESS, self.code]

    def asking(self, number: int, operands: Words) -> list[Any]:
        """Parameters of `eth_call` for operation `number` on (n, 3) operands."""
        packed = operands.astype(">u4").tobytes()
        data = "0x" + self.abi.function("compute").encode_call((number, packed)).hex()
        return [{"to": ADDRESS, "data": data, "gas": hex(10**12)}, "latest"]

    def answered(self, answer: str) -> Results:
        """The results of a call."""
        (packed,) = self.abi.function("compute").decode_result(bytes.fromhex(answer[2:]))
        assert isinstance(packed, bytes)
        return np.frombuffer(packed, ">u8").astype(np.uint64)
