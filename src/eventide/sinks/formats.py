"""The formats in which a directory of results can be written."""

FORMATS = ("parquet", "json", "csv")
