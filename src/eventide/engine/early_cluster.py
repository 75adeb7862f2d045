"""Slices on the cluster, read and merged for an early answer, beside the rounds.

Laws. What an asking reads stays as long as it reads, whatever is committed meanwhile: garbage among it waits. What it
writes is in a folder of its own, which no record ever names and which is gone when the answer is there; a crash leaves
it as garbage that the next engine sweeps. Nothing of the checkpoint's own state is touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from uuid import uuid4

from eventide.engine.cluster_slices import Cluster, ClusterSlices
from eventide.engine.record import StateFile
from eventide.engine.work import Run
from eventide.plan.bound import Bound


class EarlyCluster(Cluster):
    """Writes the files of one asking."""

    def __init__(self, cluster: Cluster, folder: str) -> None:
        super().__init__(cluster.backend, cluster.checkpoint)
        self._storage = cluster.checkpoint.storage.apart()
        self._place = folder

    def close(self) -> None:
        """Remove all that was written."""
        self._storage.remove_folder(self._place)

    def _folder(self, query: Bound, round: int) -> str:
        return self._folder_of_answer(query)

    def _folder_of_answer(self, query: Bound) -> str:
        self._stored += 1
        return f"{self._place}/{query.query.name}-{self._stored}"

    def _adopted(self, folder: str) -> tuple[StateFile, ...]:
        # Nobody will verify it: it is read at once and never again.
        names = self._storage.list(folder)
        return tuple(StateFile(name, self._storage.size(name), "") for name in names)


@contextmanager
def reading(cluster: Cluster | None, runs: Iterable[Run]) -> Iterator[Cluster | None]:
    """Hold the files of these runs, and give a cluster to answer with; None where all slices are with the driver."""
    placed = [run.slices for run in runs if isinstance(run.slices, ClusterSlices)]
    if cluster is None or not placed:
        yield None
        return
    files = frozenset(file.name for slices in placed for chunk in slices.chunks for file in chunk.files)
    folder = f"slices/_early-{uuid4().hex}"
    with cluster.checkpoint.holding(files, folder):
        early = EarlyCluster(cluster, folder)
        try:
            yield early
        finally:
            early.close()
