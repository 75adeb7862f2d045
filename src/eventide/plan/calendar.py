"""Times cut down to a unit of the calendar, as Spark's `date_trunc` does in UTC.

>>> from datetime import datetime, UTC
>>> cut = truncated("MONTH")
>>> datetime.fromtimestamp(cut(1_700_000_000_000_000) / 1e6, UTC).isoformat()
'2023-11-01T00:00:00+00:00'
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

SECOND = 1_000_000
DAY = 86_400 * SECOND
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

FIXED: dict[str, tuple[int, int]] = {
    "MICROSECOND": (1, 0),
    "MILLISECOND": (1000, 0),
    "SECOND": (SECOND, 0),
    "MINUTE": (60 * SECOND, 0),
    "HOUR": (3600 * SECOND, 0),
    "DAY": (DAY, 0),
    "DD": (DAY, 0),
    # 1970 began on a Thursday, and weeks begin on Mondays.
    "WEEK": (7 * DAY, 4 * DAY),
}
"""Units of one length: how many microseconds, and where one of them begins."""

MONTHS = {"MONTH": 1, "MON": 1, "MM": 1, "QUARTER": 3, "YEAR": 12, "YYYY": 12, "YY": 12}


def truncated(unit: str) -> Callable[[int], int] | None:
    """A function that cuts instants (microseconds) down to the unit; None for a unit that is not known."""
    if unit in FIXED:
        width, origin = FIXED[unit]
        return lambda instant: instant - (instant - origin) % width
    if unit in MONTHS:
        months = MONTHS[unit]
        return lambda instant: _first_of_months(instant, months)
    return None


def _first_of_months(instant: int, months: int) -> int:
    moment = EPOCH + timedelta(microseconds=instant)
    month = (moment.month - 1) // months * months + 1
    first = datetime(moment.year, month, 1, tzinfo=UTC)
    return (first - EPOCH) // timedelta(microseconds=1)
