"""The command `eventide`, also as `python -m eventide`.

Law: Ctrl-C ends it without a word, also while it still loads what it needs.
"""

from __future__ import annotations

import signal


def main() -> None:
    """Run a command of the command line."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Python's own way would be a traceback, until a command is there to clean up.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from eventide.cli import main as run

    run()


if __name__ == "__main__":
    main()
