"""The document check complains of what it should, and of nothing else: each check must be able to fail."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts import check_docs


def complaints(check: check_docs.Check, root: Path, **contents: str) -> list[str]:
    """Write files (`a__b_md` is a/b.md) and run one check over them."""
    for name, text in contents.items():
        path = root / re.sub(r"_(\w+)$", r".\1", name.replace("__", "/"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    files = sorted(path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return list(check(root, files))


@pytest.mark.parametrize("link", ["b.md", "b.md#two-words", "#top", "docs/c.md", "docs", "https://example.org/x"])
def test_a_link_that_leads_somewhere_is_fine(tmp_path: Path, link: str) -> None:
    pages = {"a_md": f"# Top\n[x]({link})", "b_md": "# Two words\n", "docs__c_md": "[up](../a.md)"}
    assert complaints(check_docs.links_resolve, tmp_path, **pages) == []


@pytest.mark.parametrize("link", ["missing.md", "b.md#one-word", "#bottom", "../a.md"])
def test_a_link_that_leads_nowhere_is_told(tmp_path: Path, link: str) -> None:
    pages = {"a_md": f"# Top\n[x]({link})", "b_md": "# Two words\n"}
    (told,) = complaints(check_docs.links_resolve, tmp_path, **pages)
    assert link in told


def test_a_link_inside_a_code_block_is_no_link(tmp_path: Path) -> None:
    assert complaints(check_docs.links_resolve, tmp_path, a_md="```\n[x](missing.md)\n```\n") == []


def test_a_changelog_without_an_unreleased_section_is_told(tmp_path: Path) -> None:
    assert complaints(check_docs.changelog_is_open, tmp_path, CHANGELOG_md="# Changes\n\n## [Unreleased]\n") == []
    assert complaints(check_docs.changelog_is_open, tmp_path, CHANGELOG_md="# Changes\n") != []


@pytest.mark.parametrize("place", ["/".join(("", "home", "me", "x")), "/".join(("", "tmp", "x")), "pypi" + ".org"])
def test_what_points_at_one_machine_is_told(tmp_path: Path, place: str) -> None:
    (told,) = complaints(check_docs.nothing_points_at_one_machine, tmp_path, a_md=f"one\nsee {place} there\n")
    assert told.startswith("a.md:2: ")


@pytest.mark.parametrize("place", ["docs/home/me.md", "out/tmp/x", "work/shop", "example.org/home/x"])
def test_a_relative_path_points_at_no_machine(tmp_path: Path, place: str) -> None:
    assert complaints(check_docs.nothing_points_at_one_machine, tmp_path, a_md=f"see {place}\n") == []


def test_a_module_without_a_docstring_is_told(tmp_path: Path) -> None:
    modules = {"src__a_py": '"""What it is."""\n', "src__b_py": "x = 1\n", "tests__c_py": "x = 1\n"}
    assert complaints(check_docs.modules_say_what_they_are, tmp_path, **modules) == ["src/b.py: no module docstring"]


def test_a_file_of_more_than_400_lines_is_told(tmp_path: Path) -> None:
    assert complaints(check_docs.files_hold_one_concept, tmp_path, a_py="x = 1\n" * 400) == []
    assert complaints(check_docs.files_hold_one_concept, tmp_path, a_py="x = 1\n" * 401) != []
