"""Passwords, tokens and keys in a script are used, and never shown."""

from __future__ import annotations

import json
import logging
import traceback
from pathlib import Path

import pytest

from eventide.errors import DeclarationError, EngineError, LanguageError
from eventide.language.script import read_script
from eventide.launch.logs import JsonFormatter, KeyValueFormatter
from eventide.masking import masked_text
from eventide.sinks.sink import sink_of
from eventide.sources.options import input_of
from scripts.servers import free_port
from tests.commands.processes import Here

SECRETS = ("hunter2", "jaas-hunter", "key-hunter", "url-hunter")
STREAM = """CREATE STREAM orders (at TIMESTAMP, item STRING) USING kafka OPTIONS (subscribe 'orders',
"kafka.sasl.jaas.config" 'x required password="jaas-hunter";', "kafka.ssl.key.password" 'hunter2',
"fs.s3a.secret.key" 'key-hunter', url 'jdbc:postgresql://eve:url-hunter@db/x?password=hunter2')
TIMESTAMP BY at DELAY 1 s TIMEOUT 1 min;
"""
QUERY = "SELECT count(*) AS n FROM orders [RANGE 1 min];\n"


def test_a_long_word_is_looked_through_once() -> None:
    """The line of an error is masked: one with a number of 5,000 digits took two seconds."""
    assert masked_text("9" * 200_000) == "9" * 200_000
    assert masked_text("my_password" + " " * 5_000 + "'hunter2'").endswith(" '***'")


def test_explain_shows_the_options_and_hides_what_is_secret_in_them(tmp_path: Path, here: Here) -> None:
    (tmp_path / "q.sql").write_text(STREAM + QUERY)
    for ran in (here("explain", "q.sql"), here("explain", "q.sql", "--json")):
        assert ran.code == 0
        assert "subscribe" in ran.out
        assert "orders" in ran.out
        assert not [secret for secret in SECRETS if secret in ran.out]


def test_an_error_on_the_line_of_a_password_shows_the_line_without_it(tmp_path: Path, here: Here) -> None:
    (tmp_path / "q.sql").write_text(STREAM.replace("\n", " ").replace("TIMEOUT", "TIMEOT") + QUERY)
    for ran in (here("check", "q.sql"), here("check", "q.sql", "--json"), here("run", "q.sql", "--engine", "local")):
        assert ran.code == 2
        assert "TIMEOT" in ran.out + ran.err
        assert not [secret for secret in SECRETS if secret in ran.out + ran.err]


def test_a_stream_in_a_notebook_does_not_print_its_options_and_still_has_them() -> None:
    stream = read_script(STREAM).program.streams[0]
    assert not [secret for secret in SECRETS if secret in repr(stream)]
    assert stream.input is not None
    assert dict(stream.input.options)["kafka.ssl.key.password"] == "hunter2"


ELSEWHERE = """CREATE STREAM s (t BIGINT) FROM json 'in' DELAY 1
    OPTIONS (token secret('env:TOKEN'), password secret('file:pw'));
CREATE QUERY q AS SELECT count(*) AS n FROM s [RANGE 5] INTO postgres 'q' OPTIONS (url secret('env:DATABASE'));
"""


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOKEN", "token-hunter3")
    monkeypatch.setenv("DATABASE", f"postgresql://eve:url-hunter3@127.0.0.1:{free_port()}/orders")
    (tmp_path / "pw").write_text("file-hunter3\n")


@pytest.mark.usefixtures("secrets")
def test_a_secret_is_read_when_a_source_is_opened_and_a_script_holds_its_place_only() -> None:
    stream = read_script(ELSEWHERE).program.streams[0]
    assert stream.input is not None
    assert dict(stream.input.options) == {"token": "secret('env:TOKEN')", "password": "secret('file:pw')"}
    assert dict(input_of(stream).options) == {"token": "token-hunter3", "password": "file-hunter3"}


@pytest.mark.usefixtures("secrets")
def test_a_secret_is_in_no_error_no_log_no_explanation_and_no_record(here: Here, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text(
        ELSEWHERE.replace(" OPTIONS (token secret('env:TOKEN'), password secret('file:pw'))", "")
    )
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "rows.json").write_text('{"t": 1}\n')
    ran = here("run", "q.sql", "--engine", "local", "--bounded", "--checkpoint", "state", "--log", "json")
    assert ran.code != 0
    assert "the table 'q' of PostgreSQL at 127.0.0.1:" in ran.err
    explained = here("explain", "q.sql", "--json")
    assert explained.code == 0
    kept = "".join(file.read_text(errors="replace") for file in (tmp_path / "state").rglob("*") if file.is_file())
    assert "hunter3" not in ran.out + ran.err + explained.out + kept


@pytest.mark.usefixtures("secrets")
def test_what_was_read_is_masked_in_every_log() -> None:
    input_of(read_script(ELSEWHERE).program.streams[0])
    record = logging.LogRecord("eventide", logging.INFO, "", 0, "token-hunter3 refused", None, None)
    record.given = "file-hunter3"
    assert KeyValueFormatter().format(record).endswith("INFO *** refused given=***")
    entry = json.loads(JsonFormatter().format(record))
    assert (entry["event"], entry["given"]) == ("*** refused", "***")


@pytest.mark.usefixtures("secrets")
def test_an_error_that_python_prints_shows_no_secret_either() -> None:
    """Only what commands print was masked; from Python, a message of a driver was shown as it was."""
    input_of(read_script(ELSEWHERE).program.streams[0])
    for raised in (EngineError("token-hunter3 refused"), LanguageError("no option password 'hunter2'", text="x")):
        shown = "".join(traceback.format_exception(raised))
        assert "hunter" not in shown
        assert "***" in shown


def test_a_secret_that_is_not_there_is_told_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(DeclarationError, match="option url is in the environment variable NOT_SET, which is not set"):
        sink_of("postgres", "q", {"url": "secret('env:NOT_SET')"})
    with pytest.raises(DeclarationError, match="not_there, which cannot be read: No such file"):
        sink_of("postgres", "q", {"url": "x", "password": f"secret('file:{tmp_path}/not_there')"})


def test_a_place_that_cannot_be_meant_is_told_where_it_stands() -> None:
    with pytest.raises(LanguageError, match=r"2:\d+: secret\('PASSWORD'\) names no place: write secret\('env:NAME'\)"):
        read_script(ELSEWHERE.replace("env:TOKEN", "PASSWORD"))
