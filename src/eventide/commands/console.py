"""`eventide console`: a link to the console of a run, or the record of one that has stopped, in a browser.

Law: a running engine shows itself, and is asked for a new link with its token. Where none runs, the last committed
round of the checkpoint is shown until Ctrl-C, and nothing there is changed. The script is the one that a run has kept
beside its rounds, unless another is named.
"""

from __future__ import annotations

import threading
from contextlib import suppress

from eventide.endpoint.certificate import Certificate
from eventide.endpoint.client import Client
from eventide.endpoint.discovery import Address, Published, folder_of
from eventide.errors import DeclarationError, EngineError, InputError
from eventide.language.script import Script, read_script
from eventide.launch.logs import say
from eventide.launch.settings import RunSettings, script_of
from eventide.masking import masked_text
from eventide.plan.binding import as_run
from eventide.report.stopped_run import read_progress
from eventide.storage.storage import MissingFileError, Storage

SCRIPT_FILE = "script.sql"
"""Beside the rounds: what the run was told to do, without secrets."""


def keep_script(checkpoint: str | Storage, text: str) -> None:
    """Write the script of a run into its checkpoint."""
    Storage.at(checkpoint).write(SCRIPT_FILE, masked_text(text).encode())


def show_run(
    checkpoint: str, file: str | None, listen: str | None, read_only: bool, cert: str | None, key: str | None
) -> None:
    """Print a link to a running engine's console, or serve that of its record."""
    certificate = Certificate.given(cert, key)
    address = Address() if listen is None else Address.read(listen)
    try:
        Published.read(folder_of(checkpoint))
    except (EngineError, InputError, DeclarationError):
        _show_record(checkpoint, file, address, certificate)
        return
    for option, given in (("--listen", listen), ("--console-cert", cert)):
        if given is not None:
            raise DeclarationError(f"the engine runs, and its console is where it listens: leave {option} out")
    try:
        found = Client.of_checkpoint(checkpoint).ask("POST", "/console/link", {"read_only": read_only})
    except DeclarationError as refused:
        if "no such path" not in str(refused):
            raise
        raise DeclarationError(
            "this engine runs without a console: start it with `eventide run FILE.sql --console`"
        ) from None
    print(found["url"])


def _show_record(checkpoint: str, file: str | None, address: Address, certificate: Certificate | None) -> None:
    # Only who looks waits for what it takes to show.
    from eventide.console.lifecycle import RecordConsole
    from eventide.console.subject import StoppedSubject

    script = kept_script(checkpoint, file)
    scheduling = RunSettings.of(script.settings).scheduling
    progress = read_progress(as_run(script.program, scheduling.heartbeats), checkpoint, None, scheduling)
    with RecordConsole(StoppedSubject(progress, Storage.at(checkpoint, make=False)), address, certificate) as console:
        say(f"no engine runs there: this is how it stood after round {progress.record.round}, until Ctrl-C")
        print(console.link(), flush=True)
        with suppress(KeyboardInterrupt):
            threading.Event().wait()


def kept_script(checkpoint: str, file: str | None) -> Script:
    """The script that a run has kept beside its rounds, or the one that is named."""
    if file is not None:
        return script_of(file)
    try:
        text = Storage.at(checkpoint, make=False).read(SCRIPT_FILE).decode()
    except MissingFileError:
        raise DeclarationError(
            f"{checkpoint} keeps no script: name it, eventide console FILE.sql --checkpoint {checkpoint}"
        ) from None
    return read_script(text, SCRIPT_FILE)
