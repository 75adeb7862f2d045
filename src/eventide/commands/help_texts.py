"""What the help of each command says below its options: examples, and exit codes.

Law: every example is a command that can be typed as it stands, once the files it names are there.
"""

from __future__ import annotations

CODES = """
[bold]Exit codes[/bold]

0: done. 1: a fault of Eventide's own.

2: what was given cannot be used (a file, a statement, an option).

3: it cannot go on (Spark, a disk, a sink).

130, 143: ended by Ctrl-C or SIGTERM. 141: nobody reads the output any more.
"""

RUN_CODES = """
[bold]Exit codes[/bold]

0: done, or stopped by Ctrl-C or SIGTERM after the round under way. 1: a fault of Eventide's own.

2: what was given cannot be used (a file, a statement, an option, a checkpoint of another program).

3: the engine cannot go on (Spark, a disk, a sink); committed rounds are safe.

130, 143: Ctrl-C or SIGTERM before anything ran, or a second one. 141: nobody reads the output any more.
"""

RUN_EXAMPLES = f"""
[bold]Examples[/bold]

What is there now, without Spark: eventide run traffic.sql --bounded --engine local

Until Ctrl-C, and on from there later: eventide run traffic.sql --checkpoint state

One JSON object a result: eventide run traffic.sql --json | jq .mean

As a filter, where a stream is FROM STDIN: tail -f app.jsonl | eventide run errors.sql

With Kafka: eventide run orders.sql --package org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0
{RUN_CODES}"""

CHECK_EXAMPLES = """
[bold]Examples[/bold]

eventide check traffic.sql

eventide check traffic.sql --json | jq '.findings[].message'

[bold]Exit codes[/bold]

0: no errors (there may be warnings). 2: errors, or the file cannot be read. 1: a fault of Eventide's own.
"""

EXPLAIN_EXAMPLES = f"""
[bold]Examples[/bold]

eventide explain traffic.sql

eventide explain traffic.sql --json | jq '.queries[].window'
{CODES}"""

WHY_EXAMPLES = f"""
[bold]Examples[/bold]

Every open window of a query: eventide why traffic.sql speeds --checkpoint state

One of them, by its start (in UTC): eventide why traffic.sql speeds 12:05 --checkpoint state

For a program: eventide why traffic.sql speeds --checkpoint state --json | jq '.windows[].closes_at'
{CODES}"""

PROD_EXAMPLES = f"""
[bold]Examples[/bold]

All open windows of a query: eventide prod speeds --checkpoint state

One group, and windows that end by noon (UTC): eventide prod speeds --group detector=1045 --up-to '2026-01-31 12:00'

For a program: eventide prod speeds --checkpoint state --json | jq .mean
{CODES}"""

INIT_EXAMPLES = f"""
[bold]Examples[/bold]

eventide init sensors.csv -o sensors.sql

eventide init 'logs/*.parquet' --time ts --source host

eventide init sensors.csv -o sensors.sql && eventide check sensors.sql && eventide run sensors.sql --bounded
{CODES}"""

PROFILE_EXAMPLES = f"""
[bold]Examples[/bold]

eventide profile trades.csv.gz --time event_time --arrival received --source symbol

eventide profile 'logs/*.parquet' --time ts --arrival seen --source host,channel --drop-ratio 0.1% --plot plots

eventide profile sensors.jsonl --time t --unit ms --run day --policy eventide --policy kim --json
{CODES}"""
