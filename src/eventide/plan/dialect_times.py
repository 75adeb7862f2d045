"""Dates and timestamps in DuckDB as in Spark.

Law: a date stays a date, an instant an instant; fields are INT; weeks start on Monday, their days count from Sunday.
"""

from __future__ import annotations

from sqlglot import exp

from eventide.plan.dialect_saying import Rule, Saying, as_int, by_type, call, macro
from eventide.plan.spark_grammar import SPARK


def _dated(text: str) -> Rule:
    """Something of a date or of the day of a timestamp."""
    return lambda self, node: text.format(f"CAST({self.sql(node.this)} AS DATE)")


def _add_days(self: Saying, node: exp.TsOrDsAdd) -> str:
    if node.args.get("unit") is not None and self.sql(node, "unit").upper() not in ("DAY", "'DAY'"):
        return self.refuse("DATEADD of a unit other than days")
    return f"(CAST({self.sql(node.this)} AS DATE) + CAST({self.sql(node.expression)} AS INTEGER))"


def _truncated(day: bool) -> Rule:
    def rule(self: Saying, node: exp.Expression) -> str:
        unit = self.sql(node, "unit").strip("'").upper()
        if unit not in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"):
            return self.refuse(f"DATE_TRUNC to {unit}")
        if day:
            return f"CAST(date_trunc('{unit}', CAST({self.sql(node.this)} AS DATE)) AS DATE)"
        return f"date_trunc('{unit}', {by_type('timestamp', self.kind(node.this), self.sql(node.this))})"

    return rule


FIELDS = {
    "year": ("y", "years", "yr", "yrs"),
    "isoyear": ("yearofweek",),
    "quarter": ("qtr",),
    "month": ("mon", "mons", "months"),
    "week": ("w", "weeks"),
    "day": ("d", "days"),
    "dow": ("dayofweek",),
    "isodow": ("dayofweek_iso", "dow_iso"),
    "doy": (),
    "hour": ("h", "hours", "hr", "hrs"),
    "minute": ("m", "min", "mins", "minutes"),
    "second": ("s", "sec", "seconds", "secs"),
}
"""What EXTRACT and DATE_PART may ask for: DuckDB's word, and Spark's other words for the same."""

WORDS = {word: field for field, others in FIELDS.items() for word in (field, *others) if word[:3] != "iso"}


def field_of(self: Saying, word: str, value: exp.Expression) -> str:
    """A field of a time: INT, but for seconds, which have six more digits."""
    field = WORDS.get(word.lower())
    if field is None:
        return self.refuse(f"EXTRACT of {word.upper()}")
    given = self.sql(exp.cast(value.copy(), "TIMESTAMP", dialect=SPARK) if self.kind(value) == "STRING" else value)
    if field == "second":
        whole = f"CAST(date_part('microseconds', {given}) AS DECIMAL(8, 0))"
        return f"CAST({whole} * CAST(0.000001 AS DECIMAL(7, 6)) AS DECIMAL(8, 6))"
    one = " + 1" if field == "dow" else ""
    return f"CAST(date_part('{field}', {given}){one} AS INTEGER)"


def _extract(self: Saying, node: exp.Extract) -> str:
    return field_of(self, node.name, node.expression)


def _to_date(self: Saying, node: exp.TsOrDsToDate) -> str:
    if node.args.get("format") is not None:
        return self.refuse("TO_DATE with a format")
    return f"CAST({self.sql(node.this)} AS DATE)"


def _unix_timestamp(self: Saying, node: exp.StrToUnix) -> str:
    return by_type("unix_timestamp", self.kind(node.this), self.sql(node.this))


def _shown_in(self: Saying, node: exp.AtTimeZone) -> str:
    """FROM_UTC_TIMESTAMP: what a clock in that region shows, as an instant."""
    zone = node.args["zone"]
    if not isinstance(zone, exp.Literal) or not (zone.name == "UTC" or "/" in zone.name):
        return self.refuse("FROM_UTC_TIMESTAMP with a zone that is no region, such as 'Europe/Berlin',")
    return f"timezone('UTC', timezone({self.sql(zone)}, {self.sql(node.this)}))"


RULES: dict[type[exp.Expr], Rule] = {
    exp.AddMonths: lambda self, n: (
        f"CAST(CAST({self.sql(n.this)} AS DATE) + to_months({self.sql(n.expression)}) AS DATE)"
    ),
    exp.AtTimeZone: _shown_in,
    exp.DateDiff: lambda self, n: (
        f"CAST(date_diff('day', CAST({self.sql(n.expression)} AS DATE), CAST({self.sql(n.this)} AS DATE)) AS INTEGER)"
    ),
    exp.DateFromUnixDate: lambda self, n: f"(DATE '1970-01-01' + CAST({self.sql(n.this)} AS INTEGER))",
    exp.DateTrunc: _truncated(day=True),
    exp.Day: _dated("CAST(day({}) AS INTEGER)"),
    exp.DayOfMonth: _dated("CAST(day({}) AS INTEGER)"),
    exp.DayOfWeek: _dated("CAST(dayofweek({}) + 1 AS INTEGER)"),
    exp.DayOfYear: _dated("CAST(dayofyear({}) AS INTEGER)"),
    exp.Extract: _extract,
    # Of an hour that comes twice, DuckDB takes the second and Spark the first.
    exp.FromTimeZone: lambda self, n: self.refuse("TO_UTC_TIMESTAMP"),
    exp.Hour: as_int("hour"),
    exp.LastDay: _dated("last_day({})"),
    exp.Minute: as_int("minute"),
    exp.Month: _dated("CAST(month({}) AS INTEGER)"),
    exp.Quarter: _dated("CAST(quarter({}) AS INTEGER)"),
    exp.Second: as_int("second"),
    exp.StrToUnix: _unix_timestamp,
    exp.TimestampTrunc: _truncated(day=False),
    exp.TsOrDsAdd: _add_days,
    exp.TsOrDsToDate: _to_date,
    exp.UnixDate: lambda self, n: f"CAST(date_diff('day', DATE '1970-01-01', {self.sql(n.this)}) AS INTEGER)",
    exp.UnixMicros: lambda self, n: call("epoch_us", self.sql(n.this)),
    exp.UnixMillis: macro("unix_millis"),
    exp.UnixSeconds: macro("unix_seconds"),
    exp.WeekOfYear: _dated("CAST(week({}) AS INTEGER)"),
    exp.Year: _dated("CAST(year({}) AS INTEGER)"),
}
