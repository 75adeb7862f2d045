"""What the console answers to whom: sessions, permissions, headers, events, and what it never gives."""

from __future__ import annotations

import http.client
import json
import stat
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import pytest

from eventide.console.lifecycle import Console, open_console
from eventide.console.sessions import KEY_FILE
from eventide.endpoint.auth import Limits
from tests.endpoint.asking import Asked, asked


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Asked, Console]]:
    with asked(tmp_path_factory.mktemp("shown"), Limits(seconds=20, rate=10_000, burst=10_000)) as found:
        yield found, open_console(found.engine, found.endpoint)


def request(
    found: Asked, method: str, path: str, session: str | None = None, body: Any = None, **more: str
) -> tuple[int, Mapping[str, str], bytes]:
    parts = urlsplit(found.endpoint.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    headers = more | ({} if session is None else {"Authorization": f"Bearer {session}"})
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    events = path.startswith("/console/api/events") and answer.status == 200
    text = answer.readline() if events else answer.read()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, text


def session_of(found: Asked, link: str) -> str:
    token = link.partition("#token=")[2]
    status, _, body = request(found, "POST", "/console/session", body={"token": token})
    assert status == 200
    return str(json.loads(body)["session"])


def test_a_link_is_exchanged_once_for_a_session_that_sees(shown: tuple[Asked, Console]) -> None:
    found, console = shown
    link = console.link()
    session = session_of(found, link)
    token = link.partition("#token=")[2]
    assert request(found, "POST", "/console/session", body={"token": token})[0] == 401
    status, headers, event = request(found, "GET", "/console/api/events?page=time", session)
    assert (status, headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    told = json.loads(event.removeprefix(b"data: "))
    assert told["streams"][0]["name"] == "doors"


@pytest.mark.parametrize(
    "path", ["api/events?page=time", "api/plan", "api/sample?stream=doors&kind=late", "api/what-if?stream=doors"]
)
def test_nothing_is_seen_without_a_session(shown: tuple[Asked, Console], path: str) -> None:
    found, console = shown
    good = session_of(found, console.link())
    for session in (None, "wrong", good[:-1], good + "0", "." + good):
        status, _, body = request(found, "GET", f"/console/{path}", session)
        assert status in (401, 429)
        assert b"doors" not in body
    assert request(found, "GET", f"/console/{path}", found.token)[0] == 200


def test_reading_and_prodding_are_permissions_of_their_own(shown: tuple[Asked, Console]) -> None:
    found, console = shown
    reader, prodder = session_of(found, console.link(read_only=True)), session_of(found, console.link())
    asked_for = {"query": "people"}
    assert request(found, "POST", "/console/api/prod", reader, asked_for)[0] == 403
    status, _, body = request(found, "POST", "/console/api/prod", prodder, asked_for)
    assert status == 200
    assert len(json.loads(body)["rows"]) == 4
    # A session of the console is no token of the engine.
    assert request(found, "GET", "/status", prodder)[0] == 401
    assert request(found, "POST", "/console/link", prodder, {})[0] == 401


def test_only_the_owner_of_the_token_makes_links(shown: tuple[Asked, Console]) -> None:
    found, _ = shown
    status, _, body = request(found, "POST", "/console/link", found.token, {"read_only": True})
    assert status == 200
    reader = session_of(found, json.loads(body)["url"])
    assert request(found, "POST", "/console/api/prod", reader, {"query": "people"})[0] == 403


def test_the_page_runs_only_its_own_files(shown: tuple[Asked, Console]) -> None:
    found, _ = shown
    for path in ("", "app.js", "style.css", "vendor/uPlot.js"):
        status, headers, body = request(found, "GET", f"/console/{path}")
        assert status == 200
        assert "script-src 'self';" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert b"doors" not in body
    page = request(found, "GET", "/console/")[2]
    assert b"<script>" not in page
    assert b" on" not in page.split(b"<body>")[1].replace(b" once", b"")
    assert b"style=" not in page


@pytest.mark.parametrize(
    "path",
    [
        "/console/../endpoint.token",
        "/console/%2e%2e/endpoint.token",
        "/console/vendor/",
        "/console/vendor/uPlot.LICENSE",
        "/console/sessions.py",
        "/console//app.js",
    ],
)
def test_no_other_file_is_given(shown: tuple[Asked, Console], path: str) -> None:
    found, _ = shown
    assert request(found, "GET", path)[0] == 404


def test_pages_of_other_servers_are_refused_everywhere(shown: tuple[Asked, Console]) -> None:
    found, console = shown
    session = session_of(found, console.link())
    for path in ("/console/", "/console/api/plan"):
        assert request(found, "GET", path, session, Origin="http://evil.example")[0] == 403
        assert request(found, "GET", path, session, Host="evil.example")[0] == 403
    refused = request(found, "POST", "/console/session", body={"token": "x"}, Origin="http://evil.example")
    assert refused[0] == 403


@pytest.mark.parametrize(
    "query", ["", "page=nothing", "page=time&page=plan", "page=time&path=x", "page=time&find=" + "x" * 300]
)
def test_a_page_that_does_not_exist_is_refused(shown: tuple[Asked, Console], query: str) -> None:
    found, console = shown
    assert request(found, "GET", f"/console/api/events?{query}", session_of(found, console.link()))[0] in (400, 404)


def test_the_key_can_be_read_by_its_owner_alone(shown: tuple[Asked, Console]) -> None:
    found, _ = shown
    assert stat.S_IMODE((found.endpoint.folder / KEY_FILE).stat().st_mode) == 0o600
