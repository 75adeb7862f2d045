"""How the tests of a run are shared: one process has all that need Spark, and so there is one session."""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadScopeScheduling


class BothEnds(LoadScopeScheduling):  # type: ignore[misc]
    """The first process takes tests from the front, where those of Spark are, and all others from the back.

    Groups of xdist would do, but those of xdist 3.8 are lost with pytest 9.2, which has other names for tests.
    """

    def _split_scope(self, nodeid: str) -> str:
        """Each test goes by itself."""
        return nodeid

    def _assign_work_unit(self, node: Any) -> None:
        """Give a process another test, beside those that it has not ended."""
        name, test = self.workqueue.popitem(last=node is not self.nodes[0])
        left = {given: done for given, done in self.assigned_work[node].items() if not all(done.values())}
        self.assigned_work[node] = {**left, name: test}
        node.send_runtest_some([self.registered_collections[node].index(name)])
