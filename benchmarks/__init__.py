"""Measurements that people can repeat: `python -m benchmarks.NAME [--quick] [--json FILE] [--out DIR]`.

Each prints tables, draws pictures into `out/`, and ends with one line of JSON.
"""
