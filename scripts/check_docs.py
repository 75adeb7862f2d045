"""Check what no other tool checks: that the documents are true, and that the files keep the habits of the house.

Each check is a function from a folder and its files to complaints; `CHECKS` is the list of them. Run from anywhere:

    python scripts/check_docs.py
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

Complaints: TypeAlias = Iterator[str]
Check: TypeAlias = Callable[[Path, list[Path]], Complaints]

LONGEST_FILE = 400
FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)
# Paths of one machine and addresses of package registries: neither means anything to a reader elsewhere.
MACHINE_PATH = re.compile(r"(?<![\w.~-])/(?:home|private|root|tmp|Users|work)/[A-Za-z]")
REGISTRY = re.compile(r"pypi\.(?:org|python\.org)|pythonhosted\.org|artifactory[\w-]*\.\w|--(?:extra-)?index-url")


def files_of(root: Path) -> list[Path]:
    """Every file that git tracks or would add, relative to `root`."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
    return sorted({Path(name) for name in listed if name and (root / name).is_file()})


def anchors(page: str) -> set[str]:
    """The anchors of a page, as web views of Markdown name its headings.

    >>> sorted(anchors("# Prods, early and late\\n## `DRATIO` 1%"))
    ['dratio-1', 'prods-early-and-late']
    """
    headings = HEADING.findall(FENCE.sub("", page))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links_resolve(root: Path, files: list[Path]) -> Complaints:
    """Every relative link of a page leads to a file of the repository, and to a heading in it."""
    known = {(root / file).resolve() for file in files}
    known |= {parent for file in known for parent in file.parents}
    for file in pages(files):
        text = (root / file).read_text(encoding="utf-8")
        for target in LINK.findall(FENCE.sub("", text)):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            linked = ((root / file).parent / path).resolve() if path else (root / file).resolve()
            if linked not in known:
                yield f"{file}: link to {target}, which is not there"
            elif anchor and linked.suffix == ".md" and anchor not in anchors(linked.read_text(encoding="utf-8")):
                yield f"{file}: link to {target}, but that page has no such heading"


def changelog_is_open(root: Path, files: list[Path]) -> Complaints:
    """The changelog has a place for what is not released yet."""
    changelog = root / "CHANGELOG.md"
    if not changelog.is_file() or "\n## [Unreleased]" not in changelog.read_text(encoding="utf-8"):
        yield "CHANGELOG.md: no section '## [Unreleased]'"


def nothing_points_at_one_machine(root: Path, files: list[Path]) -> Complaints:
    """No file names a folder of one machine or the address of a package registry."""
    for file in files:
        try:
            text = (root / file).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            for pattern, what in ((MACHINE_PATH, "a path of one machine"), (REGISTRY, "a package registry")):
                if found := pattern.search(line):
                    yield f"{file}:{number}: {found[0]!r} is {what}"


def modules_say_what_they_are(root: Path, files: list[Path]) -> Complaints:
    """Every module under `src` opens with a docstring."""
    for file in files:
        if file.parts[0] != "src" or file.suffix != ".py":
            continue
        if ast.get_docstring(ast.parse((root / file).read_text(encoding="utf-8"))) is None:
            yield f"{file}: no module docstring"


def files_hold_one_concept(root: Path, files: list[Path]) -> Complaints:
    """No Python file is so long that a second concept hides in it."""
    for file in files:
        if file.suffix == ".py":
            lines = len((root / file).read_text(encoding="utf-8").splitlines())
            if lines > LONGEST_FILE:
                yield f"{file}: {lines} lines, more than {LONGEST_FILE}: which second concept is hiding in it?"


def pages(files: list[Path]) -> list[Path]:
    """The Markdown files among `files`."""
    return [file for file in files if file.suffix == ".md"]


CHECKS: tuple[Check, ...] = (
    links_resolve,
    changelog_is_open,
    nothing_points_at_one_machine,
    modules_say_what_they_are,
    files_hold_one_concept,
)


def main() -> int:
    """Print every complaint; 0 when there is none."""
    root = Path(__file__).resolve().parent.parent
    files = files_of(root)
    complaints = [complaint for check in CHECKS for complaint in check(root, files)]
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    if not complaints:
        print(f"documents and files: {len(CHECKS)} checks over {len(files)} files, nothing to complain of")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
