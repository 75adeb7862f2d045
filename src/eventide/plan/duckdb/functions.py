"""Functions in DuckDB as in Spark: texts, collections, dates, and those known by name only.

*By name.* The parser knows some functions only by name, sketches among them.

*Texts and collections.* Arrays count from 0 in brackets and from 1 in ELEMENT_AT, a place not there is an error; texts
count from 1.

*Dates and timestamps.* A date stays a date, an instant an instant; fields are INT; weeks start on Monday, their days
count from Sunday.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from eventide.plan.duckdb.arrays import held, overlap_of, repeated, union_of
from eventide.plan.duckdb.formats import read_time
from eventide.plan.duckdb.generator import Rule, SparkToDuckDB, as_int, by_type, call, macro
from eventide.plan.expressions.aggregate_call import decimal_of
from eventide.plan.expressions.spark_dialect import SPARK


def _dated(text: str) -> Rule:
    """Something of a date or of the day of a timestamp."""
    return lambda self, node: text.format(f"CAST({self.sql(node.this)} AS DATE)")


def _add_days(self: SparkToDuckDB, node: exp.TsOrDsAdd) -> str:
    if node.args.get("unit") is not None and self.sql(node, "unit").upper() not in ("DAY", "'DAY'"):
        return self.refuse("DATEADD of a unit other than days")
    return f"(CAST({self.sql(node.this)} AS DATE) + CAST({self.sql(node.expression)} AS INTEGER))"


def _truncated(day: bool) -> Rule:
    def rule(self: SparkToDuckDB, node: exp.Expression) -> str:
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


def field_of(self: SparkToDuckDB, word: str, value: exp.Expression) -> str:
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


def _extract(self: SparkToDuckDB, node: exp.Extract) -> str:
    return field_of(self, node.name, node.expression)


def _to_date(self: SparkToDuckDB, node: exp.TsOrDsToDate) -> str:
    if node.args.get("format") is not None:
        return f"CAST({read_time(self, node)} AS DATE)"
    return f"CAST({self.sql(node.this)} AS DATE)"


def _unix_timestamp(self: SparkToDuckDB, node: exp.StrToUnix) -> str:
    return by_type("unix_timestamp", self.kind(node.this), self.sql(node.this))


def _shown_in(self: SparkToDuckDB, node: exp.AtTimeZone) -> str:
    """FROM_UTC_TIMESTAMP: what a clock in that region shows, as an instant."""
    zone = node.args["zone"]
    if not isinstance(zone, exp.Literal) or not (zone.name == "UTC" or "/" in zone.name):
        return self.refuse("FROM_UTC_TIMESTAMP with a zone that is no region, such as 'Europe/Berlin',")
    return f"timezone('UTC', timezone({self.sql(zone)}, {self.sql(node.this)}))"


TIME_RULES: dict[type[exp.Expr], Rule] = {
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
    exp.StrToTime: read_time,
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


NAMED: dict[str, Callable[..., str]] = {
    "any": lambda x: f"BOOL_OR({x})",
    "array_repeat": repeated,
    "array_union": union_of,
    "arrays_overlap": overlap_of,
    "bin": lambda x: f"bin(CAST({x} AS BIGINT))",
    "btrim": lambda x: f"trim({x})",
    "cardinality": lambda x: f"CAST(len({x}) AS INTEGER)",
    "e": lambda: "exp(1)",
    "every": lambda x: f"BOOL_AND({x})",
    "some": lambda x: f"BOOL_OR({x})",
    "std": lambda x: f"STDDEV_SAMP({x})",
    "mean": lambda x: f"AVG({x})",
    "try_avg": lambda x: f"AVG({x})",
    "hypot": lambda x, y: f"sqrt({x} * {x} + {y} * {y})",
    "isnull": lambda x: f"({x} IS NULL)",
    "isnotnull": lambda x: f"({x} IS NOT NULL)",
    "positive": lambda x: f"(+{x})",
    "try_mod": lambda x, y: f"TRY(spark_mod({x}, {y}))",
    "weekday": lambda x: f"CAST(isodow(CAST({x} AS DATE)) - 1 AS INTEGER)",
    "zeroifnull": lambda x: f"COALESCE({x}, 0)",
    "nullifzero": lambda x: f"NULLIF({x}, 0)",
    "hll_sketch_agg": lambda x, k="12": f"spark_hll_sketch_agg({x}, {k})",
    "hll_union_agg": lambda x, _="": f"eventide_hll_union(list({x}))",
    "hll_union": lambda x, y, _="": f"eventide_hll_union([{x}, {y}])",
    "hll_sketch_estimate": lambda x: f"eventide_hll_estimate({x})",
    "kll_sketch_agg_double": lambda x, k="200": f"eventide_kll_of(list(CAST({x} AS DOUBLE)), {k})",
    "kll_merge_agg_double": lambda x, k="CAST(NULL AS INTEGER)": f"eventide_kll_union(list({x}), {k})",
    **{
        name: (lambda *given, name=name: call(f"spark_{name}", *given))
        for name in ("get", "pmod", "timestamp_micros", "timestamp_millis")
    },
}
"""Each as a text over the texts of its arguments."""


VARIED = ("bigint", "smallint", "tinyint", "octet_length", "timestamp_seconds")
"""Functions that are macros with a variant for each type."""


def _named(self: SparkToDuckDB, node: exp.Anonymous) -> str:
    name = node.name.lower()
    if name == "forall":
        return held(self, node.expressions[0], node.expressions[1], every=True)
    arguments = [self.sql(argument) for argument in node.expressions]
    if name == "kll_sketch_get_quantile_double":
        many = isinstance(node.expressions[1], exp.Array)
        return call(f"eventide_kll_quantile{'s' if many else ''}", *arguments)
    if name == "try_sum":
        decimal = decimal_of(self.kind(node.expressions[0]) or "")
        if decimal is None or decimal[0] <= 28 or isinstance(node.expressions[0], exp.Distinct):
            return self.refuse("TRY_SUM")
        return f"CAST(eventide_decimal_sum(list(CAST({arguments[0]} AS VARCHAR))) AS DECIMAL(38, {decimal[1]}))"
    if name in ("date_part", "datepart"):
        unit, value = node.expressions
        constant = isinstance(unit, exp.Literal) and unit.is_string
        return field_of(self, unit.name, value) if constant else self.refuse("DATE_PART of what is not a constant text")
    if name in VARIED:
        return by_type(name, self.kind(node.expressions[-1]), *arguments)
    return NAMED[name](*arguments) if name in NAMED else call(node.name, *arguments)


NAME_RULES: dict[type[exp.Expr], Rule] = {
    exp.Anonymous: _named,
}


def _place(self: SparkToDuckDB, node: exp.Bracket) -> str:
    """An element of an array, counted from 0 or, by ELEMENT_AT, from 1; or the value of a key."""
    array, place = self.sql(node.this), node.expressions[0]
    if len(node.expressions) != 1 or isinstance(place, exp.Slice):
        return self.refuse("a slice of an array")
    index = self.sql(place)
    if (self.kind(node.this) or "").startswith("MAP<"):
        return f"{array}[{index}]"
    if node.args.get("offset") == 1:
        return f"{array}[{index}]" if node.args.get("safe") else by_type("element_at", self.kind(place), array, index)
    return by_type("item", self.kind(place), array, index)


def _struct(self: SparkToDuckDB, node: exp.Struct) -> str:
    """Fields without a name are called as Spark calls them."""
    fields = []
    for number, part in enumerate(node.expressions, start=1):
        if isinstance(part, exp.PropertyEQ):
            name, value = part.this.name, part.expression
        elif isinstance(part, exp.Alias):
            name, value = part.alias, part.this
        else:
            name, value = part.name if isinstance(part, exp.Column) else f"col{number}", part
        fields.append(f"{self.sql(exp.Literal.string(name))}: {self.sql(value)}")
    return "{" + ", ".join(fields) + "}"


def _like(self: SparkToDuckDB, node: exp.Like) -> str:
    pattern = node.expression
    without_escapes = isinstance(pattern, exp.Literal) and "\\" not in pattern.name
    if isinstance(pattern, exp.All) or (isinstance(pattern, exp.Anonymous) and pattern.name.lower() in ("any", "some")):
        return self.refuse("LIKE with several patterns")
    text = f"{self.sql(node.this)} {'NOT ' if node.args.get('negate') else ''}LIKE {self.sql(pattern)}"
    return text if without_escapes or isinstance(node.parent, exp.Escape) else f"{text} ESCAPE '\\'"


def _substring(self: SparkToDuckDB, node: exp.Substring) -> str:
    length = node.args.get("length")
    size = "2147483647" if length is None else self.sql(length)
    return call("spark_substring", self.sql(node.this), self.sql(node, "start"), size)


def _right(self: SparkToDuckDB, node: exp.Right) -> str:
    text, size = self.sql(node.this), self.sql(node.expression)
    return f"CASE WHEN {size} <= 0 THEN LEFT({text}, 0) ELSE RIGHT({text}, {size}) END"


def _lambda_of_one(name: str) -> Rule:
    def rule(self: SparkToDuckDB, node: exp.Expression) -> str:
        if isinstance(node.expression, exp.Lambda) and len(node.expression.expressions) > 1:
            return self.refuse("a function of an element and its place")
        return call(name, self.sql(node.this), self.sql(node.expression))

    return rule


def _size(self: SparkToDuckDB, node: exp.ArraySize) -> str:
    is_map = (self.kind(node.this) or "").startswith("MAP<")
    return f"CAST({'cardinality' if is_map else 'len'}({self.sql(node.this)}) AS INTEGER)"


def _position(self: SparkToDuckDB, node: exp.StrPosition) -> str:
    text, wanted, since = self.sql(node.this), self.sql(node, "substr"), node.args.get("position")
    if since is None:
        return f"CAST(strpos({text}, {wanted}) AS INTEGER)"
    letters = node.args["substr"]
    constant = isinstance(since, exp.Literal) and since.name.isdigit() and isinstance(letters, exp.Literal)
    if not constant or not letters.name or node.args.get("occurrence") is not None:
        return self.refuse("LOCATE from a place on, of what is no constant,")
    if since.name == "0":
        return f"CASE WHEN {text} IS NOT NULL AND {wanted} IS NOT NULL THEN CAST(0 AS INTEGER) END"
    found = f"strpos(substring({text}, {since.name}), {wanted})"
    return f"CAST(CASE WHEN {found} = 0 THEN 0 ELSE {found} + {since.name} - 1 END AS INTEGER)"


def _concat(self: SparkToDuckDB, node: exp.Concat) -> str:
    return "(" + " || ".join(self.sql(part) for part in node.expressions) + ")"


def _joined(self: SparkToDuckDB, node: exp.ArrayToString) -> str:
    """The texts of the elements; NULL is left out, or replaced."""
    array, separator, missing = self.sql(node.this), self.sql(node.expression), node.args.get("null")
    texts = f"list_transform({array}, lambda e: spark_text(e))"
    if missing is not None:
        texts = f"list_transform({array}, lambda e: COALESCE(spark_text(e), {self.sql(missing)}))"
    there = f"{array} IS NOT NULL AND {separator} IS NOT NULL"
    return f"CASE WHEN {there} THEN COALESCE(array_to_string({texts}, {separator}), '') END"


def _reversed(self: SparkToDuckDB, node: exp.Reverse) -> str:
    array = (self.kind(node.this) or "").startswith("ARRAY")
    return call("list_reverse" if array else "spark_reverse", self.sql(node.this))


TEXT_RULES: dict[type[exp.Expr], Rule] = {
    exp.ArrayContains: macro("array_contains", "this", "expression"),
    exp.ArrayFilter: _lambda_of_one("list_filter"),
    exp.ArraySize: _size,
    exp.ArrayToString: _joined,
    exp.Bracket: _place,
    exp.Concat: _concat,
    exp.Left: lambda self, n: call("spark_substring", self.sql(n.this), "1", self.sql(n.expression)),
    exp.Length: as_int("length"),
    exp.Like: _like,
    exp.Lower: macro("lower"),
    exp.Reverse: _reversed,
    exp.Right: _right,
    exp.StrPosition: _position,
    exp.Struct: _struct,
    exp.Substring: _substring,
    exp.Upper: macro("upper"),
}
