"""Small files that appear whole, some of them for this user's eyes only.

Law: a private file has the permissions 0600 from the moment at which it has a name, whatever the umask and whatever was
there before; it is never opened through a link that somebody else laid. Under its name there is always a whole file.

>>> from tempfile import mkdtemp
>>> file = Path(mkdtemp()) / "endpoint.token"
>>> write_whole(file, "secret", private=True)
>>> file.read_text(), oct(file.stat().st_mode & 0o777)
('secret', '0o600')
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from eventide.errors import EngineError

TOKEN_BYTES = 32


def new_token() -> str:
    """A token that nobody can guess.

    >>> len(new_token()) >= 40 and new_token() != new_token()
    True
    """
    return secrets.token_urlsafe(TOKEN_BYTES)


def write_whole(file: Path, text: str, private: bool) -> None:
    """Write a file under a name of its own, then put it in its place."""
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    try:
        # O_EXCL follows no link and opens nothing that is there already.
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o644)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as opened:
                opened.write(text)
            os.replace(temporary, file)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise EngineError(f"cannot write {file}: {error.strerror}") from error
