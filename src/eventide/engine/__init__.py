"""The engine: rounds, slices and their placement, commit and recovery.

`round` is the micro-batch itself, the same on both engines; `spark` and `local` are what differs between them.
`docs/architecture.md` lists all of its folders.
"""

import logging

# Without it Python would print our warnings to the terminal of a user who did not ask for a log.
logging.getLogger("eventide").addHandler(logging.NullHandler())
