"""The engine: rounds, slices and their placement, commit and recovery.

`rounds` is the round itself, the same on both engines; `spark_*` and `local_*` are what differs between them.
"""

import logging

# Without it Python would print our warnings to the terminal of a user who did not ask for a log.
logging.getLogger("eventide").addHandler(logging.NullHandler())
