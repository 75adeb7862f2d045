"""How far time has come: every heartbeat policy on the papers' systems, on real recordings and on hard streams.

`python -m benchmarks.heartbeats` runs all of it; the JSON of the last line is explained in `__main__`.
"""
