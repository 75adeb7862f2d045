"""What is to be computed: frozen declarations of streams and queries, and the SQL they become. Nothing runs here.

`stream` and `query` are what a user declares, `window` cuts time into panes, `bound` checks a query against its stream
and splits its aggregates into partials, `reduce_text` and `merge_text` write the SQL of a round. All SQL is written
once, in Spark's dialect; `dialect` says it in DuckDB's."""
