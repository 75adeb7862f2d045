"""Run the prodding benchmark: `python -m benchmarks.prodding [--quick] [--json FILE] [--out DIR]`.

All of it is in virtual time on the local engine, so figures do not depend on the machine, but for
`work_per_round_ratio` and `on_spark`. The last line is one JSON object with the thesis' own numbers beside ours:

- `table_4_1`: latency of final answers with prods and without, and their ratio, which must be 1.
- `table_4_2`, `table_4_3`: accuracy in percent and gain in seconds over delayed and over bursty streams.
- `thesis`: what the text of the thesis says of `figures`.
- `figure_4_2`: Q4-1 over a real freeway; null where the recording is not there.
- `figures`: accuracy in percent by prodding aggressiveness, mean and worst, for figures 4.6 to 4.11, and of sums and
  counts that are extrapolated.
- `bursts`: figures 4.5 and 6.3: a burst before an expensive function, waiting in its queue and set aside. Windows in
  `late_windows` are final more than a second after their end; `same_finals`: every final answer is that of all rows;
  `others`: windows without a burst, of which so many are later, or earlier, than if bursts wait.
- `on_spark`: a subset in real time on Spark.
- `automatic`: where `PROD WITHIN .. ERROR` comes to rest; `best_point` is where a sum has just that error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.harness import finish, options, say, scratch, show_table
from benchmarks.prodding import bursts, figures
from benchmarks.prodding.on_spark import on_spark
from benchmarks.prodding.plots import draw_aggressiveness, draw_bursts, draw_latencies


def main() -> None:
    """Measure, show, draw, and end with the line of JSON."""
    asked = options("early answers: what they gain and what they are worth")
    results: dict[str, Any] = {"thesis": figures.THESIS}
    for part in (figures.table_4_1, figures.table_4_2, figures.table_4_3, figures.figures, figures.automatic):
        say(f"measuring {part.__name__}")
        results[part.__name__] = part(asked.quick)
    say("measuring figures 4.2, 4.5 and 6.3")
    results["figure_4_2"], freeway = figures.q4_1(asked.quick)
    results["bursts"], drawn = bursts.figures(asked.quick)
    say("measuring on Spark, in real time")
    with scratch() as folder:
        results["on_spark"] = on_spark(folder, asked.quick)
    for name in ("table_4_1", "table_4_2", "table_4_3", "automatic"):
        _show(name, results[name])
    if freeway is not None:
        _show("figure_4_2", [results["figure_4_2"]])
        for ending in ("png", "svg"):
            draw_latencies(freeway, results["figure_4_2"], asked.picture(f"prodding_figure_4_2.{ending}"))
    _show("on_spark", [results["on_spark"]])
    _show("bursts", [{"": name, **results["bursts"][name]} for name in drawn])
    for ending in ("png", "svg"):
        draw_bursts(drawn, asked.picture(f"prodding_bursts.{ending}"))
    for name, found in results["figures"].items():
        _show_accuracy(name, found)
        for ending in ("png", "svg"):
            draw_aggressiveness(name, found, asked.picture(f"prodding_{name}.{ending}"))
    finish(asked, results)


def _show(title: str, rows: Sequence[dict[str, Any]]) -> None:
    names = list(rows[0])
    cells = [[f"{row[name]:.2f}" if isinstance(row[name], float) else row[name] for name in names] for row in rows]
    show_table(title, names, cells)


def _show_accuracy(title: str, found: dict[str, Any]) -> None:
    points = sorted(found["sum"]["mean"])
    rows = [
        (f"{name}, {kind}", *(f"{by[point]:.2f}" for point in points))
        for name, kinds in found.items()
        for kind, by in kinds.items()
    ]
    show_table(f"{title}: percent, by prodding aggressiveness", ["", *(f"{point} %" for point in points)], rows)


if __name__ == "__main__":
    main()
