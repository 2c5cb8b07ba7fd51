"""Documents out of data sets of Hugging Face: folders that `save_to_disk` wrote, or by name from the hub.

The library `datasets` (an extra) keeps what it loads in Arrow files and maps them, so a column is read in a stream.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self

from syntience.errors import DataMissing

PREFIX = "hf:"
_NAMED = re.compile(
    r"hf:(?P<name>[^:\[\]]+)(?::(?P<config>[^:\[\]]+))?:(?P<split>[^:\[\]]+(?:\[[^\]]*\])?)"
)
_BATCH = 1024


class Table(Protocol):
    """What is used of a loaded `datasets.Dataset`."""

    features: Mapping[str, object]
    num_rows: int

    def select_columns(self, names: list[str]) -> Self: ...

    def iter(self, batch_size: int) -> Iterator[Mapping[str, Sequence[str | None]]]: ...


class HubDocuments:
    """A column of a loaded data set."""

    def __init__(self, loaded: Table, *, name: str, field: str) -> None:
        columns = loaded.features
        if field not in columns:
            raise DataMissing(
                f"the data set {name} has no column `{field}`, only {', '.join(sorted(columns))}",
                "name the column that holds the text with --field",
            )
        kind = getattr(columns[field], "dtype", type(columns[field]).__name__)
        if kind not in ("string", "large_string"):
            raise DataMissing(
                f"the column `{field}` of {name} holds {kind}, not text",
                "name the column that holds the text with --field",
            )
        self.name, self.size, self.position = name, loaded.num_rows, 0
        self._column, self._field = loaded.select_columns([field]), field

    def __iter__(self) -> Iterator[str]:
        self.position = 0
        for batch in self._column.iter(_BATCH):
            texts = batch[self._field]
            yield from (text for text in texts if text is not None)
            self.position += len(texts)


def is_saved(folder: Path) -> bool:
    """Whether `save_to_disk` wrote this folder."""
    return (folder / "dataset_dict.json").is_file() or (
        (folder / "state.json").is_file() and (folder / "dataset_info.json").is_file()
    )


def open_saved(folder: Path, *, field: str) -> HubDocuments:
    """A folder that `save_to_disk` wrote; raises DataMissing."""
    if (folder / "dataset_dict.json").is_file():
        splits = sorted(path.name for path in folder.iterdir() if path.is_dir())
        raise DataMissing(
            f"{folder} holds several splits",
            f"name one of them: --data {folder / (splits or ['train'])[0]}",
        )
    library = _library(str(folder))
    try:
        loaded = library.load_from_disk(str(folder))
    except (
        OSError,
        ValueError,
        KeyError,
        importlib.import_module("pyarrow").ArrowException,
    ) as error:
        raise DataMissing(
            f"can't read the data set in {folder} ({error})", "save it again with save_to_disk"
        ) from error
    return HubDocuments(loaded, name=folder.name, field=field)


def open_named(named: str, *, field: str, cache_dir: Path) -> HubDocuments:
    """`hf:NAME[:CONFIG]:SPLIT` of the hub, or of a folder of data files; kept in the cache. Raises DataMissing."""
    match = _NAMED.fullmatch(named)
    if match is None:
        raise DataMissing(
            f"{named} names no split",
            "write hf:NAME:SPLIT or hf:NAME:CONFIG:SPLIT, as in hf:roneneldan/TinyStories:train",
        )
    library = _library(named)
    try:
        loaded = library.load_dataset(
            match["name"], match["config"], split=match["split"], cache_dir=str(cache_dir / "hub")
        )
    except (OSError, ValueError, library.exceptions.DatasetsError) as error:
        raise DataMissing(
            f"can't load {named} ({error})", "check the name, the split and the network"
        ) from error
    return HubDocuments(loaded, name=Path(match["name"]).name, field=field)


def _library(wanted: str) -> Any:
    try:
        library = importlib.import_module("datasets")
    except ImportError as error:
        raise DataMissing(
            f"reading {wanted} needs the library datasets",
            "install it: pip install 'syntience[datasets]'",
        ) from error
    if not sys.stderr.isatty():
        library.disable_progress_bars()
    return library
