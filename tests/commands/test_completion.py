"""Shells complete commands, options and the values of options; files are left to the shell."""

from __future__ import annotations

import pytest

from tests.commands.processes import Here


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("eventide ex", ["explain"]),
        ("eventide run --ch", ["--checkpoint"]),
        ("eventide run --engine ", ["spark", "local"]),
        ("eventide run --engine l", ["local"]),
        ("eventide run doo", []),
    ],
)
def test_bash_is_offered_what_can_follow(
    typed: str, offered: list[str], here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_EVENTIDE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split(" ")) - 1))
    ran = here()
    assert (ran.code, ran.out.split()) == (0, offered)


def test_zsh_is_offered_options_with_what_they_mean(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_EVENTIDE_COMPLETE", "complete_zsh")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "eventide check --js")
    ran = here()
    assert ran.code == 0
    assert '"--json":"Print one JSON object on one line, and nothing else."' in ran.out
