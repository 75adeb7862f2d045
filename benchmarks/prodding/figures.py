"""The tables and figures of chapter 4 of the prodding thesis, remade; its own numbers stand beside ours."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.prodding.runs import AGGREGATES, Asked, Outcome, run
from benchmarks.prodding.streams import SECOND, Recorded, bursty, freeway, generated
from eventide.eventtime.early.triggers import Earliness

POINTS = (0.9, 0.8, 0.7, 0.6, 0.5)
SLIDING = Asked(30 * SECOND, 10 * SECOND)
THESIS: dict[str, dict[str, dict[str, dict[int, float]]]] = {
    "uniform": {
        "average": {"mean": {10: 99.53, 50: 99.03}},
        "max": {"mean": {10: 99.96, 50: 99.93}},
        "sum": {"mean": {50: 79.5}},
        "count": {"mean": {50: 79.87}},
    },
    "tumbling_400": {"average": {"worst": {10: 87.13, 50: 65.96}}},
}
"""What the text of the thesis says of its figures: by figure, aggregate, mean or worst case, and aggressiveness."""

THESIS_DELAYED = {1000: (99.04, 2.80), 1500: (99.48, 3.02), 2000: (98.11, 2.98)}
THESIS_BURSTY = {1: (97.62, 1.33), 2: (98.38, 1.27), 4: (98.65, 1.18)}


def table_4_1(quick: bool) -> list[dict[str, Any]]:
    """Final latency with prods and without, in virtual time; and the work that prods add, in real time."""
    found = []
    for name, stream, asked, every in (
        ("uniform 1500", generated(300 if quick else 1500, seed=15), SLIDING, None),
        ("burst 2", bursty(60 if quick else 200, seed=2), Asked(5 * SECOND, SECOND), SECOND),
    ):
        points = () if every else (0.7,)
        prodded = run(stream, Asked(asked.range, asked.slide, points, every=every))
        plain = run(stream, asked)
        rounds = len(prodded.clocks) / max(1, len(plain.clocks))
        found.append(
            {
                "stream": name,
                "with_prods": prodded.latency(),
                "without": plain.latency(),
                "ratio": prodded.latency() / plain.latency(),
                "work_per_round_ratio": prodded.seconds / plain.seconds / rounds,
                "thesis_with": 11 if not every else 6,
                "thesis_without": 11 if not every else 6,
            }
        )
    return found


def table_4_2(quick: bool) -> list[dict[str, Any]]:
    """Max over delayed streams of several lengths, prodded 7 s into the slide of 10 s."""
    found = []
    for seconds, (accuracy, gain) in THESIS_DELAYED.items():
        outcome = run(
            generated(seconds // 5 if quick else seconds, seed=seconds), Asked(30 * SECOND, 10 * SECOND, (0.7,))
        )
        row = _gain(outcome, "max")
        found.append({"stream": f"uniform {seconds}", **row, "thesis_accuracy": accuracy, "thesis_gain": gain})
    return found


def table_4_3(quick: bool) -> list[dict[str, Any]]:
    """Max over bursts that wait for an expensive operator, prodded every second."""
    found = []
    for times, (accuracy, gain) in THESIS_BURSTY.items():
        stream = bursty((30 if quick else 100) * times, seed=times)
        row = _gain(run(stream, Asked(5 * SECOND, SECOND, every=SECOND)), "max")
        found.append(
            {
                "stream": f"burst {times}",
                "rows": len(stream.times),
                **row,
                "thesis_accuracy": accuracy,
                "thesis_gain": gain,
            }
        )
    return found


def _gain(outcome: Outcome, aggregate: str) -> dict[str, float]:
    """Accuracy in percent, and how much earlier than the final one an early answer came, in seconds.

    Of windows that were asked for several times the first answer counts, as the thesis has one for each.
    """
    pairs = outcome.paired().sort_by([("window_end", "ascending"), ("clock", "ascending")])
    _, first = np.unique(pairs["window_end"].to_numpy(), return_index=True)
    pairs = pairs.take(first)
    error = outcome.errors(aggregate, aggregate, pairs)
    gain = (pairs["final_clock"].to_numpy() - pairs["clock"].to_numpy()) / SECOND
    return {"accuracy": float(100 * (1 - error).mean()), "gain": float(gain.mean()), "early_answers": len(error)}


def aggressiveness(stream: Recorded, asked: Asked) -> dict[str, dict[str, dict[int, float]]]:
    """Mean and worst accuracy of each aggregate, and the latency gain, by prodding aggressiveness in percent."""
    outcome = run(stream, Asked(asked.range, asked.slide, POINTS, estimate=True))
    pairs = outcome.paired()
    points = np.rint(100 * (1 - pairs["point"].to_numpy())).astype(int)
    firsts = np.array([outcome.first[end] for end in pairs["window_end"].to_pylist()])
    gain = 1 - (pairs["clock"].to_numpy() - firsts).astype(float) / (pairs["final_clock"].to_numpy() - firsts)
    found: dict[str, dict[str, dict[int, float]]] = {"gain": {"mean": _by(points, gain, np.mean)}}
    for name in (*AGGREGATES, "sum_estimate", "count_estimate"):
        accuracy = 1 - outcome.errors(name, name.removesuffix("_estimate"), pairs)
        found[name] = {"mean": _by(points, accuracy, np.mean), "worst": _by(points, accuracy, np.min)}
    return found


def _by(points: Any, values: Any, of: Any) -> dict[int, float]:
    return {int(point): float(100 * of(values[points == point])) for point in np.unique(points)}


def figures(quick: bool) -> dict[str, Any]:
    """Figures 4.6 to 4.11: uniform and normal values, sliding and tumbling windows."""
    seconds = 300 if quick else 2000
    streams = {"uniform": None, "normal_100": 100.0, "normal_400": 400.0, "normal_1000": 1000.0}
    streams = {"uniform": None} if quick else streams
    found = {
        name: aggressiveness(generated(seconds, seed=46, spread=spread), SLIDING) for name, spread in streams.items()
    }
    tumbling = Asked(30 * SECOND, 30 * SECOND)
    found["tumbling_400"] = aggressiveness(generated(seconds, seed=46, spread=400.0), tumbling)
    return found


def q4_1(quick: bool) -> tuple[dict[str, float] | None, Outcome | None]:
    """Figure 4.2: Sum(volume) over 10 min every 2 min of a real freeway, prodded after 90 s of the slide.

    The numbers, and what is drawn.
    """
    stream = freeway(hours=2 if quick else 48)
    if stream is None:
        return None, None
    outcome = run(stream, Asked(600 * SECOND, 120 * SECOND, (0.75,)))
    found = _gain(outcome, "sum")
    ends = set(outcome.paired()["window_end"].to_pylist())
    found |= {"early_latency": outcome.latency("early", ends), "final_latency": outcome.latency("final", ends)}
    thesis = {"thesis_accuracy": 94.12, "thesis_early_latency": 568.0, "thesis_final_latency": 616.0}
    return found | thesis, outcome


def automatic(quick: bool) -> list[dict[str, float | str]]:
    """PROD WITHIN .. ERROR: where the point comes to rest, and what the running error is then, and was at its worst."""
    found: list[dict[str, float | str]] = []
    stream = generated(600 if quick else 4000, seed=62)
    for permitted in (0.05, 0.1):
        outcome = run(stream, Asked(30 * SECOND, 10 * SECOND, within=Earliness(error=permitted)))
        pairs = outcome.paired().sort_by("window_end")
        error = np.max([outcome.errors(name, name, pairs) for name in AGGREGATES], axis=0)
        half = len(error) // 2
        found.append(
            {
                "permitted": 100 * permitted,
                "error": float(100 * error[half:].mean()),
                "worst_running_error": float(100 * (np.cumsum(error) / np.arange(1, len(error) + 1)).max()),
                "point": float(100 * pairs["point"].to_numpy()[half:].mean()),
                "best_point": 100 * (1 - 3 * permitted),
            }
        )
    return found
