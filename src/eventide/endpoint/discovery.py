"""Where an engine listens: the address as users write it, and the small files by which others find it.

Laws. *Address*: what is not said is loopback, so that only this machine can ask; a port that is not said is any free
one. A request must call the server by an address, by `localhost`, or by the name it was told to listen on: a page of a
stranger whose name was made to lead here (DNS rebinding) calls it by the stranger's name. *Files*: `endpoint.json`,
beside the checkpoint, has the address and says who listens there; `endpoint.token` has the token and can be read by
this user alone. Both are there while the engine listens and gone after it has stopped. What a killed engine left is
recognised: its process is gone, or nobody listens at the address. An engine takes away only what is its own. A private
file has the permissions 0600 from the moment at which it has a name, whatever the umask and whatever was there before;
it is never opened through a link that somebody else laid. Under its name there is always a whole file.

>>> from tempfile import mkdtemp
>>> file = Path(mkdtemp()) / "endpoint.token"
>>> write_whole(file, "secret", private=True)
>>> file.read_text(), oct(file.stat().st_mode & 0o777)
('secret', '0o600')

>>> Address.read("8080"), Address.read("localhost"), Address.read("[::1]:9000")
(Address(host='127.0.0.1', port=8080), Address(host='localhost', port=0), Address(host='::1', port=9000))
>>> Address("127.0.0.1", 8080).url, Address("::1", 9000).url
('http://127.0.0.1:8080', 'http://[::1]:9000')
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from eventide.errors import DeclarationError, EngineError, InputError
from eventide.storage.lock import is_alive, this_machine
from eventide.storage.storage import SCHEME

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


ENDPOINT, TOKEN = "endpoint.json", "endpoint.token"
VERSION = 1


@dataclass(frozen=True)
class Published:
    """What `endpoint.json` says, and where the token is."""

    url: str
    process: int
    machine: str
    token_file: Path
    certificate: str | None = None
    """The one that it shows, in PEM; None where it does not encrypt."""

    @classmethod
    def write(cls, folder: Path, url: str, token: str, certificate: str | None = None) -> Published:
        """Write down where this process listens; the token is there before anybody can read of it."""
        found = cls(url, os.getpid(), this_machine(), folder / TOKEN, certificate)
        write_whole(found.token_file, token, private=True)
        content = {"version": VERSION, **asdict(found), "token_file": TOKEN}
        write_whole(folder / ENDPOINT, json.dumps(content) + "\n", private=False)
        return found

    @classmethod
    def read(cls, folder: Path) -> Published:
        """Where the engine that works on this checkpoint listens; an error that says the way out if none does."""
        try:
            content = json.loads((folder / ENDPOINT).read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            raise nobody_at(folder) from None
        except OSError as error:
            raise InputError(f"cannot read {folder / ENDPOINT}: {error.strerror}") from error
        except ValueError:
            content = None
        try:
            found = cls(
                str(content["url"]),
                int(content["process"]),
                str(content["machine"]),
                folder / TOKEN,
                content.get("certificate"),
            )
            usable = content["version"] == VERSION and 0 < found.process < 2**31
        except (KeyError, TypeError, ValueError):
            usable = False
        if not usable:
            raise InputError(
                f"{folder / ENDPOINT} was not written by this Eventide: stop the engine, and start it again"
            )
        if _owner(folder / ENDPOINT) != _owner(folder / TOKEN):
            # Somebody else may have laid an address there, to be sent the token.
            raise InputError(f"{ENDPOINT} and {TOKEN} in {folder} belong to different users: neither is believed")
        if found.machine == this_machine() and not is_alive(found.process):
            raise nobody_at(folder, f" any more: process {found.process}, which listened at {found.url}, is gone")
        return found

    def withdraw(self) -> None:
        """Take it away, unless another engine has written its own address meanwhile."""
        folder = self.token_file.parent
        with suppress(OSError, ValueError, KeyError, TypeError):
            content = json.loads((folder / ENDPOINT).read_text(encoding="utf-8"))
            if (content["url"], content["process"], content["machine"]) == (self.url, self.process, self.machine):
                clear(folder)


def clear(folder: Path) -> None:
    """Take away what is written in a folder; whoever holds the checkpoint may do so."""
    for name in (ENDPOINT, TOKEN):
        with suppress(OSError):
            (folder / name).unlink()


def folder_of(checkpoint: str | os.PathLike[str]) -> Path:
    """Where the engine of a checkpoint tells where it listens.

    >>> folder_of("file:///srv/state") == folder_of("/srv/state") == Path("/srv/state")
    True
    >>> folder_of("s3://bucket/state")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: s3://bucket/state is no folder of this machine, and no place for a token: give \
the folder that the engine names when it is started with --listen
    """
    text = os.fspath(checkpoint)
    found = SCHEME.match(text)
    if found is None:
        return Path(text)
    if found[1].lower() != "file":
        raise DeclarationError(
            f"{text} is no folder of this machine, and no place for a token: give the folder that the engine names "
            "when it is started with --listen"
        )
    return Path(unquote(urlsplit(text).path))


def _owner(file: Path) -> int | None:
    try:
        return file.lstat().st_uid
    except OSError:
        return None


def nobody_at(folder: Path, more: str = "") -> EngineError:
    """The error where no engine can be asked."""
    return EngineError(
        f"no engine that can be asked works on {folder}{more}. Start one: eventide run FILE.sql --checkpoint {folder}"
    )


LOOPBACK = "127.0.0.1"
EXPOSED = "other machines can ask here, and the token and the answers go over the network in the clear"
NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
GIVEN = re.compile(r"(?P<host>\[[^\]]*\]|[^:\[\]]*)(:(?P<port>[0-9]{1,5}))?")


@dataclass(frozen=True)
class Address:
    """A host and a port; port 0 is any free one."""

    host: str = LOOPBACK
    port: int = 0
    secure: bool = field(default=False, repr=False)
    """Whether what goes over the network is encrypted."""

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
        """An address from a host and a port.

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
        return f"http{'s' if self.secure else ''}://{Address(anywhere.get(self.host, self.host), self.port).shown}"

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
