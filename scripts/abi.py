"""Compile the contracts and keep `ledger/abi/<Name>.json` equal to what the sources say.

Running a node must need no compiler, so the package ships each deployable contract as {contractName, abi, bytecode}.
`--check` compiles again and fails where a file differs, is missing or belongs to no contract. The settings come from
`foundry.toml`, so that this bytecode is the one which `forge test` tested.

A deployable contract is a non-abstract `contract` in a file right under `contracts/src`. It must fit the chain's size
limit and need no linking. Compiler warnings are errors here too.
"""

from __future__ import annotations

import argparse
import json
import posixpath
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import solcx

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "contracts" / "src"
SHIPPED = ROOT / "ledger" / "abi"
MAX_RUNTIME_BYTES = 24_576  # EIP-170
MAX_INIT_BYTES = 49_152  # EIP-3860, constructor arguments not counted

OUTPUTS = {
    "": ["ast"],
    "*": [
        "abi",
        "evm.bytecode.object",
        "evm.bytecode.linkReferences",
        "evm.deployedBytecode.object",
    ],
}

_IMPORT = re.compile(r"""^\s*(?:import|\}\s*from)\b[^;"']*["']([^"']+)["']""", re.MULTILINE)


def foundry_profile() -> dict[str, Any]:
    """The default profile of `foundry.toml`."""
    profile = tomllib.loads((ROOT / "foundry.toml").read_text())["profile"]["default"]
    assert isinstance(profile, dict)
    return profile


def resolve(path: str, *, importer: str, remappings: list[str]) -> str:
    """The source name of an import, as the compiler will work it out: longest remapping prefix wins."""
    if path.startswith("."):
        return posixpath.normpath(posixpath.join(posixpath.dirname(importer), path))
    for prefix, target in sorted((r.split("=", 1) for r in remappings), key=lambda r: -len(r[0])):
        if path.startswith(prefix):
            return target + path.removeprefix(prefix)
    return path


def read_sources(remappings: list[str]) -> dict[str, dict[str, str]]:
    """Every file under `contracts/src` and all that they import, by source name."""
    sources: dict[str, dict[str, str]] = {}
    pending = sorted(p.relative_to(ROOT).as_posix() for p in SOURCES.rglob("*.sol"))
    while pending:
        name = pending.pop()
        if name in sources:
            continue
        content = (ROOT / name).read_text()
        sources[name] = {"content": content}
        pending += [
            resolve(p, importer=name, remappings=remappings) for p in _IMPORT.findall(content)
        ]
    return sources


def compile_sources() -> dict[str, Any]:
    """The compiler's standard-JSON output. Errors raise; warnings about our own files exit."""
    profile = foundry_profile()
    sources = read_sources(profile["remappings"])
    request = {
        "language": "Solidity",
        "sources": sources,
        "settings": {
            "remappings": profile["remappings"],
            "optimizer": {"enabled": profile["optimizer"], "runs": profile["optimizer_runs"]},
            "viaIR": profile["via_ir"],
            "evmVersion": profile["evm_version"],
            "metadata": {
                "bytecodeHash": profile["bytecode_hash"],
                "appendCBOR": profile["cbor_metadata"],
            },
            "outputSelection": {name: OUTPUTS for name in sources if _is_deployable_source(name)},
        },
    }
    output: dict[str, Any] = solcx.compile_standard(request, solc_binary=ROOT / profile["solc"])
    ours = [
        e for e in output.get("errors", []) if e["sourceLocation"]["file"].startswith("contracts/")
    ]
    if ours:
        sys.exit("".join(e["formattedMessage"] for e in ours) + "abi: warnings are errors here")
    return output


def _is_deployable_source(name: str) -> bool:
    return posixpath.dirname(name) == "contracts/src"


def deployables(output: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(contract name, compiler output of it) of each deployable contract, by name."""
    found = []
    for source, unit in output["sources"].items():
        if not _is_deployable_source(source):
            continue
        for node in unit["ast"]["nodes"]:
            if node.get("contractKind") == "contract" and not node["abstract"]:
                found.append((node["name"], output["contracts"][source][node["name"]]))
    yield from sorted(found, key=lambda pair: pair[0])


def complaints(name: str, contract: dict[str, Any]) -> Iterator[str]:
    """Why this contract could not be deployed as it is shipped."""
    evm = contract["evm"]
    if evm["bytecode"]["linkReferences"]:
        yield f"{name} needs linking: make its library's functions internal, or the library a contract"
        return
    for what, code, limit in (
        ("runtime code", evm["deployedBytecode"]["object"], MAX_RUNTIME_BYTES),
        ("init code", evm["bytecode"]["object"], MAX_INIT_BYTES),
    ):
        if len(code) // 2 > limit:
            yield f"{name}: {len(code) // 2} bytes of {what}, the chain takes {limit}"


def render(name: str, contract: dict[str, Any]) -> str:
    """The text of the shipped file."""
    shipped = {
        "contractName": name,
        "abi": contract["abi"],
        "bytecode": "0x" + contract["evm"]["bytecode"]["object"],
    }
    return json.dumps(shipped, indent=1) + "\n"


def main() -> None:
    """Write or check the shipped files."""
    parser = argparse.ArgumentParser(prog="scripts/abi", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="change nothing; fail where a file is out of date"
    )
    check = parser.parse_args().check

    contracts = dict(deployables(compile_sources())) if SOURCES.is_dir() else {}
    if not contracts:
        sys.exit("abi: no deployable contract in contracts/src")
    problems = [c for name, contract in contracts.items() for c in complaints(name, contract)]
    if problems:
        sys.exit("\n".join(f"abi: {p}" for p in problems))

    wanted = {f"{name}.json": render(name, contract) for name, contract in contracts.items()}
    there = {p.name: p.read_text() for p in SHIPPED.glob("*.json")}
    stale = sorted(
        name for name in wanted.keys() | there.keys() if wanted.get(name) != there.get(name)
    )
    if check and stale:
        sys.exit(f"abi: out of date in ledger/abi: {', '.join(stale)}; run scripts/abi")
    if not check:
        SHIPPED.mkdir(parents=True, exist_ok=True)
        for name in stale:
            if name in wanted:
                (SHIPPED / name).write_text(wanted[name])
            else:
                (SHIPPED / name).unlink()
    largest = max(contracts, key=lambda n: len(contracts[n]["evm"]["deployedBytecode"]["object"]))
    largest_bytes = len(contracts[largest]["evm"]["deployedBytecode"]["object"]) // 2
    state = "match the sources" if check or not stale else f"written ({len(stale)} changed)"
    print(
        f"abi: {len(wanted)} contracts {state}; the largest is {largest}, {largest_bytes} of {MAX_RUNTIME_BYTES} bytes"
    )


if __name__ == "__main__":
    main()
