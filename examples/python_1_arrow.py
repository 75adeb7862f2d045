"""Queries from Python over Arrow data, without Spark: an hour of disorderly devices, replayed as it arrived.

    python -m examples.python_1_arrow

Each batch is a round. Up to 1 % of the rows may be late; two queries share the one stream.
"""

from __future__ import annotations

import eventide
from eventide.api.inputs import Given
from eventide.api.query import ContinuousQuery
from examples.make_recording import recording


def queries(rows: Given) -> tuple[ContinuousQuery, ContinuousQuery]:
    """Two queries over one stream."""
    devices = eventide.stream(
        rows, time="event_time", source="device", arrival="arrival_time", name="devices"
    ).drop_ratio(0.01)
    every_minute = devices.window("5 minutes", "1 minute").agg("avg(value) AS mean", readings="count(*)")
    by_device = (
        devices.where("value > 0")
        .window("10 minutes")
        .groupBy("device")
        .agg(spread="max(value) - min(value)")
        .orderBy("spread DESC")
        .limit(3)
    )
    return every_minute.named("every_minute"), by_device.named("by_device")


def main() -> None:
    """Run to the end and show what came out."""
    with eventide.start(*queries(recording().to_batches(max_chunksize=2000))) as running:
        running.awaitTermination()
        for name, query in running.items():
            print(f"\n{name}: the last of {query.results().num_rows} results")
            for row in query.results().to_pylist()[-3:]:
                print({key: row[key] for key in row if key not in ("query", "kind", "round", "heartbeat")})
        stream = running.status().streams[0]
        print(f"\n{stream.late:,} of {stream.wanted:,} rows came too late: {stream.drop_ratio:.2%}, 1 % is permitted")


if __name__ == "__main__":
    main()
