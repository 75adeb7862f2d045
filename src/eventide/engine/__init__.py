"""The engine: rounds, slices and their placement, commit and recovery.

`rounds` is the round itself, the same on both engines; `spark_*` and `local_*` are what differs between them.
"""
