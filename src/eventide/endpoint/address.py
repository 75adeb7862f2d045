"""Where an engine listens, as users write it, and by which names it may be called.

Law: what is not said is loopback, so that only this machine can ask; a port that is not said is any free one. A request
must call the server by an address, by `localhost`, or by the name it was told to listen on: a page of a stranger whose
name was made to lead here (DNS rebinding) calls it by the stranger's name.

>>> Address.read("8080"), Address.read("localhost"), Address.read("[::1]:9000")
(Address(host='127.0.0.1', port=8080), Address(host='localhost', port=0), Address(host='::1', port=9000))
>>> Address("127.0.0.1", 8080).url, Address("::1", 9000).url
('http://127.0.0.1:8080', 'http://[::1]:9000')
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from eventide.errors import DeclarationError

LOOPBACK = "127.0.0.1"
EXPOSED = "other machines can ask here, and the token and the answers go over the network in the clear"
NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
GIVEN = re.compile(r"(?P<host>\[[^\]]*\]|[^:\[\]]*)(:(?P<port>[0-9]{1,5}))?")


@dataclass(frozen=True)
class Address:
    """A host and a port; port 0 is any free one."""

    host: str = LOOPBACK
    port: int = 0

    @classmethod
    def read(cls, text: str) -> Address:
        """From `HOST:PORT`, `HOST` or `PORT`; an IPv6 address stands in brackets.

        >>> Address.read("127.0.0.1:http")
        Traceback (most recent call last):
            ...
        eventide.errors.DeclarationError: '127.0.0.1:http' is no address to listen on: write HOST:PORT, such as \
127.0.0.1:8080, or a port alone
        """
        given = text.strip()
        found = GIVEN.fullmatch(f":{given}" if re.fullmatch("[0-9]{1,5}", given) else given)
        host, port = (found["host"], int(found["port"] or 0)) if found and given else ("?", 0)
        if host.startswith("["):
            host = host[1:-1] if _is_ip(host[1:-1]) else "?"
        if (host and not _is_ip(host) and not NAME.fullmatch(host)) or port > 65535:
            raise DeclarationError(
                f"{text!r} is no address to listen on: write HOST:PORT, such as 127.0.0.1:8080, or a port alone"
            )
        return cls(host or LOOPBACK, port)

    @classmethod
    def given(cls, host: str, port: int) -> Address:
        """From a host and a port.

        >>> Address.given("::1", 9000)
        Address(host='::1', port=9000)
        """
        return cls.read(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")

    @property
    def shown(self) -> str:
        """The address as it stands in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """Where to send requests; from this machine, where it listens on all addresses."""
        anywhere = {"0.0.0.0": LOOPBACK, "::": "::1"}
        return f"http://{Address(anywhere.get(self.host, self.host), self.port).shown}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it.

        >>> Address("127.0.0.1").is_loopback, Address("0.0.0.0").is_loopback, Address("localhost").is_loopback
        (True, False, True)
        """
        return ipaddress.ip_address(self.host).is_loopback if _is_ip(self.host) else self.host.lower() == "localhost"

    def is_called(self, host: str) -> bool:
        """Whether a request may call it so, in its Host header.

        >>> [Address().is_called(host) for host in ("127.0.0.1:80", "localhost", "[::1]:80", "evil.example:80", "")]
        [True, True, True, False, False]
        """
        found = GIVEN.fullmatch(host.strip())
        name = found["host"].strip("[]").lower() if found else ""
        return _is_ip(name) or name in ("localhost", self.host.lower())


def same_origin(origin: str, host: str) -> bool:
    """Whether a page from `origin` is one that this server, called `host`, could have given.

    >>> same_origin("http://127.0.0.1:80", "127.0.0.1:80"), same_origin("null", "127.0.0.1:80")
    (True, False)
    """
    try:
        return urlsplit(origin).netloc.lower() == host.strip().lower()
    except ValueError:
        return False


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
