"""An endpoint with a certificate: what speaks to it encrypted is served, and what does not is not."""

from __future__ import annotations

import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventide.endpoint.auth import Limits
from eventide.endpoint.certificate import Certificate
from eventide.endpoint.client import Client
from eventide.endpoint.discovery import Published
from eventide.errors import DeclarationError, EngineError, InputError
from tests.endpoint.asking import Asked, asked

LIMITS = Limits(seconds=2, connections=4)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """One that nobody vouches for, for a name that is not this machine's."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl here, which makes certificates")
    folder = tmp_path_factory.mktemp("certificate")
    cert, key = str(folder / "cert.pem"), str(folder / "key.pem")
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=engine.example"]
    subprocess.run([*made, "-out", cert, "-keyout", key], check=True, capture_output=True)
    return Certificate(cert, key)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, certificate: Certificate) -> Iterator[Asked]:
    with asked(tmp_path_factory.mktemp("encrypted"), LIMITS, certificate) as found:
        yield found


def test_who_finds_the_engine_by_its_checkpoint_asks_it_encrypted(engine: Asked) -> None:
    assert engine.endpoint.url.startswith("https://127.0.0.1:")
    found = Client.of_checkpoint(engine.endpoint.folder)
    assert found.ask("GET", "/queries")["queries"]
    assert found.prod("people")["rows"]


def test_a_certificate_that_this_machine_does_not_trust_is_refused(engine: Asked) -> None:
    client = Client.of_url(engine.endpoint.url, engine.endpoint.token_file)
    with pytest.raises(EngineError, match="certificate verify failed"):
        client.ask("GET", "/queries")


def test_another_certificate_than_the_one_written_down_is_refused(engine: Asked, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=engine.example"]
    subprocess.run([*made, "-out", str(other), "-keyout", str(tmp_path / "key.pem")], check=True, capture_output=True)
    client = Client(engine.endpoint.url, engine.token, certificate=other.read_text())
    with pytest.raises(EngineError, match="certificate verify failed"):
        client.ask("GET", "/queries")


def test_what_is_not_encrypted_is_told_nothing(engine: Asked) -> None:
    with engine.connect() as connection:
        connection.sendall(engine.head("GET /queries HTTP/1.1").encode())
        assert b"HTTP" not in everything(connection)


def test_a_large_answer_comes_whole_and_the_end_is_told(engine: Asked) -> None:
    own = Published.read(engine.endpoint.folder).certificate
    assert own is not None
    context = ssl.create_default_context(cadata=own)
    context.check_hostname = False
    with engine.connect() as plain, context.wrap_socket(plain) as connection:
        connection.sendall(engine.head("GET /metrics HTTP/1.1").encode())
        answer = everything(connection)
    head, _, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    assert length is not None
    assert len(body) == int(length[1]) > 1_000


def test_connections_that_never_agree_on_a_cipher_are_bounded_and_end(engine: Asked) -> None:
    """They had not begun for the server, and so were counted by nobody."""
    silent = [engine.connect() for _ in range(12)]
    time.sleep(1.2)  # those that had their chance can be cut off
    assert Client.of_checkpoint(engine.endpoint.folder).ask("GET", "/queries")["queries"]
    for connection in silent:
        assert everything(connection) == b""
        connection.close()


def everything(connection: socket.socket) -> bytes:
    connection.settimeout(30)
    found = b""
    try:
        while piece := connection.recv(65536):
            found += piece
    except ConnectionResetError:
        pass
    return found


def test_what_is_no_certificate_is_refused_in_words(certificate: Certificate, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.pem: cannot be read: No such file or directory"):
        Certificate.given("none.pem", None)
    with pytest.raises(InputError, match="no certificate with its key, in PEM"):
        Certificate.given(certificate.file, None)
    (tmp_path / "text.pem").write_text("hello")
    with pytest.raises(InputError, match="no certificate with its key, in PEM"):
        Certificate.given(str(tmp_path / "text.pem"), certificate.key)
    with pytest.raises(DeclarationError, match="has no certificate"):
        Certificate.given(None, certificate.key)


def test_certificate_and_key_may_be_one_file(certificate: Certificate, tmp_path: Path) -> None:
    both = tmp_path / "both.pem"
    assert certificate.key is not None
    both.write_text(Path(certificate.key).read_text() + Path(certificate.file).read_text())
    found = Certificate.given(str(both), None)
    assert found is not None
    assert found.own == certificate.own
    assert "PRIVATE" not in found.own
