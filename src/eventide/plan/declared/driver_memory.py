r"""`driver.memory`: how much state of all operators together stays with the driver, and sizes in words.

Law: a size is a number of bytes, or a number and a unit: kB, MB, GB and TB by the thousand, KiB, MiB, GiB and TiB by
1024, and k, m, g and t by 1024 too, as Spark has them. 0 means that nothing stays.

>>> memory_bytes("256 MiB"), memory_bytes("1.5GB"), memory_bytes("2g"), memory_bytes(0)
(268435456, 1500000000, 2147483648, 0)
>>> memory_bytes("much")
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: driver.memory 'much' is no size: write such as '256 MiB', '2 GB', or 0
"""

from __future__ import annotations

import re

from eventide.errors import DeclarationError

UNITS = {letter: 1024**power for power, letter in enumerate("bkmgt")}
SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?:(?P<letter>[kmgt])(?P<unit>i?b)?|b)?", re.IGNORECASE)


def memory_bytes(given: int | str) -> int:
    """A size as it was given, in bytes."""
    found = SIZE.fullmatch(str(given).strip())
    if found is None:
        raise DeclarationError(f"driver.memory {given!r} is no size: write such as '256 MiB', '2 GB', or 0")
    letter, unit = (found["letter"] or "b").lower(), (found["unit"] or "ib").lower()
    factor = UNITS[letter] if unit == "ib" else 1000 ** "bkmgt".index(letter)
    return int(float(found["number"]) * factor) if "." in found["number"] else int(found["number"]) * factor


def size_words(size: int) -> str:
    """A size for people.

    >>> size_words(0), size_words(900), size_words(268_435_456), size_words(3_400_000_000)
    ('0 bytes', 'less than 1 KiB', '256 MiB', '3.17 GiB')
    """
    if size < UNITS["k"]:
        return "less than 1 KiB" if size else "0 bytes"
    letter = next(letter for letter in "tgmk" if size >= UNITS[letter])
    return f"{size / UNITS[letter]:.3g} {letter.upper()}iB"


def budget_words(size: int | None) -> str:
    """What a budget means; None where there is no cluster.

    >>> budget_words(0), budget_words(None)
    ('nothing stays with the driver: the state of every operator is on the cluster', 'all state is with this process')
    >>> budget_words(2**28)
    'up to 256 MiB of state stay with the driver, of all operators together; above, the largest goes to the cluster'
    """
    if size is None:
        return "all state is with this process"
    if size == 0:
        return "nothing stays with the driver: the state of every operator is on the cluster"
    return (
        f"up to {size_words(size)} of state stay with the driver, of all operators together; above, the largest goes "
        "to the cluster"
    )


def state_words(name: str, placement: str, rows: int, size: int) -> str:
    """Where the state of an operator is, and how large.

    >>> state_words("speeds", "driver", 1200, 48_000), state_words("pairs", "cluster", 1, 3_400_000_000)
    ('speeds keeps 1,200 rows, 46.9 KiB, with the driver', 'pairs keeps 1 row, 3.17 GiB, on the cluster')
    >>> state_words("speeds", "driver", 0, 0)
    'speeds keeps no rows'
    """
    if not rows:
        return f"{name} keeps no rows"
    where = "on the cluster" if placement == "cluster" else "with the driver"
    return f"{name} keeps {rows:,} row{'' if rows == 1 else 's'}, {size_words(size)}, {where}"
