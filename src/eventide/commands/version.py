"""`eventide version`: of Eventide, and of what it stands on.

>>> sorted(versions())
['duckdb', 'eventide', 'pyarrow', 'pyspark', 'python', 'sqlglot']
"""

from __future__ import annotations

import json
import platform
from importlib.metadata import PackageNotFoundError, version

STANDS_ON = ("duckdb", "pyarrow", "pyspark", "sqlglot")


def versions() -> dict[str, str | None]:
    """Versions by name; None for what is not installed."""
    return {name: _installed(name) for name in ("eventide", *STANDS_ON)} | {"python": platform.python_version()}


def show_version(as_json: bool) -> None:
    """Print the version of Eventide."""
    if as_json:
        print(json.dumps(versions()))
    else:
        print(_installed("eventide") or "run from its sources, not installed")


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
