"""Plays stories: `python -m tests.simulation --seeds 1000`, or one of them again: `--seed 17`.

>>> arguments(["--seed", "17", "--without", "m2,r5"]).without
'm2,r5'
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from tests.simulation.search import failure_of, failures_of, the_executor
from tests.simulation.story import VARIANTS, story_of

SHOWN = 500
"""How far it is, is told after so many."""


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """What is asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description="play random stories")
    parser.add_argument("--seeds", type=int, default=1_000, help="so many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="so many stories at a time")
    parser.add_argument("--seed", type=int, help="only this one, and show it")
    parser.add_argument("--without", default="", help="its parts that are left out, as they were printed")
    return parser.parse_args(given)


def main() -> int:
    """Search; 1 if something went wrong."""
    asked = arguments()
    logging.disable(logging.WARNING)
    if asked.seed is not None:
        without = [part for part in asked.without.split(",") if part]
        failure = failure_of(asked.seed, the_executor(), without)
        print(failure or "\n".join([*story_of(asked.seed).without(without).lines(), "=> right"]))
        return 0 if failure is None else 1
    started, done, failures, end = time.monotonic(), 0, 0, asked.first + asked.seeds
    parts = [range(first, min(first + VARIANTS, end)) for first in range(asked.first, end, VARIANTS)]
    with ProcessPoolExecutor(asked.processes, get_context("spawn")) as pool:
        for part, wrong in zip(parts, pool.map(failures_of, parts), strict=True):
            done, failures = done + len(part), failures + len(wrong)
            print(*wrong, sep="\n\n", end="\n\n" * bool(wrong), flush=True)
            if done % SHOWN < len(part):
                print(f"{done:,} of {asked.seeds:,}", file=sys.stderr, flush=True)
    minutes = (time.monotonic() - started) / 60
    print(f"{asked.seeds:,} stories, {asked.seeds / minutes:,.0f} a minute: {failures} went wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
