"""The outside world -> rows with the declared columns, and the raw text of what could not be read.

Two ways in: `spark.input.read_stream` for the Spark engine, `registry.open_input` for the local one. Both give exactly
the declared columns, in order, and one more, `_malformed`: NULL for a good row, else the text of the broken one.
"""
