"""How a program is scheduled: when silent streams are asked for their time, and by which heartbeats operators go.

Law: neither changes which rows are in an answer that all rows reach in time; they change when it is told, how many rows
wait meanwhile, and so which rows come too late. The default asks on demand, and every operator goes by its own inputs.

>>> Scheduling().words
{'timestamps': 'on demand', 'heartbeats': 'operator'}
>>> Scheduling(Asking.every(1_500_000), Level.MEMORY).words
{'timestamps': 'every 1500000', 'heartbeats': 'memory'}
"""

from __future__ import annotations

from dataclasses import dataclass, field

from eventide.eventtime.asking import Asking, When
from eventide.eventtime.heartbeat_labels import Level


@dataclass(frozen=True)
class Scheduling:
    """Both choices."""

    timestamps: Asking = field(default_factory=Asking.on_demand)
    heartbeats: Level = Level.OPERATOR

    @property
    def words(self) -> dict[str, str]:
        """Plain data for a status; an interval is in the units of the clock."""
        asking = self.timestamps
        said = f"every {asking.interval}" if asking.when is When.EVERY else asking.when.value
        return {"timestamps": said, "heartbeats": self.heartbeats.value}
