"""The JSON files of a model's folder, which people and other programs read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from training.errors import ModelError


def read_json_object(path: Path) -> dict[str, object]:
    """What the file says; raises ModelError."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(
            f"can't read {path} ({error})",
            "give a folder as transformers' save_pretrained writes it",
        ) from error
    if not isinstance(value, dict):
        raise ModelError(f"{path} is no JSON object", "get an intact copy")
    return value


def json_text(value: Mapping[str, object]) -> bytes:
    """Indented, sorted, with a newline at the end."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False).encode() + b"\n"
