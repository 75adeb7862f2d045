"""Passwords, tokens and keys in a script are used, and never shown."""

from __future__ import annotations

from pathlib import Path

from eventide.language.script import read_script
from tests.commands.processes import Here

SECRETS = ("hunter2", "jaas-hunter", "key-hunter", "url-hunter")
STREAM = """CREATE STREAM orders (at TIMESTAMP, item STRING) USING kafka OPTIONS (subscribe 'orders',
"kafka.sasl.jaas.config" 'x required password="jaas-hunter";', "kafka.ssl.key.password" 'hunter2',
"fs.s3a.secret.key" 'key-hunter', url 'jdbc:postgresql://eve:url-hunter@db/x?password=hunter2')
TIMESTAMP BY at DELAY 1 s TIMEOUT 1 min;
"""
QUERY = "SELECT count(*) AS n FROM orders [RANGE 1 min];\n"


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
