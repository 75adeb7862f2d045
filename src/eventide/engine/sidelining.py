"""Bursts are set aside when their windows are prodded: what waits then in a queue makes way for what comes after.

Law: when a query has been asked for early answers, rows that wait in a queue below it are set aside if a window that
holds them is over, by the heartbeat of what the queue reads, and was asked for: their early answer is told, and their
final one would hold up all that follows (prodding thesis, section 6.2 (a)). Rows of windows that are not over stay in
the queue: without a burst they are through before their window ends, so nothing is set aside.
"""

from __future__ import annotations

from eventide.engine.prodding import needed_for
from eventide.engine.queue_run import QueueRun
from eventide.engine.windows import ends_of
from eventide.engine.work import Round
from eventide.eventtime.instant import EDGE
from eventide.plan.binding import BoundProgram
from eventide.plan.queue import Queue
from eventide.plan.window import Window


def set_bursts_aside(work: Round, plan: BoundProgram) -> None:
    """Set aside what the prods of a round leave waiting; `work.prodded` says up to when queries were asked."""
    for name, up_to in work.prodded.items():
        for queue in needed_for(plan, name) & work.operators.keys():
            run = work.operators[queue]
            declared = plan.program.operator(queue)
            if not isinstance(run, QueueRun) or not isinstance(declared, Queue) or declared.sideline is None:
                continue
            reached = min(work.frontiers[way.source].time for way in plan.ways_into(queue))
            last = last_instant_over(declared, min(up_to, reached))
            if last is None:
                continue
            work.operators[queue], marks = run.setting_aside(last)
            if marks is not None:
                work.added.setdefault(queue, {}).setdefault("aside", []).append(marks)


def last_instant_over(queue: Queue, reached: int) -> int | None:
    """The last instant of the last window of whoever reads a queue that is over then; None where all are, or none is.

    >>> last_instant_over(Queue("q", ("s",), window=Window(50, 10)), 57)
    49
    """
    assert isinstance(queue.window, Window)
    return None if abs(reached) >= EDGE else ends_of(queue.window).at_or_before(reached + 1) - 1
