"""The certificate that an endpoint shows, so that what is asked and answered goes over the network encrypted (TLS).

Laws. A certificate that cannot be used is refused before anything is started. Whoever finds the engine by its
checkpoint trusts exactly this certificate, whoever has signed it, and no other.
"""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from pathlib import Path

from eventide.errors import DeclarationError, InputError

ONE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\n?", re.DOTALL)


@dataclass(frozen=True)
class Certificate:
    """Files in PEM: the certificate, perhaps with those that vouch for it behind it, and its key."""

    file: str
    key: str | None = None
    """None: the key is in the same file."""

    @classmethod
    def given(cls, file: str | None, key: str | None) -> Certificate | None:
        """The certificate that was named, or None.

        >>> Certificate.given(None, "key.pem")
        Traceback (most recent call last):
            ...
        eventide.errors.DeclarationError: the key key.pem has no certificate: name that, too
        """
        if file is None:
            if key is not None:
                raise DeclarationError(f"the key {key} has no certificate: name that, too")
            return None
        found = cls(file, key)
        found.for_server()
        return found

    def for_server(self) -> ssl.SSLContext:
        """What a server shows."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            # A password would be asked for on a terminal that a service does not have.
            context.load_cert_chain(self.file, self.key, password="")
        except ssl.SSLError as error:
            where = self.file if self.key is None else f"{self.file} and {self.key}"
            raise InputError(
                f"{where}: no certificate with its key, in PEM and without a password ({error.reason or error})"
            ) from error
        except OSError as error:
            raise InputError(f"{error.filename or self.file}: cannot be read: {error.strerror or error}") from error
        return context

    @property
    def own(self) -> str:
        """The certificate itself, without its key and without those that vouch for it."""
        found = ONE.search(Path(self.file).read_text(encoding="ascii", errors="replace"))
        return found[0] if found else ""


def trusting(own: str) -> ssl.SSLContext:
    """What a client trusts that has read a certificate where only its owner could have written it."""
    context = ssl.create_default_context(cadata=own)
    # It is this one, whatever it is called and whoever vouches for it.
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context
