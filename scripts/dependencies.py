"""Fail where a package imports a distribution that `pyproject.toml` does not name as a dependency.

Such an import works until the dependency that happened to bring it along stops doing so.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(project: dict[str, object]) -> set[str]:
    """The distributions named as a dependency or in an extra other than `dev`."""
    extras = project["optional-dependencies"]
    assert isinstance(extras, dict)
    groups = [project["dependencies"], *(group for name, group in extras.items() if name != "dev")]
    return {_normal(re.split(r"[^\w.-]", line)[0]) for group in groups for line in group}


def imported_roots(path: Path) -> Iterator[str]:
    """The top-level names that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def main() -> None:
    """Check every file of the packages; exit 1 with a line per undeclared import."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = settings["tool"]["importlinter"]["root_packages"]
    known = declared(settings["project"])
    owners = packages_distributions()
    ours = {*packages, *sys.stdlib_module_names}
    files = sorted(path for package in packages for path in (ROOT / package).rglob("*.py"))
    undeclared = {
        f"{path.relative_to(ROOT)}: {root} is of no declared dependency"
        for path in files
        for root in imported_roots(path)
        if root not in ours and not {_normal(name) for name in owners.get(root, [])} & known
    }
    if undeclared:
        sys.exit("\n".join(sorted(undeclared)))
    print(f"dependencies: {len(files)} files import only what is declared")


if __name__ == "__main__":
    main()
