"""What known policies did on the shared recordings before this project began, to print beside our own figures.

From the tables of `../shared/data/BASELINES.md`: share of rows dropped and mean lag, row at a time. The names are those
of `benchmarks.heartbeats.recordings` and of the policies in the dry run; `kim` is figure 3 to the letter, the bound of
`own_progress` was chosen in hindsight.

>>> BASELINES[0.01]["fixed_best"]["crypto"]
Baseline(drop_ratio=0.01, lag_ms=151.0)
"""

from __future__ import annotations

from typing import NamedTuple


class Baseline(NamedTuple):
    """One cell of a table: the share of rows dropped, the mean lag."""

    drop_ratio: float
    lag_ms: float


RECORDINGS = ("umts d-1", "umts d-2", "umts d-3", "winlog purplesharp", "winlog empire", "crypto")

# Per cent of the rows dropped, and milliseconds of lag, in the order of RECORDINGS.
_TABLES: dict[float, dict[str, tuple[tuple[float, float], ...]]] = {
    0.001: {
        "fixed_best": ((0.09, 1200), (0.09, 1800), (0.09, 2900), (0.00, 24600), (0.10, 42100), (0.00, 216)),
        "own_progress": ((0.15, 932), (0.16, 515), (0.16, 2200), (0.00, 16100), (0.00, 21500), (0.00, 935)),
        "delay_quantile": ((0.12, 955), (0.11, 723), (0.21, 1400), (77.79, 8100), (46.12, 15700), (5.38, 63)),
        "kim": ((0.08, 728), (0.16, 684), (0.26, 752), (69.36, 9800), (11.92, 33300), (2.47, 151)),
        "kim_over_1000_rows": ((0.06, 882), (0.09, 849), (0.19, 1100), (69.05, 10600), (7.56, 30400), (0.50, 121)),
        "clairvoyant": ((0.1, 12), (0.1, 31), (0.1, 70), (0.1, 15500), (0.1, 12900), (0.1, 9)),
    },
    0.01: {
        "fixed_best": ((0.79, 282), (0.98, 231), (0.89, 268), (0.95, 23400), (0.29, 40700), (1.00, 151)),
        "own_progress": ((0.20, 517), (0.16, 515), (0.22, 547), (0.00, 16100), (0.00, 21500), (0.00, 935)),
        "delay_quantile": ((0.35, 384), (0.36, 450), (0.53, 589), (78.23, 7500), (49.66, 16500), (7.64, 58)),
        "kim": ((0.14, 455), (0.19, 439), (0.33, 473), (76.36, 8200), (12.90, 30600), (6.39, 143)),
        "kim_over_1000_rows": ((0.14, 573), (0.13, 560), (0.26, 708), (76.41, 8100), (8.62, 26900), (3.82, 84)),
        "clairvoyant": ((1, 5), (1, 20), (1, 41), (1, 15600), (1, 12900), (1, 6)),
    },
    0.05: {
        "fixed_best": ((4.98, 157), (4.81, 214), (3.50, 215), (1.81, 23000), (3.91, 38100), (5.00, 52)),
        "own_progress": ((0.20, 517), (0.16, 515), (0.22, 547), (0.00, 16100), (0.00, 21100), (0.00, 935)),
        "delay_quantile": ((1.98, 251), (1.61, 243), (1.07, 253), (79.85, 7200), (56.47, 16700), (13.02, 50)),
        "kim": ((0.42, 279), (0.29, 290), (0.44, 375), (49.94, 19300), (7.74, 30700), (13.89, 151)),
        "kim_over_1000_rows": ((0.24, 378), (0.18, 385), (0.35, 516), (78.41, 6700), (9.87, 21900), (6.41, 60)),
        "clairvoyant": ((5, 3), (5, 14), (5, 31), (5, 16200), (5, 13000), (5, 2)),
    },
}

BASELINES: dict[float, dict[str, dict[str, Baseline]]] = {
    permitted: {
        policy: {
            name: Baseline(percent / 100, float(lag)) for name, (percent, lag) in zip(RECORDINGS, cells, strict=True)
        }
        for policy, cells in table.items()
    }
    for permitted, table in _TABLES.items()
}
"""permitted drop ratio -> policy -> recording -> what it did."""
