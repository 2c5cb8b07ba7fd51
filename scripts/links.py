"""Find dead links in the documentation: relative paths and heading anchors of every tracked Markdown file.

No network: web addresses are not followed. Anchors are GitHub's (lower case, spaces to hyphens, `-1` for a repeat).
"""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?^ {0,3}\1", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(`+)[^`].*?\1", re.DOTALL)
_INLINE = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+[\"'][^)]*)?\)")
_REFERENCE = re.compile(r"^ {0,3}\[[^\]^]+\]:\s+<?(\S+?)>?\s*$", re.MULTILINE)
_HTML = re.compile(r"""(?:href|src)=["']([^"']+)["']""")
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.+?)[ \t]*#*$", re.MULTILINE)
_EXPLICIT_ANCHOR = re.compile(r"""<a\s[^>]*(?:id|name)=["']([^"']+)["']""")
_LINK_TEXT = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")


def tracked_markdown() -> list[Path]:
    """The Markdown files that git knows or would take up."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.md"]
    names = subprocess.run(
        command, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    return sorted(ROOT / name for name in names if name and (ROOT / name).is_file())


@cache
def anchors(path: Path) -> frozenset[str]:
    """The anchors that GitHub gives the headings of a Markdown file, and explicit ones."""
    text = _FENCE.sub("", path.read_text())
    found = set(_EXPLICIT_ANCHOR.findall(text))
    for heading in _HEADING.findall(text):
        plain = _LINK_TEXT.sub(r"\1", heading).replace("`", "").replace("*", "").strip().lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        unique, repeat = slug, 0
        while unique in found:
            repeat += 1
            unique = f"{slug}-{repeat}"
        found.add(unique)
    return frozenset(found)


def links(path: Path) -> list[str]:
    """The link targets of a Markdown file, without those in code."""
    text = _CODE.sub("", _FENCE.sub("", path.read_text()))
    return [target for pattern in (_INLINE, _REFERENCE, _HTML) for target in pattern.findall(text)]


def complaint(path: Path, target: str) -> str | None:
    """What is wrong with a link in `path`, or None."""
    if re.match(r"[a-z][a-z0-9+.-]*:|//", target, re.IGNORECASE):
        return None
    where, _, anchor = unquote(target).partition("#")
    base = ROOT if where.startswith("/") else path.parent
    file = (base / where.lstrip("/")).resolve() if where else path
    if not file.is_relative_to(ROOT) or not file.exists():
        return f"{target}: no such file"
    if anchor and file.suffix == ".md" and anchor not in anchors(file):
        return f"{target}: no such heading"
    return None


def main() -> None:
    """Check every file; exit 1 with a line per dead link."""
    files = tracked_markdown()
    if not files:
        sys.exit("links: no Markdown file to check")
    checked = [(path, target) for path in files for target in links(path)]
    dead = [f"{p.relative_to(ROOT)}: {c}" for p, target in checked if (c := complaint(p, target))]
    if dead:
        sys.exit("\n".join(dead))
    print(f"links: {len(checked)} links in {len(files)} files")


if __name__ == "__main__":
    main()
