"""Dates and timestamps in DuckDB as in Spark.

Law: a date stays a date, an instant an instant; fields are INT; weeks start on Monday, their days count from Sunday.
"""

from __future__ import annotations

from sqlglot import exp

from eventide.plan.dialect_saying import Rule, Saying, as_int, by_type, call, macro


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


def _extract(self: Saying, node: exp.Extract) -> str:
    unit = node.name.upper()
    if unit not in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "DOY"):
        return self.refuse(f"EXTRACT of {unit}")
    return f"CAST(date_part('{unit}', {self.sql(node.expression)}) AS INTEGER)"


def _to_date(self: Saying, node: exp.TsOrDsToDate) -> str:
    if node.args.get("format") is not None:
        return self.refuse("TO_DATE with a format")
    return f"CAST({self.sql(node.this)} AS DATE)"


def _unix_timestamp(self: Saying, node: exp.StrToUnix) -> str:
    return by_type("unix_timestamp", self.kind(node.this), self.sql(node.this))


RULES: dict[type[exp.Expr], Rule] = {
    exp.AddMonths: lambda self, n: (
        f"CAST(CAST({self.sql(n.this)} AS DATE) + to_months({self.sql(n.expression)}) AS DATE)"
    ),
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
