"""How cost and memory grow with the state, for every operator on the Spark engine.

`python -m benchmarks.scale` runs all of it; the JSON of the last line is explained in `__main__`.
"""
