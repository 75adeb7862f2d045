"""Eventide's joins beside Spark's own stream-stream joins, in the same session, over the same files.

`python -m benchmarks.join_vs_spark` runs all of it; the JSON of the last line is explained in `__main__`.
"""
