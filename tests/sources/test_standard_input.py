"""Standard input: rows as they arrive, an end when the writer is done, no pretending that a pipe can be read again."""

from __future__ import annotations

import io
import os
from typing import BinaryIO

import pyarrow as pa
import pytest

from eventide.errors import DeclarationError, InputError
from eventide.plan.declared.stream import Input, Stream, columns
from eventide.sources.local_input import LocalInput
from eventide.sources.standard_input import StandardInput


def from_pipe(source: BinaryIO, **options: str) -> StandardInput:
    given = Input("stdin", options=tuple(options.items()))
    return StandardInput(Stream("s", columns("n BIGINT"), time="n", input=given), source)


def all_of(given: StandardInput, max_rows: int = 1000) -> list[int | None]:
    found: list[int | None] = []
    while not given.ended:
        table = given.take(max_rows, 60.0)
        if table is not None:
            assert table.num_rows <= max_rows
            found += table["n"].to_pylist()
    return found


@pytest.mark.parametrize("max_rows", [1, 2, 1000])
@pytest.mark.parametrize(
    ("kind", "text"),
    [("json", b'{"n": 1}\n\n{"n": 2}\n{"n": 3}'), ("csv", b"x,n\r\na,1\r\nb,2\r\nc,3"), ("csv", b"n\n1\n2\n3\n")],
)
def test_lines_come_in_order_to_the_last(kind: str, text: bytes, max_rows: int) -> None:
    assert all_of(from_pipe(io.BytesIO(text), format=kind), max_rows) == [1, 2, 3]


@pytest.mark.parametrize("max_rows", [1, 2, 1000])
def test_arrow_batches_come_in_order(max_rows: int) -> None:
    sink = io.BytesIO()
    table = pa.table({"other": list("abcde"), "n": pa.array(range(5), pa.int32())})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=3)
    assert all_of(from_pipe(io.BytesIO(sink.getvalue()), format="arrow"), max_rows) == [0, 1, 2, 3, 4]


def test_rows_are_given_before_the_writer_is_done() -> None:
    read, write = os.pipe()
    with open(read, "rb") as source, open(write, "wb", buffering=0) as writer:
        given = from_pipe(source)
        assert given.take(10, 0.01) is None
        writer.write(b'{"n": 1}\n{"n": ')
        first = given.take(10, 60.0)
        assert first is not None
        assert first["n"].to_pylist() == [1]
        assert given.take(10, 0.01) is None
        assert not given.ended
        writer.write(b"2}")
        writer.close()
        assert all_of(given) == [2]


def test_an_empty_pipe_ends() -> None:
    assert all_of(from_pipe(io.BytesIO(b""))) == []
    assert all_of(from_pipe(io.BytesIO(b"\n\n"), format="csv")) == []


def test_what_is_no_arrow_stream_is_told() -> None:
    with pytest.raises(InputError, match="standard input cannot be read"):
        all_of(from_pipe(io.BytesIO(b"no arrow, nothing"), format="arrow"))


def test_a_pipe_cannot_be_continued_unless_it_brings_what_comes_next() -> None:
    given = from_pipe(io.BytesIO(b'{"n": 1}\n{"n": 2}\n'))
    start = given.position()
    assert given.take(1, 60.0) is not None
    middle = given.position()
    all_of(given)
    end = given.position()
    from_pipe(io.BytesIO(b"")).seek(start)
    with pytest.raises(InputError, match=r"1 rows were taken .* start with a new checkpoint"):
        from_pipe(io.BytesIO(b"")).seek(middle)
    done = from_pipe(io.BytesIO(b'{"n": 9}\n'))
    done.seek(end)
    assert done.ended
    more = from_pipe(io.BytesIO(b'{"n": 9}\n'), resume="true")
    more.seek(middle)
    assert all_of(more) == [9]
    assert more.position() == {"rows": 2, "ended": True}


def test_what_cannot_be_declared_is_told() -> None:
    with pytest.raises(DeclarationError, match="cannot read parquet from standard input"):
        from_pipe(io.BytesIO(), format="parquet")
    given = Stream("s", columns("n BIGINT"), time="n", input=Input("stdin", "a.json"))
    with pytest.raises(DeclarationError, match="standard input has no path"):
        StandardInput(given, io.BytesIO())


def test_standard_input_is_a_local_input() -> None:
    assert isinstance(from_pipe(io.BytesIO()), LocalInput)
