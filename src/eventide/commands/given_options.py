"""What the command line gives to a run, looked at before anything is started.

Law: an option that cannot mean anything is refused with what to write instead; Spark would take some of them in
silence, and fail of others after half a minute, with words about something else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from eventide.errors import DeclarationError

MEANING = {
    "spark.sql.ansi.enabled": (
        "true",
        "a row that breaks an expression is not rejected; NULL or a number that wrapped around goes into the answer",
    ),
    "spark.sql.session.timeZone": ("UTC", "times without a zone are those of that zone, and so are days and hours"),
}
"""Settings that change what a script says: what they are without a word, and what is so with another."""

COORDINATES = re.compile(r"[^\s:/,]+(?::[^\s:/,]+){2}")


def pairs(given: list[str]) -> dict[str, str]:
    """Settings, as a script gives them with SET; those of Spark begin with `spark.`

    >>> pairs(["spark.executor.memory=2g", "driver.memory = 1 GB"])
    {'spark.executor.memory': '2g', 'driver.memory': '1 GB'}
    """
    found = {}
    for one in given:
        key, sign, value = (part.strip() for part in one.partition("="))
        if not sign or not key:
            raise DeclarationError(f"--conf {one!r} is no setting: write --conf key=value")
        found[key] = value
    return found


def packages(given: list[str]) -> tuple[str, ...]:
    """Coordinates of packages; commas between them are fine, as Spark writes them.

    >>> packages(["org.apache.spark:spark-avro_2.13:4.3.0,a:b:1"])
    ('org.apache.spark:spark-avro_2.13:4.3.0', 'a:b:1')
    >>> packages(["spark-avro"])
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: --package 'spark-avro' names no package: write group:name:version, such as \
org.apache.spark:spark-avro_2.13:4.3.0
    """
    found = [one.strip() for several in given for one in several.split(",")]
    for one in found:
        if not COORDINATES.fullmatch(one):
            raise DeclarationError(
                f"--package {one!r} names no package: write group:name:version, such as "
                "org.apache.spark:spark-avro_2.13:4.3.0"
            )
    return tuple(found)


def said(option: str, value: str | None) -> str | None:
    """A value that is there: not empty, as of a variable that was not set, and not the next option.

    >>> said("--checkpoint", "state"), said("--master", None)
    ('state', None)
    >>> said("--checkpoint", "--json")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: --checkpoint needs a value, and '--json' is none
    """
    if value is not None and (not value.strip() or value.startswith("-")):
        raise DeclarationError(f"{option} needs a value, and {value!r} is none")
    return value


def changed_meanings(settings: Mapping[str, str]) -> list[str]:
    """What to tell of settings by which Spark gives other answers than the local engine.

    >>> changed_meanings({"spark.sql.session.timeZone": "Europe/Berlin", "spark.sql.ansi.enabled": "TRUE"})
    ['spark.sql.session.timeZone=Europe/Berlin: times without a zone are those of that zone, and so are days and \
hours; the local engine has no such setting']
    """
    return [
        f"{key}={value}: {MEANING[key][1]}; the local engine has no such setting"
        for key, value in settings.items()
        if key in MEANING and value.lower() != MEANING[key][0].lower()
    ]
