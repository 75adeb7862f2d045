"""Eventide's SQL: a text with statements becomes streams, queries and the places their results go to.

The dialect is Spark's with a few statements and clauses more (`grammar/dialect.py`). `script.read_script` reads one.
"""
