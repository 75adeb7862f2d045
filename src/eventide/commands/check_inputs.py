"""Check the options of inputs before anything is opened: what they must be, and what the local engine has.

Law: an option whose value no engine could take is an error; one that the local engine refuses is told in its words.

>>> from eventide.plan.expressions.columns import columns
>>> from eventide.plan.declared.stream import Input
>>> given = Input("csv", "in", options=(("header", "maybe"),))
>>> wrong_option(Stream("s", columns("t BIGINT"), time="t", input=given))
"stream 's': header is true or false, not 'maybe'"
>>> wrong_option(Stream("s", columns("t BIGINT"), time="t", input=Input("iceberg", "lake.t")))
"stream 's': FROM iceberg needs a catalog: OPTIONS (warehouse '/folder'), or its type and uri"
"""

from __future__ import annotations

from dataclasses import replace

from eventide.errors import EventideError
from eventide.plan.declared.secrets import ELSEWHERE
from eventide.plan.declared.stream import Stream
from eventide.sources.options import limit_options
from eventide.sources.text.reader import local_options

TRUTHS = (
    "header", "multiline", "inferschema", "ignoreleadingwhitespace", "ignoretrailingwhitespace", "enforceschema",
    "primitivesasstring", "prefersdecimal", "allowcomments", "allowsinglequotes", "allowunquotedfieldnames",
    "allownumericleadingzeros", "ignorecorruptfiles", "ignoremissingfiles", "recursivefilelookup", "latestfirst",
    "cleansource.enabled", "wholetext", "mergeschema",
)  # fmt: skip
"""Options that are true or false."""

COUNTS = ("maxfilespertrigger", "maxcolumns", "maxcharspercolumn", "rowspersecond", "maxoffsetspertrigger")
"""Options that are whole numbers."""

CHOICES = {"mode": ("permissive", "dropmalformed", "failfast"), "cleansource": ("archive", "delete", "off")}
"""Options that are one of a few words."""

OF_CATALOG = {"catalog", "type", "uri", "warehouse"}
"""Options one of which says where an Iceberg table is."""
TEXTS = ("csv", "json", "text")


def wrong_option(stream: Stream) -> str | None:
    """What is wrong with an option whatever the engine; None where nothing is."""
    if stream.input is None:
        return None
    for name, value in stream.input.options:
        key, owner = name.lower(), f"stream {stream.name!r}: {name}"
        if ELSEWHERE.fullmatch(value) is not None:
            continue
        if key in TRUTHS and value.lower() not in ("true", "false"):
            return f"{owner} is true or false, not {value!r}"
        if key in COUNTS and not value.isdigit():
            return f"{owner} is a whole number, not {value!r}"
        if key in CHOICES and value.lower() not in CHOICES[key]:
            return f"{owner} is one of {', '.join(CHOICES[key])}, not {value!r}"
    given = stream.input
    named = {name.lower() for name, _ in given.options}
    if given.format.lower() == "iceberg" and "/" not in (given.path or "") and not named & OF_CATALOG:
        return (
            f"stream {stream.name!r}: FROM iceberg needs a catalog: OPTIONS (warehouse '/folder'), or its type and uri"
        )
    try:
        limit_options(stream.input)
    except EventideError as error:
        return f"stream {stream.name!r}: {error}"
    return None


def refused_locally(stream: Stream) -> str | None:
    """Why the local engine would not read the text files of a stream; None where it would, or where there are none."""
    if stream.input is None:
        return None
    given = replace(stream.input, format=stream.input.format.lower())
    if given.format not in TEXTS or any(ELSEWHERE.fullmatch(value) for _, value in given.options):
        return None
    try:
        local_options(f"stream {stream.name!r}", given)
    except EventideError as error:
        return str(error)
    return None
