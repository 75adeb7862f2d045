"""Public helpers for tests and benchmarks: generated streams whose difficulty is known.

>>> HARD_CASES["in_order"](seed=0).rows
20000
"""

from eventide.testing.streams import HARD_CASES

__all__ = ["HARD_CASES"]
