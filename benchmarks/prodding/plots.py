"""Accuracy against prodding aggressiveness, as figures 4.6 to 4.11 of the thesis draw it; its numbers as crosses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from benchmarks.prodding.bursts import Answers
from benchmarks.prodding.figures import THESIS
from benchmarks.prodding.runs import Outcome

WORST = ("normal_400", "tumbling_400")


def draw_aggressiveness(name: str, found: dict[str, Any], path: Path) -> None:
    """One line for each aggregate; dotted where sums and counts are extrapolated; the worst case where it was drawn."""
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    field = figure.subplots()
    for place, aggregate in enumerate(("average", "max", "sum", "count")):
        color = f"C{place}"
        mean = found[aggregate]["mean"]
        field.plot(list(mean), list(mean.values()), marker="o", color=color, label=aggregate)
        if name in WORST:
            worst = found[aggregate]["worst"]
            field.plot(list(worst), list(worst.values()), linestyle="--", color=color, label=f"{aggregate}, worst")
        if f"{aggregate}_estimate" in found:
            lifted = found[f"{aggregate}_estimate"]["mean"]
            field.plot(list(lifted), list(lifted.values()), linestyle=":", color=color, label=f"{aggregate}, estimate")
        for kind, thesis in THESIS.get(name, {}).get(aggregate, {}).items():
            label = "thesis" if kind == "mean" else "thesis, worst"
            field.plot(list(thesis), list(thesis.values()), linestyle="", marker="x", color=color, label=label)
    gain = found["gain"]["mean"]
    field.plot(list(gain), list(gain.values()), color="0.6", marker=".", label="latency gain")
    field.set(xlabel="prodding aggressiveness, %", ylabel="accuracy, %", title=name.replace("_", " "))
    field.legend(fontsize="x-small", ncols=2)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def draw_latencies(outcome: Outcome, found: dict[str, float], path: Path) -> None:
    """Early and final latency of each window, as figure 4.2 draws it; the means of the thesis are dashed."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    field = figure.subplots()
    for place, (kind, marker) in enumerate((("final", "*"), ("early", "^"))):
        told = [late for _, late in outcome.latencies(kind)]
        color = f"C{place}"
        field.plot(range(len(told)), told, marker, color=color, markersize=3, label=f"{kind} answers")
        field.axhline(found[f"{kind}_latency"], color=color, label=f"{kind}, mean")
        field.axhline(found[f"thesis_{kind}_latency"], color=color, linestyle="--", label=f"{kind}, thesis")
    field.set(xlabel="window", ylabel="seconds from its first row", title="Q4-1 over a freeway")
    field.legend(fontsize="x-small", ncols=2)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def draw_bursts(found: dict[str, Answers], path: Path) -> None:
    """When windows are answered, as figures 4.5 and 6.3 draw it: one field for each way to treat a burst."""
    figure = Figure(figsize=(7, 2.4 * len(found)), layout="constrained")
    fields = figure.subplots(len(found), sharex=True, sharey=True)
    for field, (name, answers) in zip(fields, found.items(), strict=True):
        first = answers.ends[0]
        for kind, marker, color in (("final", "*", "C0"), ("early", "^", "C1")):
            told = getattr(answers, kind)
            places = [(end - first) / 1e6 for end in told]
            field.plot(places, [delay for delay, _ in told.values()], marker, color=color, label=kind)
        field.set(ylabel="seconds after the end", title=f"bursts {name}")
    fields[0].legend(fontsize="x-small")
    fields[-1].set(xlabel="window")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
