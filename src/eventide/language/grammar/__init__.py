"""The grammar: a small difference on Spark's dialect, the text that is read, and what was probably meant."""
