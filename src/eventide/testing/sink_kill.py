"""Kill -9 in the middle of `emit`: what a sink has to stand.

Law: whenever the process dies, a reader finds of every round either nothing or all of it; every round of which `emit`
had returned is there; and what was there before a round came again stays until all of the new is there. A sink made
anew, told to rewind and given the round again shows it once.

The sink is made and killed in another process. So `make` must be something another process can import: a class, a
function of a module, or a `functools.partial` of these.

>>> from eventide.sinks.directory import Directory
>>> check_sink_killed(lambda: Directory("out"), read=lambda query: [])
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: another process cannot make this sink: give a class, a function of a module, or a \
functools.partial of these
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, TypeAlias

import pyarrow as pa

from eventide.errors import DeclarationError
from eventide.results.results import Results
from eventide.sinks.sink import Sink
from eventide.testing.sink_contract import Make, Read, as_rows, must_show, sample

Say: TypeAlias = Callable[[str], None]

ROWS = 5_000
BATCH_ROWS = 500
MIDDLE = "half of the batches are read"
ROUNDS_BEFORE_DEATH = 5


def check_sink_killed(make: Make, read: Read) -> None:
    """Kill a process in the middle of a new round, of a round that comes again, and at any moment; then look."""
    _killed_in_a_new_round(make, read)
    _killed_in_a_round_that_comes_again(make, read)
    _killed_at_any_moment(make, read)


def _killed_in_a_new_round(make: Make, read: Read) -> None:
    query = "kill_new"
    with _process(make, "emit_half", query, "1") as (process, words):
        _wait_for(words, MIDDLE)
        process.kill()
    first, second = _sample(query, 0), _sample(query, 1)
    must_show(read, query, "nothing can be read of a round in which the process was killed", first)
    _go_on(make, query, 0, second)
    must_show(read, query, "a round that is given again after a kill is there once", first, second)


def _killed_in_a_round_that_comes_again(make: Make, read: Read) -> None:
    query = "kill_again"
    with _process(make, "emit_half", query, "0") as (process, words):
        _wait_for(words, MIDDLE)
        process.kill()
    first = _sample(query, 0)
    must_show(read, query, "what could be read before a kill can be read after it", first)
    _go_on(make, query, -1, first)
    must_show(read, query, "a round that is given again after a kill is there once", first)


def _killed_at_any_moment(make: Make, read: Read) -> None:
    query = "kill_any"
    with _process(make, "emit_on_and_on", query) as (process, words):
        for round in range(ROUNDS_BEFORE_DEATH):
            _wait_for(words, str(round))
        process.kill()
    there = as_rows(read(query))
    rounds = {round for round, _, _ in there} | set(range(ROUNDS_BEFORE_DEATH))
    whole = [_sample(query, round) for round in sorted(rounds)]
    must_show(read, query, "whenever a process is killed, every emitted round is there, and each is whole", *whole)
    last = ROUNDS_BEFORE_DEATH - 1
    again = [_sample(query, round) for round in range(last + 1, max(rounds) + 2)]
    _go_on(make, query, last, *again)
    must_show(read, query, "rounds that are given again after a kill are there once", *whole[: last + 1], *again)


def _go_on(make: Make, query: str, last: int, *results: Results) -> None:
    sink = make()
    sink.rewind(query, last)
    for each in results:
        sink.emit(each)
    sink.close()


def _sample(query: str, round: int) -> Results:
    return sample(query, round, ROWS, batch_rows=BATCH_ROWS)


@contextmanager
def _process(make: Make, *task: str) -> Iterator[tuple[subprocess.Popen[bytes], IO[str]]]:
    try:
        pickled = pickle.dumps(make)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise DeclarationError(
            "another process cannot make this sink: give a class, a function of a module, or a functools.partial "
            "of these"
        ) from error
    hear, speak = os.pipe()
    program = "from eventide.testing.sink_kill import do_until_killed; do_until_killed()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(speak), *task],
        stdin=subprocess.PIPE,
        pass_fds=[speak],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    os.close(speak)
    with process, os.fdopen(hear) as words:
        try:
            assert process.stdin is not None
            process.stdin.write(pickled)
            process.stdin.close()
            yield process, words
        finally:
            process.kill()


def _wait_for(words: IO[str], word: str) -> None:
    answer = words.readline().strip()
    if answer != word:
        reason = f"it said {answer!r}" if answer else "it ended; see its standard error"
        raise AssertionError(f"the process that emits should have come to {word!r}, but {reason}")


def do_until_killed() -> None:
    """What the other process does: `python -c ... PIPE TASK ARGUMENTS`, the pickled `make` on standard input."""
    pipe, task, *arguments = sys.argv[1:]
    make: Make = pickle.loads(sys.stdin.buffer.read())
    # Left open: whoever listens hears of the end only when this process has said all there is to say about it.
    words = os.fdopen(os.dup(int(pipe)), "w", buffering=1)
    TASKS[task](make(), lambda word: print(word, file=words), *arguments)


def _emit_half(sink: Sink, say: Say, query: str, round: str) -> None:
    whole = _sample(query, 0)
    sink.emit(whole)

    def batches() -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(sample(query, int(round), ROWS, total=-ROWS, batch_rows=BATCH_ROWS).batches()):
            if number == ROWS // BATCH_ROWS // 2:
                say(MIDDLE)
                _wait_for_death()
            yield batch

    sink.emit(Results(query, int(round), ROWS, whole.schema, batches))
    say("`emit` has returned without having read all batches")


def _emit_on_and_on(sink: Sink, say: Say, query: str) -> None:
    round = 0
    while True:
        sink.emit(_sample(query, round))
        say(str(round))
        round += 1


def _wait_for_death() -> None:
    hear, _ = os.pipe()
    os.read(hear, 1)


TASKS: dict[str, Callable[..., None]] = {"emit_half": _emit_half, "emit_on_and_on": _emit_on_and_on}
