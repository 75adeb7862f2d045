"""Where the state of Eventide's side is: within the default budget of the driver's memory, or all of it on the cluster.

>>> DRIVER_MEMORY_AT["cluster"]
0
"""

from __future__ import annotations

import argparse

from eventide.engine.operators.placement import DRIVER_MEMORY

DRIVER_MEMORY_AT = {"default": DRIVER_MEMORY, "cluster": 0}
"""The budget of the driver's memory by the name of the place."""


def add_place(parser: argparse.ArgumentParser) -> None:
    """Let a command line choose.

    >>> parser = argparse.ArgumentParser()
    >>> add_place(parser)
    >>> parser.parse_args(["--place", "cluster"]).place, parser.parse_args([]).place
    ('cluster', 'default')
    """
    parser.add_argument(
        "--place",
        choices=DRIVER_MEMORY_AT,
        default="default",
        help="where state may be: within the default memory of the driver, or on the cluster alone",
    )
