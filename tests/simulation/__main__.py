"""Plays stories: `python -m tests.simulation --seeds 1000`, or one of them again: `--seed 17`.

>>> arguments(["--seed", "17", "--without", "m2,r5"]).without
'm2,r5'
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Sequence

from tests.simulation.player import RememberingExecutor
from tests.simulation.search import failure_of
from tests.simulation.story import story_of

SHOWN = 100
"""How far it is, is told after so many."""


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """What is asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description="play random stories")
    parser.add_argument("--seeds", type=int, default=1_000, help="so many, one after the other")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--seed", type=int, help="only this one, and show it")
    parser.add_argument("--without", default="", help="its parts that are left out, as they were printed")
    return parser.parse_args(given)


def main() -> int:
    """Search; 1 if something went wrong."""
    asked = arguments()
    logging.disable(logging.WARNING)
    executor = RememberingExecutor()
    if asked.seed is not None:
        without = [part for part in asked.without.split(",") if part]
        failure = failure_of(asked.seed, executor, without)
        print(failure or "\n".join([*story_of(asked.seed).without(without).lines(), "=> right"]))
        return 0 if failure is None else 1
    started, failures = time.monotonic(), 0
    for seed in range(asked.first, asked.first + asked.seeds):
        failure = failure_of(seed, executor)
        if seed % SHOWN == SHOWN - 1:
            print(f"{seed + 1 - asked.first:,} of {asked.seeds:,}", file=sys.stderr, flush=True)
        if failure is not None:
            failures += 1
            print(f"{failure}\n", flush=True)
    minutes = (time.monotonic() - started) / 60
    print(f"{asked.seeds:,} stories, {asked.seeds / minutes:,.0f} a minute: {failures} went wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
