"""What must not be shown in any text: passwords, tokens, keys, and secrets that this process has read.

Law: a text that a person sees shows `***` in the place of a secret. Every error of ours is such a text, whoever prints
it.

>>> masked_text("OPTIONS (password 'hunter2', topic 'a') -- api_key = 'k'")
"OPTIONS (password '***', topic 'a') -- api_key = '***'"
>>> masked_text("jdbc:postgresql://eve:hunter2@db/orders?user=eve&password=hunter2")
'jdbc:postgresql://eve:***@db/orders?user=eve&password=***'
"""

from __future__ import annotations

import re
from collections.abc import Iterable

HIDDEN = "***"
SECRET = (
    r"(?:password|passwd|pwd|passphrase|secret|token|jaas|credential|private|"
    r"(?:api|access|account|sas|shared)[._-]?key)"
)
TEXT = r"""('(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")"""
# What stands before such a word is left as it is: to look for it would take time that is cubic in the longest word.
QUOTED = re.compile(rf"""({SECRET}[\w.\-`]*['"`]?(?:\s*[=:,]\s*|\s+)){TEXT}""", re.IGNORECASE)
IN_ADDRESS = re.compile(r"(?<=://)([^/\s:@'\"]*):([^/\s@'\"]+)@")
IN_QUERY = re.compile(rf"({SECRET}[\w.\-]*=)[^&;\s'\"]+", re.IGNORECASE)
LEAST = 4
"""Shorter secrets are masked by the names before them only: in every text, they would be parts of other words."""
_read: set[str] = set()


def hide(secrets: Iterable[str]) -> None:
    """From now on no text shows these."""
    _read.update(secret for secret in secrets if len(secret) >= LEAST)


def masked_text(text: str) -> str:
    """A line of a script, an address or a message, as it may be shown."""
    for secret in sorted(_read, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    text = QUOTED.sub(lambda found: f"{found[1]}{found[2][0]}{HIDDEN}{found[2][0]}", text)
    return IN_QUERY.sub(rf"\1{HIDDEN}", IN_ADDRESS.sub(rf"\1:{HIDDEN}@", text))
