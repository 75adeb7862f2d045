"""Options that must not be shown: passwords, tokens, keys, and what holds them.

Law: whatever is printed, logged or raised shows `***` in the place of a secret; what is given to a source or a sink has
the secret itself.

>>> masked({"kafka.sasl.jaas.config": "x required password='p';", "subscribe": "orders"})
{'kafka.sasl.jaas.config': '***', 'subscribe': 'orders'}
>>> masked_text("OPTIONS (password 'hunter2', topic 'a') -- api_key = 'k'")
"OPTIONS (password '***', topic 'a') -- api_key = '***'"
>>> masked_text("jdbc:postgresql://eve:hunter2@db/orders?user=eve&password=hunter2")
'jdbc:postgresql://eve:***@db/orders?user=eve&password=***'
"""

from __future__ import annotations

import re
from collections.abc import Mapping

HIDDEN = "***"
SECRET = (
    r"(?:password|passwd|pwd|passphrase|secret|token|jaas|credential|private|"
    r"(?:api|access|account|sas|shared)[._-]?key)"
)
NAME = re.compile(SECRET, re.IGNORECASE)
TEXT = r"""('(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")"""
QUOTED = re.compile(rf"""([\w.\-`]*{SECRET}[\w.\-`]*['"`]?\s*[=:,]?\s*){TEXT}""", re.IGNORECASE)
IN_ADDRESS = re.compile(r"(?<=://)([^/\s:@'\"]*):([^/\s@'\"]+)@")
IN_QUERY = re.compile(rf"([\w.\-]*{SECRET}[\w.\-]*=)[^&;\s'\"]+", re.IGNORECASE)


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
    text = QUOTED.sub(lambda found: f"{found[1]}{found[2][0]}{HIDDEN}{found[2][0]}", text)
    return IN_QUERY.sub(rf"\1{HIDDEN}", IN_ADDRESS.sub(rf"\1:{HIDDEN}@", text))
