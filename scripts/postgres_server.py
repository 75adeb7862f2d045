"""A real PostgreSQL on this machine: `python -m scripts.postgres_server` starts one and says how to reach it.

Debian's package is taken: what is installed, else `apt-get` installs it where the user is root. The server has a
password, listens on loopback alone and keeps its data in a new folder, which goes when it stops. PostgreSQL refuses to
run as root, so that root starts it as the user `postgres`, whom the package brings.
"""

from __future__ import annotations

import glob
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from scripts.servers import Process, UnavailableError, folder_of, free_port, installed, ran, wait_for_the_end

USER = "eventide"
OTHER_USER = "postgres"
"""Who runs it where root may not."""
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    # A process that is killed loses nothing of what the system was given; only a machine that fails would.
    "fsync": "off",
}


@dataclass(frozen=True)
class PostgresServer:
    """A running server."""

    process: Process
    port: int
    password: str

    @property
    def url(self) -> str:
        """How it is reached, the password included."""
        return f"postgresql://{USER}:{self.password}@127.0.0.1:{self.port}/postgres"

    @property
    def address(self) -> str:
        """The same without the password."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/postgres"


@contextmanager
def postgres() -> Iterator[PostgresServer]:
    """A server of one's own, until the end of the block."""
    programs = _programs()
    with folder_of("postgres") as folder:
        user = _owner_of(folder)
        password = secrets.token_hex(8)
        (folder / "password").write_text(password)
        if user is not None:
            shutil.chown(folder / "password", user)
        data, log = folder / "data", folder / "server.log"
        as_user = {} if user is None else {"user": user, "group": user, "extra_groups": []}
        making: list[str | Path] = [
            "-D",
            data,
            "-U",
            USER,
            "-A",
            "scram-sha-256",
            f"--pwfile={folder / 'password'}",
            "--no-sync",
        ]
        ran([programs / "initdb", *making, "-E", "UTF8", "--locale=C"], cwd=folder, **as_user)
        port = free_port()
        settings = [part for name, value in SETTINGS.items() for part in ("-c", f"{name}={value}")]
        command = [str(programs / "postgres"), "-D", str(data), "-p", str(port), *settings]
        ready = [str(programs / "pg_isready"), "-h", "127.0.0.1", "-p", str(port), "-q"]
        # INT: it does not wait for clients to leave.
        process = Process(command, log, lambda: _succeeds(ready), user=user, stopping="INT")
        try:
            process.start()
            yield PostgresServer(process, port, password)
        finally:
            process.stop()


def _programs() -> Path:
    """The folder with `initdb` and `postgres`."""
    install = "apt_install_first_of postgresql || command_to_install postgresql postgresql postgresql-server"
    return installed(_installed, install, "PostgreSQL is not installed here")


def _installed() -> Path | None:
    for folder in (*sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True), *os.get_exec_path()):
        if all((Path(folder) / name).exists() for name in ("initdb", "postgres", "pg_isready")):
            return Path(folder)
    return None


def _owner_of(folder: Path) -> str | None:
    """Who is to run the server, and so own the folder; None where that is who runs this."""
    if os.geteuid() != 0:
        return None
    try:
        shutil.chown(folder, OTHER_USER)
    except LookupError:
        raise UnavailableError(f"PostgreSQL does not run as root, and there is no user {OTHER_USER!r}") from None
    try:
        ran(["ls", folder], user=OTHER_USER, group=OTHER_USER, extra_groups=[])
    except UnavailableError:
        raise UnavailableError(
            f"PostgreSQL does not run as root, and the user {OTHER_USER!r} may not enter {folder}"
        ) from None
    return OTHER_USER


def _succeeds(command: list[str]) -> bool:
    try:
        ran(command)
    except UnavailableError:
        return False
    return True


if __name__ == "__main__":
    try:
        with postgres() as server:
            wait_for_the_end(f"PostgreSQL: {server.address}, password {server.password}")
    except UnavailableError as missing:
        raise SystemExit(f"there is no PostgreSQL: {missing}") from None
