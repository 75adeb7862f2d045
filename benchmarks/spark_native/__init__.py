"""Eventide beside Spark's own watermarks and windows, in the same session, over the same files.

`python -m benchmarks.spark_native` runs all of it; the JSON of the last line is explained in `__main__`.
"""
