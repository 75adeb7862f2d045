"""Where the slices of a query are: with the driver while they are small, on the cluster when they are not.

Law: the place changes no answer. Slices move to the cluster above `driver_bytes`, and come back when they are far below
it, so that a query near the edge does not move to and fro. It is Spark's own choice between broadcast and shuffle, made
per query and while it runs. Windows over a count of rows stay with the driver."""

from __future__ import annotations

from dataclasses import dataclass, replace

from eventide.engine.cluster_slices import Cluster, ClusterSlices
from eventide.engine.query_run import QueryRun
from eventide.engine.slices import DriverSlices
from eventide.engine.work import Run

DRIVER_BYTES = 256 * 1024 * 1024
BACK_BELOW = 16
"""Slices come back when their files are smaller than this part of the limit: files are packed, memory is not."""


@dataclass(frozen=True)
class Placement:
    """Decides for every query after each round; without a cluster everything stays."""

    cluster: Cluster | None
    driver_bytes: int = DRIVER_BYTES

    def placed(self, run: Run, round: int) -> Run:
        """The same run, its slices where they belong now."""
        if self.cluster is None or not isinstance(run, QueryRun):
            return run
        slices = run.slices
        if isinstance(slices, DriverSlices):
            if slices.bytes <= self.driver_bytes:
                return run
            chunk = self.cluster.moved(run.query, slices.table(), round)
            return replace(run, slices=ClusterSlices(run.query, self.cluster, (chunk,), round))
        if slices.bytes * BACK_BELOW > self.driver_bytes:
            return replace(run, slices=replace(slices, round=round + 1))
        table = self.cluster.table(slices.chunks)
        back = DriverSlices(run.query, run.bench)
        return replace(run, slices=back if table is None else back.added(table.cast(back.empty().schema)))
