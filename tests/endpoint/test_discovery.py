"""Where an engine listens is told beside its checkpoint, to its own user alone, and only while it is true."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from eventide.endpoint.client import Client
from eventide.endpoint.discovery import Address, Published, write_whole
from eventide.endpoint.lifecycle import listen
from eventide.errors import DeclarationError, EngineError, InputError
from eventide.storage.remote import RemoteStorage
from tests.commands.processes import ENVIRONMENT, REPOSITORY
from tests.endpoint.asking import answer_on, asked

LISTENING = """
import pathlib, sys, time
from tests.endpoint.asking import asked
with asked(pathlib.Path(sys.argv[1])) as engine:
    print(engine.endpoint.url, flush=True)
    time.sleep(600)
"""


def test_the_token_is_for_this_user_alone_from_its_first_moment(tmp_path: Path) -> None:
    seen = set[int]()
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            for file in tmp_path.iterdir():
                with suppress(FileNotFoundError):
                    seen.add(stat.S_IMODE(file.stat().st_mode))

    before = os.umask(0)
    looker = threading.Thread(target=look)
    looker.start()
    try:
        (tmp_path / "endpoint.token").write_text("an old one")
        (tmp_path / "endpoint.token").chmod(0o600)
        for n in range(300):
            write_whole(tmp_path / "endpoint.token", f"secret {n}", private=True)
    finally:
        os.umask(before)
        done.set()
        looker.join()
    assert (tmp_path / "endpoint.token").read_text() == "secret 299"
    # The old file had the permissions of the umask before it was given others.
    assert seen - {0o666} == {0o600}
    assert [file.name for file in tmp_path.iterdir()] == ["endpoint.token"]


def test_a_link_that_somebody_laid_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("theirs")
    (tmp_path / "endpoint.token").symlink_to(tmp_path / "elsewhere")
    write_whole(tmp_path / "endpoint.token", "secret", private=True)
    assert (tmp_path / "elsewhere").read_text() == "theirs"
    assert not (tmp_path / "endpoint.token").is_symlink()


def test_an_engine_tells_where_it_listens_and_takes_it_back_when_it_stops(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with asked(tmp_path) as engine:
        assert stat.S_IMODE((state / "endpoint.token").stat().st_mode) == 0o600
        assert engine.token not in (state / "endpoint.json").read_text()
        client = Client.of_checkpoint(state)
        assert client.ask("GET", "/status")["round"] == 0
        address = engine.endpoint.address
        engine.coming.put(None)
    assert not (state / "endpoint.json").exists()
    assert not (state / "endpoint.token").exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address.host, address.port), timeout=5)
    with pytest.raises(EngineError, match="no engine that can be asked"):
        Client.of_checkpoint(state)
    with pytest.raises(EngineError, match="nobody listens"):
        client.ask("GET", "/status")


def test_closing_an_endpoint_leaves_the_engine_running_and_it_may_listen_again(tmp_path: Path) -> None:
    with asked(tmp_path) as engine:
        engine.endpoint.close()
        engine.endpoint.close()
        assert engine.engine.status().round == 0
        with pytest.raises(EngineError):
            Client.of_checkpoint(tmp_path / "state")
        again = listen(engine.engine)
        assert Client.of_checkpoint(tmp_path / "state").ask("GET", "/queries")["queries"]
        # What another engine has told meanwhile is not ours to take away.
        engine.endpoint._published.withdraw()
        assert again.token_file.exists()


def test_a_token_never_goes_into_an_object_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with asked(tmp_path) as engine:
        engine.endpoint.close()
        store = RemoteStorage(SubTreeFileSystem(str(tmp_path), LocalFileSystem()), "bucket", "s3a://bucket")
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(engine.engine.engine.checkpoint, "storage", store)
            endpoint = listen(engine.engine)
        assert list((tmp_path / "bucket").iterdir()) == []
        assert stat.S_IMODE(endpoint.folder.stat().st_mode) == 0o700
        assert Client.of_checkpoint(endpoint.folder).ask("GET", "/status")
    assert not endpoint.folder.exists()


def test_an_address_that_is_taken_is_told_with_the_way_out(tmp_path: Path) -> None:
    with asked(tmp_path) as engine:
        with pytest.raises(EngineError, match="Name another address, or port 0"):
            listen(engine.engine, Address(port=engine.endpoint.address.port))
        with pytest.raises(EngineError, match=r"cannot listen at no-such-host\.invalid:0"):
            listen(engine.engine, Address("no-such-host.invalid"))
        assert Client.of_checkpoint(tmp_path / "state").ask("GET", "/status")
    with pytest.raises(EngineError, match="has ended"):
        listen(engine.engine)


def test_what_a_killed_engine_left_is_recognised_and_the_next_one_writes_over_it(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", LISTENING, str(tmp_path)],
        env=ENVIRONMENT | {"PYTHONPATH": f"{REPOSITORY / 'src'}{os.pathsep}{REPOSITORY}"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout as out:
        url = out.readline().strip()
        client = Client.of_checkpoint(tmp_path / "state")
        assert client.url == url
        assert client.ask("GET", "/status")["round"] == 0
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert (tmp_path / "state" / "endpoint.json").exists()
    with pytest.raises(EngineError, match=f"process {process.pid}, which listened at {url}, is gone"):
        Client.of_checkpoint(tmp_path / "state")
    with pytest.raises(EngineError, match=r"nobody listens at .*, where its last one did"):
        client.ask("GET", "/status")
    token = (tmp_path / "state" / "endpoint.token").read_text()
    with asked(tmp_path) as engine:
        assert engine.token != token
        assert Client.of_checkpoint(tmp_path / "state").ask("GET", "/status")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"version": 1, "url": "http://127.0.0.1:1", "process": "x"}'])
def test_a_file_of_something_else_is_told(tmp_path: Path, content: str) -> None:
    (tmp_path / "endpoint.json").write_text(content)
    with pytest.raises(InputError, match="was not written by this Eventide"):
        Published.read(tmp_path)


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_an_address_that_somebody_else_laid_beside_our_token_is_not_believed(tmp_path: Path) -> None:
    Published.write(tmp_path, "http://127.0.0.1:1", "secret")
    os.chown(tmp_path / "endpoint.json", 12345, 12345)
    with pytest.raises(InputError, match="belong to different users"):
        Client.of_checkpoint(tmp_path)


@pytest.mark.parametrize("token", [None, "", "two words", "\N{SNOWMAN}"])
def test_a_token_that_cannot_be_one_is_told(tmp_path: Path, token: str | None) -> None:
    if token is not None:
        (tmp_path / "token").write_text(token, encoding="utf-8")
    with pytest.raises(InputError, match="token"):
        Client.of_url("http://127.0.0.1:1", tmp_path / "token")


def test_what_answers_but_is_no_engine_is_told(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    for answer in (
        b"HTTP/1.1 200 OK\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\n\r\n[]",
        b"HTTP/1.1 500 x\r\n\r\n{}",
        b"SSH-2.0\r\n",
    ):
        with socket.create_server(("127.0.0.1", 0)) as stranger:

            def serve(listening: socket.socket = stranger, said: bytes = answer) -> None:
                connection, _ = listening.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(said)

            thread = threading.Thread(target=serve)
            thread.start()
            client = Client.of_url(f"http://127.0.0.1:{stranger.getsockname()[1]}", tmp_path / "token")
            with pytest.raises(EngineError, match=r"no engine of Eventide's|cannot ask the engine"):
                client.ask("GET", "/status")
            thread.join()


def test_a_wrong_token_is_the_users_to_mend(tmp_path: Path) -> None:
    with asked(tmp_path) as engine:
        (tmp_path / "token").write_text("secret")
        with pytest.raises(DeclarationError, match="token is missing or wrong"):
            Client.of_url(engine.endpoint.url, tmp_path / "token").ask("GET", "/status")


def test_the_engine_stops_at_once_while_clients_are_connected(tmp_path: Path) -> None:
    with asked(tmp_path) as engine:
        silent, half, answered = engine.connect(), engine.connect(), engine.connect()
        half.sendall(b"GET /status HTTP/1.1\r\n")
        answered.sendall(engine.head("GET /status HTTP/1.1").encode())
        assert answer_on(answered).status == 200
        engine.coming.put(None)
        assert engine.engine.await_end(60)
        assert engine.endpoint.closed
        for connection in (silent, half, answered):
            with suppress(ConnectionError):
                assert connection.recv(10) == b""
            connection.close()


def test_an_engine_that_nobody_asks_loads_no_server(tmp_path: Path) -> None:
    script = """
import pathlib, sys
from tests.endpoint.asking import asked
with asked(pathlib.Path(sys.argv[1])) as engine:
    assert not {"asyncio", "starlette", "uvicorn"} & set(sys.modules)
    assert engine.get("/status").status == 200
    assert {"asyncio", "starlette", "uvicorn"} <= set(sys.modules)
"""
    environment = ENVIRONMENT | {"PYTHONPATH": f"{REPOSITORY / 'src'}{os.pathsep}{REPOSITORY}"}
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], env=environment, check=True)


def test_a_prod_that_comes_while_the_engine_ends_is_answered_or_told_so(tmp_path: Path) -> None:
    with asked(tmp_path) as engine:
        body = json.dumps({"query": "people"}).encode()
        with engine.connect() as connection:
            with engine.engine.exclusively():
                head = engine.head("POST /prod HTTP/1.1", f"Content-Length: {len(body)}")
                connection.sendall(head.encode() + body)
                time.sleep(0.3)
                engine.engine.stopping.set()
            assert answer_on(connection).status in (200, 503)
