"""What is to be computed: frozen declarations of streams and queries, and the SQL they become. Nothing runs here.

`declared` is what a user declares, `bound` and `binding` check it against its inputs, `aggregates` splits aggregates
into partials, `sql` writes the statements of a round. All SQL is written once, in Spark's dialect (`expressions`);
`duckdb` transpiles it to DuckDB's.
"""
