"""Zones at the end of a timestamp, as Spark reads them: offsets, and names of regions.

>>> offset_at("+01:00", 0), offset_at("Z", 0), offset_at("GMT-3", 0), offset_at("Europe/Berlin", 0)
(3600, 0, -10800, 3600)
"""

from __future__ import annotations

import re
import zoneinfo
from datetime import UTC, datetime, timedelta
from functools import lru_cache

OFFSETS = (
    re.compile(r"([+-])(\d{1,2})(?::(\d{1,2}|\d{2}:(\d{2})))?", re.ASCII),
    re.compile(r"([+-])(\d{2})(\d{2})(\d{2})?", re.ASCII),
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# The short names that Java knows beyond those of the zone database.
SHORT = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
FIXED = {"EST": -5 * 3600, "MST": -7 * 3600, "HST": -10 * 3600, "Z": 0, "UTC": 0, "GMT": 0, "UT": 0}


def offset_at(zone: str, local: int) -> int:
    """Seconds that a zone is ahead of UTC when its clocks show `local` seconds since 1970.

    Of a time that comes twice in a year it means the first, one that is left out is moved on, as in Java.
    """
    if zone in FIXED:
        return FIXED[zone]
    bare = zone.removeprefix("UTC").removeprefix("GMT").removeprefix("UT") if zone[:1] in "UG" else zone
    found = OFFSETS[0].fullmatch(bare) or OFFSETS[1].fullmatch(bare)
    if found:
        sign, hours, minutes, seconds = found.groups()
        minute, second = int((minutes or "0")[:2]), int(seconds or 0)
        ahead = int(hours) * 3600 + minute * 60 + second
        if ahead > 18 * 3600 or minute > 59 or second > 59:
            raise ValueError(zone)
        return -ahead if sign == "-" else ahead
    try:
        moment = (EPOCH + timedelta(seconds=local)).replace(tzinfo=_region(zone))
    except OverflowError as failure:
        raise ValueError(zone) from failure
    ahead_of = moment.utcoffset()
    assert ahead_of is not None
    return int(ahead_of.total_seconds())


@lru_cache(maxsize=512)
def _region(zone: str) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(SHORT.get(zone, zone))
    except (zoneinfo.ZoneInfoNotFoundError, OSError) as failure:
        raise ValueError(zone) from failure
