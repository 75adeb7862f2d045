"""Options that must not be shown: passwords, tokens, keys, and what holds them.

Law: whatever is printed, logged or raised shows `***` in the place of a secret; what is given to a source or a sink has
the secret itself. A script need not hold it: `secret('env:NAME')` names a variable of the environment,
`secret('file:PATH')` a file, which are read when the source or the sink is opened. From then on what was read is masked
in every text, whatever stands around it.

>>> masked({"kafka.sasl.jaas.config": "x required password='p';", "subscribe": "orders"})
{'kafka.sasl.jaas.config': '***', 'subscribe': 'orders'}
>>> masked_text("OPTIONS (password 'hunter2', topic 'a') -- api_key = 'k'")
"OPTIONS (password '***', topic 'a') -- api_key = '***'"
>>> masked_text("jdbc:postgresql://eve:hunter2@db/orders?user=eve&password=hunter2")
'jdbc:postgresql://eve:***@db/orders?user=eve&password=***'
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from eventide.errors import DeclarationError

HIDDEN = "***"
SECRET = (
    r"(?:password|passwd|pwd|passphrase|secret|token|jaas|credential|private|"
    r"(?:api|access|account|sas|shared)[._-]?key)"
)
NAME = re.compile(SECRET, re.IGNORECASE)
TEXT = r"""('(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")"""
# What stands before such a word is left as it is: to look for it would take time that is cubic in the longest word.
QUOTED = re.compile(rf"""({SECRET}[\w.\-`]*['"`]?\s*(?:[=:,]\s*)?){TEXT}""", re.IGNORECASE)
IN_ADDRESS = re.compile(r"(?<=://)([^/\s:@'\"]*):([^/\s@'\"]+)@")
IN_QUERY = re.compile(rf"({SECRET}[\w.\-]*=)[^&;\s'\"]+", re.IGNORECASE)


ELSEWHERE = re.compile(r"secret\('(env|file):(.+)'\)", re.IGNORECASE | re.DOTALL)
"""How an option says where its value is."""
LEAST = 4
"""Shorter secrets are masked by the names before them only: in every text, they would be parts of other words."""
_read: set[str] = set()
"""Secrets that this process has read, so that no text shows them."""


def checked_secret(where: str) -> str:
    """An option whose value is elsewhere, as a text; an error where no such place can be meant.

    >>> checked_secret("env:PGPASSWORD")
    "secret('env:PGPASSWORD')"
    """
    if ELSEWHERE.fullmatch(text := f"secret('{where}')") is None:
        raise DeclarationError(
            f"secret('{masked_text(where)}') names no place: write secret('env:NAME') or secret('file:PATH')"
        )
    return text


def revealed(options: Sequence[tuple[str, str]], owner: str) -> tuple[tuple[str, str], ...]:
    """The options as a source or a sink needs them, secrets read from where they are.

    >>> os.environ["EVENTIDE_EXAMPLE"] = "hunter2"
    >>> revealed([("topic", "a"), ("password", "secret('env:EVENTIDE_EXAMPLE')")], "stream 's'")
    (('topic', 'a'), ('password', 'hunter2'))
    >>> masked_text("hunter2 was refused")
    '*** was refused'
    """
    found = tuple((name, _value(value, f"{owner}: the option {name}")) for name, value in options)
    for (_, given), (_, value) in zip(options, found, strict=True):
        secrets = [found[2] for found in IN_ADDRESS.finditer(value)] + ([value] if value != given else [])
        _read.update(secret for secret in secrets if len(secret) >= LEAST)
    return found


def _value(text: str, owner: str) -> str:
    place = ELSEWHERE.fullmatch(text)
    if place is None:
        return text
    kind, name = place[1].lower(), place[2]
    if kind == "env":
        if name not in os.environ:
            raise DeclarationError(f"{owner} is in the environment variable {name}, which is not set: set it")
        return os.environ[name]
    try:
        return Path(name).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise DeclarationError(f"{owner} is in the file {name}, which cannot be read: {reason}") from None


def is_secret(name: str) -> bool:
    """Whether an option of that name holds what must not be shown.

    >>> [is_secret(name) for name in ("kafka.ssl.key.password", "fs.s3a.secret.key", "key.format", "keyspace")]
    [True, True, False, False]
    """
    return NAME.search(name) is not None


def masked(options: Mapping[str, str]) -> dict[str, str]:
    """The options as they may be shown."""
    return {name: HIDDEN if is_secret(name) else masked_text(value) for name, value in options.items()}


def masked_text(text: str) -> str:
    """A line of a script, an address or a message, as it may be shown."""
    for secret in sorted(_read, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    text = QUOTED.sub(lambda found: f"{found[1]}{found[2][0]}{HIDDEN}{found[2][0]}", text)
    return IN_QUERY.sub(rf"\1{HIDDEN}", IN_ADDRESS.sub(rf"\1:{HIDDEN}@", text))
