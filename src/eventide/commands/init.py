"""`eventide init`: a commented script from a sample of somebody's data."""

from __future__ import annotations

import sys
from pathlib import Path

from eventide.commands.advice import advice_for
from eventide.commands.check import findings_of
from eventide.commands.notes import say
from eventide.commands.roles import Roles, roles_of
from eventide.commands.sample import Sample, look_at
from eventide.commands.starter import starter_text
from eventide.errors import InputError

OTHER_TIMES = (
    "only times written as 2026-01-31 09:00:00 can be read; Spark reads others, declared as TIMESTAMP with OPTIONS "
    "(timestampFormat 'dd.MM.yyyy HH:mm:ss')"
)


def init_file(sample: str, output: Path | None, time: str | None, source: str | None, force: bool) -> None:
    """Look at the sample, write the script, and say what was found."""
    if output is not None and output.exists() and not force:
        raise InputError(f"{output} is there already: name another file, or write over it with --force")
    found = look_at(sample)
    roles = roles_of(found, time, source)
    text = starter_text(found, roles, advice_for(found, roles), "FILE.sql" if output is None else str(output))
    # What cannot be checked is not worth handing out; this would be a fault of our own.
    errors = [finding for finding in findings_of(text, "starter")[0] if finding.severity == "error"]
    if errors:
        raise AssertionError(f"the script that was written cannot be used: {errors[0]}\n{text}")
    if output is None:
        # Scripts are UTF-8, whatever a terminal is.
        sys.stdout.buffer.write(text.encode())
    else:
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise InputError(f"{output} cannot be written: {error.strerror}") from error
    for sentence in _said(found, roles):
        say(sentence)
    if output is not None:
        say(f"wrote {output}; now: eventide check {output}, then eventide run {output}")


def _said(sample: Sample, roles: Roles) -> list[str]:
    said = [f"{_some(sample.rows, 'row')} looked at, {_some(len(sample.columns), 'column')}"]
    unread = [column.name for column in sample.columns if column.lost_time]
    why = f" ({', '.join(unread)}: {OTHER_TIMES})" if unread else ""
    if sample.left_out:
        said.append(f"columns left out, which cannot be declared: {', '.join(sample.left_out)}")
    said.append(
        f"no column tells the time: rows get the time at which they are read{why}"
        if roles.time is None
        else f"time: {roles.time}"
    )
    if roles.arrival is not None:
        said.append(f"arrival: {roles.arrival}")
    said.append(f"source: {roles.source or 'none found; --source COL names one'}")
    if sample.broken:
        said.append(f"rows of the sample that are not as declared, which a run rejects: {sample.broken:,}")
    return said


def _some(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
