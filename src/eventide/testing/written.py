"""Policies as people write them in YAML, built into what they mean.

Law: `Name: arguments` calls the class or function of `eventide.eventtime` that has the name, with arguments that are
built the same way, so policies nest (`Timeout: {inner: {FixedDelay: 10}, after: 60}`). `Name.method` calls a class
method (`SkewMatrix.of: ...`). Lists are tuples; `never` and `forever` are the ends of time; a length of time with its
unit (`10 s`, `250 ms`) is so many microseconds. Everything else means itself.

>>> built({"Timeout": {"inner": {"FixedDelay": "10 s"}, "after": "1 min"}})
Timeout(inner=FixedDelay(delay=10000000), after=60000000)
>>> built(["never", 3]) == (NEVER, 3)
True
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from functools import cache
from typing import Any

import eventide.eventtime
from eventide.errors import DeclarationError
from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.instant import FOREVER, NEVER
from eventide.profile.amounts import duration

_LENGTH = re.compile(r"\s*\d+(\.\d+)?\s*(us|ms|s|sec|m|min|h|d)\s*")


@cache
def registry() -> dict[str, Any]:
    """Every public name that a module of `eventide.eventtime` defines.

    >>> "FixedDelay" in registry() and "NEVER" not in registry()
    True
    """
    names: dict[str, Any] = {}
    for module_info in pkgutil.walk_packages(eventide.eventtime.__path__, "eventide.eventtime."):
        module = importlib.import_module(module_info.name)
        defined_here = {k: v for k, v in vars(module).items() if getattr(v, "__module__", None) == module.__name__}
        names.update({name: value for name, value in defined_here.items() if not name.startswith("_")})
    return names


def built(written: Any) -> Any:
    """What is written, built.

    >>> built({"Minimum": [{"FixedDelay": 1}, {"FixedDelay": 2}]})
    Minimum(policies=(FixedDelay(delay=1), FixedDelay(delay=2)))
    """
    known = registry()
    match written:
        case "never":
            return NEVER
        case "forever":
            return FOREVER
        case str() if written in known:
            return known[written]()
        case str() if _LENGTH.fullmatch(written):
            return duration(written)
        case list():
            return tuple(built(item) for item in written)
        case dict() if len(written) == 1 and _head(next(iter(written))) in known:
            [(name, arguments)] = written.items()
            head, *rest = name.split(".")
            factory = known[head]
            for attribute in rest:
                factory = getattr(factory, attribute)
            if isinstance(arguments, dict) and not (len(arguments) == 1 and _head(next(iter(arguments))) in known):
                return factory(**{key: built(value) for key, value in arguments.items()})
            return factory() if arguments is None else factory(built(arguments))
        case dict():
            return {key: built(value) for key, value in written.items()}
        case _:
            return written


def policy(written: Any) -> Policy:
    """The policy that is written; an error names what is no policy.

    >>> policy({"FixedDelai": 10})
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: {'FixedDelai': 10} is no policy: write one as `Name: arguments`, \
such as `FixedDelay: 10 s`
    """
    try:
        found = built(written)
    except TypeError as wrong:
        raise DeclarationError(f"the policy {written!r} cannot be built: {wrong}") from wrong
    if isinstance(found, type) or not isinstance(found, Policy):
        raise DeclarationError(f"{written!r} is no policy: write one as `Name: arguments`, such as `FixedDelay: 10 s`")
    return found


def _head(name: object) -> str:
    return str(name).split(".")[0]
