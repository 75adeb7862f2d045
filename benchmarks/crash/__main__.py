"""Run the crash test: `python -m benchmarks.crash [--kills 50] [--engine local|spark] [--quick] [--json FILE]`.

The program is killed with SIGKILL exactly between each pair of steps of a round, between two sinks, before a change to
the checkpoint, and at random moments; and started again until it has ended. Then everything it shows is compared with
an uninterrupted run. The last line is one JSON object, all engines together, and each by its name:

- `kills`: how many deaths there were;
- `lost`: rows of results, late rows and rejects that an uninterrupted run shows and these runs do not;
- `duplicated`: those that these show and it does not;
- `changed`: rows that a reader could see at the moment of a death and that are not there in the end, or differ.

All but the first must be 0, or the benchmark fails.

`python -m benchmarks.crash --cluster [--runs 20] [--quick]` kills workers instead (`workers`): on a standalone cluster
of a master and two workers on this machine, an aggregate, an outer join, an ordered merge, a lookup and windows closed
by source run with all state on the cluster, a worker is killed with kill -9 in the middle of a round, and another one
is added later. The last line is then:

- `lost`, `duplicated`: as above, against an uninterrupted run; both must be 0;
- `worker_kills`: how many workers were killed while the program was running, one a run;
- `restarts`: how often the program ended because of that and had to be started again; `runs`: how many there were.

Twenty runs take about 15 minutes on two cores, the three of the quick form about 3.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from benchmarks.crash import workers
from benchmarks.crash.differences import Differences, calm, differences, lived
from benchmarks.crash.moment import QUERIES, STEPS
from benchmarks.crash.recording import record
from benchmarks.harness import REPOSITORY, Options, finish, say, show_table

FILES = 12
KILLS_OF_A_RUN = {"local": 10, "spark": 5}
KILLS = {"local": (50, 30), "spark": (50, 6)}
"""By default, and in the quick form."""

RUNS = (20, 3)
"""On a cluster: by default, and in the quick form."""


def exact_moments() -> list[str]:
    """Between each pair of steps and of sinks, in a round near the beginning and in one near the end."""
    of_round = [*(f"step:R:{step}" for step in STEPS[:4]), *(f"sink:R:{query}" for query in QUERIES)]
    of_round += [f"step:R:{step}" for step in STEPS[4:]]
    return [moment.replace("R", str(round)) for round in (2, FILES - 2) for moment in of_round]


def random_moment(engine: str, dice: random.Random) -> str:
    """Any moment: of the start, of some round, or before some change to the checkpoint."""
    if engine == "local":
        times = (f"start:{dice.uniform(0, 0.4):.3f}", f"round:{dice.uniform(0, 0.2):.3f}")
    else:
        times = (f"start:{dice.uniform(2, 12):.3f}", f"round:{dice.uniform(0, 1.5):.3f}")
    return dice.choice([*times, f"change:{dice.randrange(40)}"])


def measure(engine: str, kills: int, folder: Path) -> dict[str, int]:
    """Kill so many times; count what differs from an uninterrupted run on the local engine."""
    expected = calm(folder / "calm", FILES)
    exact = exact_moments() if engine == "local" else exact_moments()[::3]
    dice = random.Random(kills)
    found, deaths, run = Differences(), 0, 0
    while deaths < kills:
        left = min(KILLS_OF_A_RUN[engine], kills - deaths)
        moments, exact = exact[:left], exact[left:]
        moments += [random_moment(engine, dice) for _ in range(left - len(moments))]
        place = folder / f"{engine}-{run}"
        record(place, FILES)
        died = lived(place, engine, moments)
        found += differences(place, expected)
        say(f"{engine}: run {run}, {died} deaths: {' '.join(moments[:died])}")
        deaths, run = deaths + died, run + 1
    return {"kills": deaths, **asdict(found)}


def main() -> None:
    """Kill, compare, and end with the line of JSON."""
    parser = argparse.ArgumentParser(description="kill -9 at every moment; nothing is lost, nothing doubled")
    parser.add_argument("--kills", type=int, help="deaths on each engine (default: 50)")
    parser.add_argument("--engine", choices=("local", "spark"), help="only this engine")
    parser.add_argument("--quick", action="store_true", help="fewer deaths")
    parser.add_argument("--json", dest="json_file", type=Path, metavar="FILE", help="write the last line there too")
    parser.add_argument("--cluster", action="store_true", help="kill workers of a standalone cluster instead")
    parser.add_argument("--runs", type=int, help="runs on the cluster, with a killed worker each (default: 20)")
    asked = parser.parse_args()
    options = Options(asked.quick, asked.json_file, REPOSITORY / "out")
    if asked.cluster:
        kill_workers(asked.runs or RUNS[asked.quick], options)
    else:
        kill_programs(asked, options)


def kill_workers(runs: int, options: Options) -> None:
    """Kill workers of a cluster."""
    with tempfile.TemporaryDirectory(prefix="crash-") as folder:
        found = workers.measure(runs, Path(folder))
    show_table("after kill -9 of a worker", list(found), [tuple(found.values())])
    finish(options, found)
    if found["lost"] or found["duplicated"]:
        sys.exit("results after a worker was killed differ from those of an uninterrupted run")


def kill_programs(asked: argparse.Namespace, options: Options) -> None:
    """Kill the program on one engine, or on both."""
    found = {}
    for engine in [asked.engine] if asked.engine else ["local", "spark"]:
        with tempfile.TemporaryDirectory(prefix="crash-") as folder:
            found[engine] = measure(engine, asked.kills or KILLS[engine][asked.quick], Path(folder))
    keys = ("kills", "lost", "duplicated", "changed")
    show_table("after kill -9", ["engine", *keys], [(name, *(of[key] for key in keys)) for name, of in found.items()])
    together = {key: sum(of[key] for of in found.values()) for key in keys}
    finish(options, {**together, **found})
    if any(together[key] for key in keys[1:]):
        sys.exit("results after crashes differ from those of an uninterrupted run")


if __name__ == "__main__":
    main()
