"""The frame around every command: it is run, an error of it is told in one sentence, and the process has its code.

Law: nothing that happens in a command reaches the user as a traceback, unless `--debug` asks for it; not even that the
error cannot be told, or that standard output cannot take its last words.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from eventide.commands.endings import READER_GONE, code_of, told
from eventide.commands.hurry import hurry_heard
from eventide.commands.standard_streams import give_up, prepare


def run_to_its_end(command: Callable[[], object], debug: bool) -> NoReturn:
    """Run a command, and leave with its code."""
    prepare()
    if not logging.getLogger().handlers:
        # A library that logs what nobody asked for would otherwise turn on the screen for all of them.
        logging.getLogger().addHandler(logging.NullHandler())
    try:
        with hurry_heard():
            try:
                command()
            finally:
                sys.stdout.flush()
    except SystemExit as leaving:
        # The library of the command line has a code of its own for this.
        code = READER_GONE if isinstance(leaving.__context__, BrokenPipeError) else leaving.code
    except BaseException as error:
        code, said = code_of(error), told(error)
        with suppress(OSError):
            if debug:
                traceback.print_exc()
            elif said is not None:
                print(said, file=sys.stderr)
    else:
        code = None
    give_up(sys.stdout)
    give_up(sys.stderr)
    raise SystemExit(code)
