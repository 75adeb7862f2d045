"""State that grows because a source is silent: told when it is large, and again each time it has doubled.

Law: nothing is told of state that is small, or that waits for rows which still come. When state has shrunk,
it is told anew as it grows.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from eventide.engine.introspection.status import QueryStatus
from eventide.engine.introspection.why import ProgressReport
from eventide.engine.operators.operator import Operator
from eventide.engine.round.placement import state_bytes, state_rows
from eventide.plan.declared.driver_memory import size_words

log = logging.getLogger(__name__)

LARGE = 64 * 1024 * 1024
"""Bytes from which on growth is told."""


class StateGrowth:
    """Remembers at which size it will speak next."""

    def __init__(self, large: int = LARGE) -> None:
        self._large = self._next = large

    def look(self, operators: Mapping[str, Operator], progress: ProgressReport | None, on_cluster: bool) -> None:
        """Look at the state after a round; `on_cluster`: what is too large for the driver goes there."""
        size = sum(map(state_bytes, operators.values()))
        if size < self._next:
            while self._next > self._large and size < self._next // 8:
                self._next //= 2
            return
        largest = max(operators.values(), key=state_bytes)
        held = _silent_source(QueryStatus.of(largest, progress).waits_for)
        if held is None:
            return
        while self._next <= size:
            self._next *= 2
        stream, source, heard = held
        where = (
            "what is above driver.memory goes to files of the checkpoint"
            if on_cluster
            else "all of it is in the memory of this process"
        )
        log.warning(
            "state has grown to %s (%s, %s rows) and waits for source %r of stream %r, %s: let it speak, end it, or "
            "declare IDLE AFTER, which leaves a silent source out, or a DRATIO or SLACK, which limits what is held; %s",
            size_words(size),
            largest.name,
            f"{state_rows(largest):,}",
            source,
            stream,
            "which has never spoken" if heard is None else f"silent since {_moment(heard)}",
            where,
        )


def _silent_source(waits_for: dict[str, Any] | None) -> tuple[str, str, int | None] | None:
    """The stream and the first source that are waited for at the end of the way, if that is silent."""
    while waits_for is not None and "stream" not in waits_for:
        below = waits_for.get("waits_for")
        waits_for = below[0] if isinstance(below, list) and below else below if isinstance(below, dict) else None
    if waits_for is None or not waits_for["sources"] or not waits_for["sources"][0]["silent"]:
        return None
    first = waits_for["sources"][0]
    return waits_for["stream"], first["source"], first["heard"]


def _moment(clock: int) -> str:
    return f"{datetime.fromtimestamp(clock / 1_000_000, UTC):%Y-%m-%d %H:%M:%S} UTC"
