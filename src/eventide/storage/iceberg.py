"""Iceberg tables by their name in a catalog, for whoever reads or writes them.

Law: the options are those of pyiceberg: `type`, `uri`, `warehouse` and all others are handed on as they are, and
`catalog` names one that its own configuration describes (`.pyiceberg.yaml`, `PYICEBERG_CATALOG__...`). A `warehouse`
that is a local folder needs nothing else: its catalog is a file in it, `catalog.db`. A table that only has to be read
may also be named by its folder, or by a file of its metadata.

>>> properties({"warehouse": "/lake"})
('default', {'type': 'sql', 'uri': 'sqlite:////lake/catalog.db', 'warehouse': '/lake'})
>>> properties({"catalog": "prod", "token": "t"})
('prod', {'token': 't'})
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache

from eventide.errors import DeclarationError

try:
    from pyiceberg.catalog import Catalog, load_catalog
    from pyiceberg.exceptions import NoSuchTableError
    from pyiceberg.table import StaticTable, Table
except ModuleNotFoundError as missing:  # pragma: no cover - the tests have it
    raise DeclarationError("iceberg needs pyiceberg: pip install 'eventide[iceberg]'") from missing

NAME = "catalog"


def properties(options: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The name of a catalog, and what pyiceberg has to know of it."""
    given = {name: value for name, value in options.items() if name.lower() != NAME}
    named = next((value for name, value in options.items() if name.lower() == NAME), None)
    warehouse = given.get("warehouse")
    if named is None and warehouse and "://" not in warehouse and not given.keys() & {"type", "uri"}:
        folder = os.path.abspath(warehouse)
        given |= {"type": "sql", "uri": f"sqlite:///{os.path.join(folder, 'catalog.db')}", "warehouse": folder}
    return named or "default", dict(sorted(given.items()))


def catalog_of(options: Mapping[str, str]) -> Catalog:
    """The catalog that options describe; a local one is made if it is not there."""
    name, known = properties(options)
    if not known and NAME not in {option.lower() for option in options}:
        raise DeclarationError(
            "where is the catalog of Iceberg? Add OPTIONS (warehouse '/folder'), or (type 'rest', uri 'https://..'), "
            "or (catalog 'name') for one that is configured"
        )
    if known.get("uri", "").startswith("sqlite:///") and "warehouse" in known:
        os.makedirs(known["warehouse"].removeprefix("file://"), exist_ok=True)
    return _loaded(name, tuple(known.items()))


@lru_cache(maxsize=16)
def _loaded(name: str, known: tuple[tuple[str, str], ...]) -> Catalog:
    """To open a catalog takes longer than a commit."""
    return load_catalog(name, **dict(known))


def identifier(name: str) -> tuple[str, ...]:
    """A table and its namespace; a name alone is in the namespace `default`.

    >>> identifier("lake.speeds"), identifier("speeds")
    (('lake', 'speeds'), ('default', 'speeds'))
    """
    parts = tuple(name.split("."))
    return parts if len(parts) > 1 else ("default", name)


def is_folder(name: str) -> bool:
    """Whether a table is named by where it is.

    >>> is_folder("lake.speeds"), is_folder("lake/speeds"), is_folder("s3://lake/speeds")
    (False, True, True)
    """
    return "/" in name or os.sep in name


def table_at(name: str, options: Mapping[str, str]) -> Table | None:
    """The table as it is now; None where there is none."""
    try:
        if is_folder(name):
            return StaticTable.from_metadata(name)
        return catalog_of(options).load_table(identifier(name))
    except (NoSuchTableError, FileNotFoundError):
        return None


@contextmanager
def without_warnings() -> Iterator[None]:
    """pyiceberg warns of what is no fault: that there is nothing to delete, or no configuration."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
