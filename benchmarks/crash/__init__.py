"""Kill -9 at every moment of a round, and at any other: nothing is lost and nothing doubled.

`python -m benchmarks.crash --kills 50` runs it; the JSON of the last line is explained in `__main__`.
"""
