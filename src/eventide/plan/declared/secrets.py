"""Options that must not be shown: passwords, tokens, keys, and what holds them.

Law: whatever is printed, logged or raised shows `***` in the place of a secret; what is given to a source or a sink has
the secret itself. A script need not hold it: `secret('env:NAME')` names a variable of the environment,
`secret('file:PATH')` a file, which are read when the source or the sink is opened. From then on what was read is masked
in every text, whatever stands around it.

>>> masked({"kafka.sasl.jaas.config": "x required password='p';", "subscribe": "orders"})
{'kafka.sasl.jaas.config': '***', 'subscribe': 'orders'}
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from eventide.errors import DeclarationError
from eventide.masking import HIDDEN, IN_ADDRESS, SECRET, hide, masked_text

NAME = re.compile(SECRET, re.IGNORECASE)
ELSEWHERE = re.compile(r"secret\('(env|file):(.+)'\)", re.IGNORECASE | re.DOTALL)
"""How an option says where its value is."""


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
        hide(secrets)
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
