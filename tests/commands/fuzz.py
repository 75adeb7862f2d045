"""Checks made-up scripts: `python -m tests.commands.fuzz --scripts 20000`, or shows one again: `--seed 17`.

Law: whatever a script says, `eventide check` answers in words. Each error stands at a place of the text and shows its
line; a statement takes less than a second of the processor.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable

from eventide.commands.check import Finding, findings_of
from eventide.errors import LanguageError
from eventide.language.script import errors_in, read_script
from tests.commands.query_mill import STREAM
from tests.commands.script_mill import WORDS, script_of

SECONDS = 1.0
TRIALS = 300
SHOWN = 500
"""How far it is, is told after so many."""


def wrong_with(text: str, only_read: bool = False, seconds: float = SECONDS) -> str | None:
    """What is wrong with the answer of `check`, or of what reads for it; None if nothing is."""
    started = time.thread_time()
    try:
        findings, can_be_read = read(text) if only_read else checked(text)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    taken = time.thread_time() - started
    lines = text.removeprefix("\ufeff").split("\n")
    for one in findings:
        if not (1 <= one.line <= len(lines) and 1 <= one.column <= len(lines[one.line - 1]) + 1) or not one.message:
            return f"no place of the text: {one.line}:{one.column}: {one.message}"
        if "Traceback" in one.message or "Internal" in one.message or "INTERNAL" in one.message:
            return f"a fault of ours: {one.message}"
    if not can_be_read and not any(one.severity == "error" for one in findings):
        return "it cannot be read, and no error says why"
    if taken > seconds * (text.count(";") + 1):
        return f"slow: {taken:.1f} s"
    return None


def checked(text: str) -> tuple[list[Finding], bool]:
    """All that `check` finds, and whether the script can be read."""
    findings, script = findings_of(text, "q.sql")
    return findings, script is not None


def read(text: str) -> tuple[list[Finding], bool]:
    """The same without a trial of what can be read."""
    try:
        read_script(text, "q.sql")
    except LanguageError:
        errors = errors_in(text, "q.sql")
        return [Finding("error", "q.sql", e.line, e.column, e.message, e.text, e.hint) for e in errors], False
    return [], True


def shortened(text: str, fails: Callable[[str], bool]) -> str:
    """The words that are needed for a text to fail.

    >>> shortened("SELECT a, b FROM c", lambda text: "b" in text)
    'b'
    """
    words, length, trials = WORDS.findall(text), 64, 0
    while length:
        place = 0
        while place < len(words) and trials < TRIALS:
            fewer, trials = words[:place] + words[place + length :], trials + 1
            if fails("".join(fewer)):
                words = fewer
            else:
                place += length
        length //= 2
    return "".join(words)


def small(text: str, why: str, only_read: bool) -> str:
    """A text that is wrong for the same reason; the stream stays what it is."""
    head = STREAM if text.startswith(STREAM) else ""
    kind = why.partition(":")[0]
    return head + shortened(
        text[len(head) :],
        lambda one: (found := wrong_with(head + one, only_read)) is not None and found.partition(":")[0] == kind,
    )


def main() -> int:
    """Search; 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.commands.fuzz", description="check made-up scripts")
    parser.add_argument("--scripts", type=int, default=1_000, help="so many")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first")
    parser.add_argument("--read", action="store_true", help="only read them: much quicker")
    parser.add_argument("--seed", type=int, help="only this one, and show it")
    asked = parser.parse_args()
    logging.disable(logging.WARNING)
    if asked.seed is not None:
        text = script_of(asked.seed)
        print(text, *findings_of(text, "q.sql")[0], sep="\n")
        return 0
    started, wrong, found = time.monotonic(), 0, Counter[str]()
    for seed in range(asked.first, asked.first + asked.scripts):
        text = script_of(seed)
        why = wrong_with(text, asked.read)
        if seed % SHOWN == SHOWN - 1:
            print(f"{seed + 1 - asked.first:,} of {asked.scripts:,}", file=sys.stderr, flush=True)
        if why is not None:
            wrong += 1
            kind = why[:60]
            found[kind] += 1
            if found[kind] <= 3:
                print(f"seed {seed}: {why[:500]}\n{small(text, why, asked.read)[:1500]}\n", flush=True)
    minutes = (time.monotonic() - started) / 60
    print(f"{asked.scripts:,} scripts, {asked.scripts / minutes:,.0f} a minute: {wrong} answered wrongly")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
