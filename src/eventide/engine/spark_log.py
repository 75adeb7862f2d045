"""Spark's own log of offsets, taken back to our last committed round.

Law: Spark starts with the batch after our last one. It keeps `offsets/N` when batch N starts and `commits/N` when it
has ended; a batch without a commit is run again with the same rows. So taking back is removing: commits after our last
batch, and offsets after the batch that is to run again. It is needed when our last record was damaged and an older one
is continued from."""

from __future__ import annotations

import logging
import re

from eventide.engine.storage import Storage

log = logging.getLogger(__name__)

BATCH = re.compile(r"/(\d+)$")


def take_back(storage: Storage, last_batch: int) -> None:
    """Let Spark continue after `last_batch`."""
    for folder, last in (("spark/commits", last_batch), ("spark/offsets", last_batch + 1)):
        for name in storage.list(folder):
            found = BATCH.search(name)
            if found is not None and int(found[1]) > last:
                log.warning("taking back %s: the last good round ends with batch %d", name, last_batch)
                storage.remove(name)
                checksum = f"{folder}/.{found[1]}.crc"
                if storage.exists(checksum):
                    storage.remove(checksum)
