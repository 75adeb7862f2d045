"""Run the heartbeat benchmark: `python -m benchmarks.heartbeats [--quick] [--json FILE] [--out DIR]`.

The last line is one JSON object:

- `own_policy_worst_excess`: largest share lost over share permitted by our own policy, over all streams at 1 and 5 %,
  without the first 1,000 rows of a run. It must be 1.1 at most. `own_policy_worst_excess_0.1` is the same at 0.1 %.
- `own_policy_worst_source_excess`: the same for the worst single source with 1,000 rows or more.
- `beyond_the_promise`: the same for the few generated streams on which no policy can hold a ratio, left out above.
- `lag_vs_best_fixed`: our mean lag over that of the best fixed delay in hindsight, geometric mean over recordings at
  1 %; `lag_vs_best_fixed_0.1`: the same at 0.1 %; `lag_vs_clairvoyant`: over the limit, per recording.
- `lag_vs_best_fixed_known_families`, `lag_vs_best_fixed_new_families`: the same over generated families, those known
  while the policy was made, and those written when it was frozen. `budget_used`: the median share of the budget lost.
- `rows_per_second`: the dry run in rounds of a second with every policy; `ms_per_round_*`: one round of our own policy.
- `example_systems`, `sensor_experiment`: the figures of parts (a) and (b).

The quick form does less of everything: a figure it does not measure is null. Every outcome goes to `heartbeats.json` in
the folder of the pictures.
"""

from __future__ import annotations

import json
from typing import Any

from benchmarks.harness import finish, options, show_table
from benchmarks.heartbeats import example_systems, plots, sensor_experiment, speed, streams, summary, tables


def main() -> None:
    """Measure, show, draw, and end with the line of JSON."""
    asked = options("heartbeat policies on the papers' systems, on recordings and on hard streams")
    results: dict[str, Any] = {
        "example_systems": example_systems.show(example_systems.measure(asked.quick)),
        "sensor_experiment": sensor_experiment.show(sensor_experiment.measure(asked.quick)),
    }
    measured = streams.measure(asked.quick)
    tables.show_recordings(measured)
    tables.show_promises(measured)
    plots.draw_lag_against_loss(measured, asked.picture("lag_against_loss.png"))
    plots.draw_worst_excess(measured, asked.picture("worst_excess.png"))
    asked.out.mkdir(parents=True, exist_ok=True)
    asked.picture("heartbeats.json").write_text(json.dumps(summary.details(measured), indent=1), encoding="utf-8")
    speeds = speed.measure(asked.quick)
    show_table("speed", ["what", "figure"], [(what, f"{figure:,.3g}") for what, figure in speeds.items()])
    finish(asked, {**summary.headline(measured), **speeds, **results})


if __name__ == "__main__":
    main()
