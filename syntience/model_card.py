"""The model card of an export: from which run, round and root its weights came, and how to check that."""

from __future__ import annotations

import re
from dataclasses import dataclass

from protocol.ids import Hash32, Round
from protocol.model_spec import LlamaSpec
from protocol.runfile import RunFile

CARD = "README.md"
_ROOT_LINE = re.compile(r'^  state_root: "0x([0-9a-f]{64})"$', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where weights come from.

    Attributes:
        round: they are the run's model at its start.
        root: the state root, computed from them.
        finalised: whether the chain holds this root for that round; None if it was not asked.
    """

    run_file: RunFile
    round: Round
    root: Hash32
    finalised: bool | None


def model_card(origin: Origin, *, parameters: int) -> bytes:
    """The card, with what programs read between its first lines of dashes."""
    run_file = origin.run_file
    spec = run_file.spec
    facts = {
        "run": _hex(run_file.run),
        "chain_id": str(run_file.chain_id),
        "registry": f'"{run_file.contracts.registry}"',
        "round": str(origin.round),
        "state_root": _hex(origin.root),
        "spec_hash": _hex(spec.hash()),
        "dataset_root": _hex(spec.data.dataset_root),
    }
    heading = "\n".join(f"  {name}: {value}" for name, value in facts.items())
    table = "\n".join(f"| {name} | `{value.strip(chr(34))}` |" for name, value in facts.items())
    kind = "LlamaForCausalLM" if isinstance(spec.model, LlamaSpec) else spec.model.architecture
    began = {
        "seed": "It began with random weights.",
        "checkpoint": f"It began with the checkpoint whose state root is `0x{spec.chain.genesis_root.hex()}`.",
    }[spec.start]
    return f"""---
library_name: transformers
pipeline_tag: text-generation
tags:
- syntience
syntience:
{heading}
---

# {spec.data.name}, round {origin.round}

A {kind} of {parameters:,} parameters in fp32 with a context of {spec.model.context} tokens, trained by a Syntience run on the
data set `{spec.data.name}`. {began}

## Where it comes from

These weights are the run's model at the start of round {origin.round}.

| | |
|---|---|
{table}

{_FINALITY[origin.finalised]} To recompute the root of these weights and compare it with the one above:

```sh
syntience model verify .
```

The root that a majority of the validators' stake attested is `finalisedRoot({origin.round})` of the run's contract
`{run_file.contracts.epochs}`.

## Use

```python
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer, model = AutoTokenizer.from_pretrained("."), AutoModelForCausalLM.from_pretrained(".")
prompt = tokenizer("Once upon a time", return_tensors="pt")
print(tokenizer.decode(model.generate(**prompt)[0], skip_special_tokens=True))
```
""".encode()


def root_in_card(card: str) -> Hash32 | None:
    """The state root that a card names."""
    match = _ROOT_LINE.search(card)
    return None if match is None else Hash32(bytes.fromhex(match[1]))


_FINALITY = {
    None: "The chain was not asked when they were written.",
    True: "When they were written, the chain held this root as final.",
    False: "When they were written, the chain did not hold a final root of this round yet.",
}


def _hex(value: bytes) -> str:
    return f'"0x{value.hex()}"'
