"""Lazy imports: names of a package that are fetched when they are first asked for (PEP 562).

>>> fetch = lazy_import("string", {"capwords": "string"})
>>> fetch("capwords")("one word")
'One Word'
>>> fetch("ascii")
Traceback (most recent call last):
    ...
AttributeError: module 'string' has no attribute 'ascii'
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_import(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """A `__getattr__` for the package, which takes each name from its module and keeps it."""

    def fetch(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found: object = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    return fetch
