"""Clients that are slow, large, many or strangers: each is refused, and the others are answered."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from queue import Queue

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.endpoint.auth import Gate, HttpError, Limits, TokenBucket
from eventide.endpoint.connections import LimitedProtocol
from eventide.endpoint.discovery import Address
from eventide.endpoint.questions import Questions
from tests.endpoint.asking import Asked, answer_on, asked

GOOD = {"host": "localhost", "authorization": "Bearer secret"}


def still_answers(engine: Asked) -> bool:
    """Perhaps not at once, where others have just taken every place."""
    for _ in range(100):
        with suppress(ConnectionError, AssertionError):
            if engine.get("/status").status == 200:
                return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize(
    "header",
    [
        "X: y",
        "Authorization: Bearer",
        "Authorization: Bearer wrong",
        "Authorization: {token}",
        "Authorization: Basic {token}",
        "Authorization: Bearer {token}x",
        "Authorization: Bearer \xff\xfe",
    ],
)
def test_without_the_token_nothing_is_answered(engine: Asked, header: str) -> None:
    said = header.replace("{token}", engine.token)
    for line in ("GET /status", "POST /prod", "GET /nothing"):
        answer = engine.send(f"{line} HTTP/1.1\r\nHost: localhost\r\n{said}\r\n\r\n".encode("latin-1"))
        assert answer.status in (401, 429)
        assert answer.status == 429 or answer.headers["www-authenticate"] == "Bearer"
        assert engine.token.encode() not in answer.body
    assert still_answers(engine)


def test_guessing_is_slowed_down_and_those_who_know_the_token_are_not() -> None:
    gate = Gate(Address(), "secret", Limits(), clock=lambda: 0.0)
    told = []
    for guess in range(50):
        with pytest.raises(HttpError) as refused:
            gate.check(GOOD | {"authorization": f"Bearer {guess}"})
        told.append(refused.value.status)
    assert told == [401] * 20 + [429] * 30
    gate.check(GOOD)


def test_more_requests_than_the_rate_permits_are_told_when_to_come_again() -> None:
    now = [0.0]
    gate = Gate(Address(), "secret", Limits(rate=2, burst=3), lambda: now[0])
    for _ in range(3):
        gate.check(GOOD)
    with pytest.raises(HttpError) as refused:
        gate.check(GOOD)
    assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "1"})
    now[0] = 0.5
    gate.check(GOOD)


@given(st.lists(st.floats(0, 10), max_size=60), st.floats(0.1, 20), st.integers(1, 10))
def test_in_any_stretch_no_more_pass_than_burst_and_rate_permit(steps: list[float], rate: float, burst: int) -> None:
    now = [0.0]
    bucket = TokenBucket(rate, burst, lambda: now[0])
    passed = []
    for step in steps:
        now[0] += step
        wait = bucket.take()
        if wait == 0.0:
            passed.append(now[0])
        else:
            before = now[0]
            now[0] += wait * 1.000001 + 1e-9
            assert bucket.take() == 0.0, "who waits as long as told passes"
            passed.append(now[0])
            assert now[0] > before
    for first in range(len(passed)):
        for last in range(first, len(passed)):
            assert last - first + 1 <= burst + rate * (passed[last] - passed[first]) + 1e-3


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (("Host: evil.example",), 403),
        (("Host: evil.example:80",), 403),
        (("Host: localhost.evil.example",), 403),
        (("Host: ",), 403),
        (("Host: localhost", "Origin: http://evil.example"), 403),
        (("Host: localhost", "Origin: null"), 403),
        (("Host: localhost:1", "Origin: http://localhost:2"), 403),
        ((), 400),
        (("Host: localhost", "Host: localhost"), 400),
        (("Host: localhost", "Content-Length: 1", "Content-Length: 2"), 400),
        (("Host: localhost", "Content-Length: -1"), 400),
        (("Host: localhost", "Content-Length: 1x"), 400),
        (("Host: localhost", "Broken"), 400),
        (("Host: localhost", "X: a\x00b"), 400),
        (("Host: localhost", "Transfer-Encoding: chunked"), 411),
        (("Host: localhost", *(f"X{n}: y" for n in range(100))), 431),
        (("Host: localhost", "X: " + "y" * 17_000), 431),
        (("Host: 127.0.0.1:99",), 200),
        (("Host: [::1]",), 200),
        (("Host: localhost:1", "Origin: http://localhost:1"), 200),
        # A folded header is one header, as RFC 9112 permits; one that has to stand there once cannot hide in it.
        (("Host: localhost", "Folded: a", " b"), 200),
        (("Host: localhost", "Folded: a", " b", "Folded: c"), 400),
    ],
)
def test_heads_of_strangers_and_broken_ones_are_refused(engine: Asked, headers: tuple[str, ...], status: int) -> None:
    lines = ["GET /status HTTP/1.1", f"Authorization: Bearer {engine.token}", *headers, "", ""]
    assert engine.send("\r\n".join(lines).encode("latin-1")).status == status


@pytest.mark.parametrize(
    "line", ["", "GET", "GET /status", "GET /status HTTP/2.0", "get /status HTTP/1.1", "\x16\x03\x01"]
)
def test_what_is_no_http_is_refused(engine: Asked, line: str) -> None:
    assert engine.send(f"{line}\r\n\r\n".encode("latin-1")).status == 400


def test_a_large_body_is_refused_before_it_is_read_and_its_sender_can_read_why(engine: Asked) -> None:
    head = engine.head("POST /prod HTTP/1.1", "Content-Length: 10000000000").encode()
    assert engine.send(head).status == 413
    assert engine.send(head + b"x" * 500_000).status == 413
    assert engine.send(engine.head("POST /prod HTTP/1.1", f"Content-Length: {64 * 1024 + 1}").encode()).status == 413


def test_a_body_without_a_length_is_refused_however_long_it_is(engine: Asked) -> None:
    head = engine.head("POST /prod HTTP/1.1", "Transfer-Encoding: chunked").encode()
    assert engine.send(head + b"ffff\r\n" + b"x" * 0xFFFF).status == 411
    # Without either header there is no body, whatever follows.
    assert engine.send(engine.head("POST /prod HTTP/1.1").encode() + b'{"query": "people"}').status == 400


def test_a_client_may_wait_to_be_asked_for_its_body(engine: Asked) -> None:
    body = b'{"query": "people"}'
    with engine.connect() as connection:
        headers = (f"Content-Length: {len(body)}", "Expect: 100-continue")
        connection.sendall(engine.head("POST /prod HTTP/1.1", *headers).encode())
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert answer_on(connection).status == 200


@pytest.mark.parametrize(
    "sent", [b"", b"GET /status HT", b"POST /prod HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n{token}\r\nabc"]
)
def test_a_slow_request_is_cut_off_in_the_end_however_it_dawdles(tmp_path: Path, sent: bytes) -> None:
    with asked(tmp_path, Limits(seconds=0.2)) as engine, engine.connect() as connection:
        connection.sendall(sent.replace(b"{token}", f"Authorization: Bearer {engine.token}\r\n".encode()))
        assert answer_on(connection).status == 408


def test_drops_that_keep_coming_do_not_buy_time(tmp_path: Path) -> None:
    with asked(tmp_path, Limits(seconds=0.5)) as engine, engine.connect() as dripping:
        dripping.settimeout(0.02)
        came = b""
        for _ in range(1000):
            try:
                dripping.sendall(b"x")
                came = dripping.recv(1000)
                break
            except TimeoutError:
                continue
        assert came.startswith(b"HTTP/1.1 408 ")
        assert still_answers(engine)


def test_clients_that_say_nothing_cannot_keep_others_out(tmp_path: Path) -> None:
    with asked(tmp_path, Limits(seconds=600, connections=4)) as engine:
        silent = [engine.connect() for _ in range(4)]
        # Whoever comes before the silent ones had a fair chance is refused, or waits for none of them.
        with engine.connect() as early, suppress(ConnectionError):
            early.sendall(engine.head("GET /status HTTP/1.1").encode())
            assert early.recv(12) in (b"HTTP/1.1 503", b"HTTP/1.1 200", b"")
        for _ in range(8):
            assert still_answers(engine)
        assert silent[0].recv(10) == b""
        for connection in silent:
            connection.close()


def test_many_clients_at_once_are_answered_or_told_to_come_again(tmp_path: Path) -> None:
    with asked(tmp_path, Limits(connections=8)) as engine:
        request = engine.head("GET /status HTTP/1.1").encode()
        clients = [engine.connect() for _ in range(60)]
        statuses = []
        for client in clients:
            try:
                client.sendall(request)
                statuses.append(answer_on(client).status)
            except (ConnectionError, AssertionError):
                statuses.append(0)  # refused before it had sent anything
            finally:
                client.close()
        assert set(statuses) <= {200, 503, 0}
        assert 200 in statuses
        assert still_answers(engine)


def test_a_client_that_does_not_take_its_answer_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventide.endpoint.connections.ANSWER_SECONDS", 0.3)
    monkeypatch.setattr(Questions, "status", lambda _: {"long": "x" * 20_000_000})
    gone, lost = Queue[object](), LimitedProtocol.connection_lost

    def losing(self: LimitedProtocol, error: Exception | None) -> None:
        lost(self, error)
        gone.put(self.client)

    monkeypatch.setattr(LimitedProtocol, "connection_lost", losing)
    with asked(tmp_path) as engine, engine.connect() as connection:
        connection.sendall(engine.head("GET /status HTTP/1.1").encode())
        # Other connections end as well.
        while gone.get(timeout=60) != connection.getsockname():
            pass
        came = 0
        with suppress(ConnectionError):
            while piece := connection.recv(1 << 20):
                came += len(piece)
        assert came < 20_000_000
        assert engine.get("/queries").status == 200


def test_clients_that_vanish_leave_nothing_behind(engine: Asked) -> None:
    for sent in (b"", b"GET", engine.head("GET /status HTTP/1.1").encode()):
        for _ in range(10):
            with engine.connect() as connection:
                connection.sendall(sent)
    assert still_answers(engine)
