"""The generator of DuckDB's SQL from trees in Spark's dialect, and the macros that its rules call.

Laws. A rule sees one kind of node as Spark's grammar read it, and writes what has the same answer in DuckDB, or
refuses. A type that the text tells (by CAST, or a declared column) decides between ways to write it; otherwise a macro
leaves the choice to DuckDB, which picks a variant by the types of its arguments. A macro has the name of Spark's
function behind `spark_`, and its answer, errors included. `eventide.duckdb.functions.register` creates the macros.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.errors import UnsupportedError
from sqlglot.generators.duckdb import DuckDBGenerator

from eventide.plan.expressions.spark_types import SparkTypes


class SparkToDuckDB(DuckDBGenerator):
    """Writes a tree that was read in Spark's dialect."""

    types = SparkTypes({})

    def kind(self, node: exp.Expression | None) -> str | None:
        """The Spark type of a part, where the words tell it."""
        return self.types.of(node)

    def refuse(self, what: str) -> str:
        """Give up: this cannot be said with the same answer."""
        raise UnsupportedError(what)


Rule = Callable[[SparkToDuckDB, Any], str]
"""How one kind of word is written."""


def call(name: str, *arguments: str) -> str:
    """The text of a function call in DuckDB.

    >>> call("ln", "x")
    'ln(x)'
    """
    return f"{name}({', '.join(arguments)})"


def macro(name: str, *keys: str) -> Rule:
    """The arguments of a call, given to a macro of `macros`."""

    def rule(self: SparkToDuckDB, node: exp.Expression) -> str:
        given = [node.args.get(key) for key in keys or ("this",)]
        return call(f"spark_{name}", *(self.sql(argument) for argument in given if argument is not None))

    return rule


VARIANTS = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), "bigint"),
    "DOUBLE": "double",
    "STRING": "varchar",
    "BOOLEAN": "boolean",
    "DATE": "date",
    "TIMESTAMP": "timestamptz",
    "TIMESTAMP_NTZ": "timestamp",
    "BINARY": "blob",
}


def by_type(name: str, kind: str | None, *arguments: str, fraction: str = "double") -> str:
    """A call of a macro that has variants by the type of its last argument; DuckDB picks one where it is not known."""
    variant = fraction if kind == "FLOAT" else VARIANTS.get(kind or "")
    return call(f"spark_{name}" if variant is None else f"spark_{name}_{variant}", *arguments)


def as_int(name: str) -> Rule:
    """A function of one argument that counts in INT in Spark, in BIGINT in DuckDB."""
    return lambda self, node: f"CAST({call(name, self.sql(node.this))} AS INTEGER)"


def _macro(name: str, *variants: str) -> str:
    return f"CREATE OR REPLACE MACRO spark_{name}" + ", ".join(variants)


def _by_type(name: str, parameters: str, **bodies: str) -> tuple[str, ...]:
    """A macro with a variant for each type of its last parameter, and each variant under a name of its own.

    DuckDB cannot pick a variant where an argument holds an aggregate: there the dialect must name it.
    """
    *others, last = parameters.split(", ")
    variants = [f"({', '.join([*others, f'{last} {kind}'])}) AS {body}" for kind, body in bodies.items()]
    apart = [_macro(f"{name}_{kind.lower()}", variant) for kind, variant in zip(bodies, variants, strict=True)]
    return *apart, _macro(name, *variants)


def _to_whole(name: str, kind: str) -> tuple[str, ...]:
    """Casts to whole numbers cut fractions off, where DuckDB rounds; text must be a whole number."""
    wrong = f" WHEN x IS NOT NULL THEN spark_fail('CAST_INVALID_INPUT: ' || x || ' is no {kind}')"
    statements: list[str] = []
    for prefix, cast, otherwise in (("", "CAST", wrong), ("try_", "TRY_CAST", "")):
        statements += _by_type(
            f"{prefix}{name}",
            "x",
            BIGINT=f"{cast}(x AS {kind})",
            HUGEINT=f"{cast}(x AS {kind})",
            BOOLEAN=f"{cast}(x AS {kind})",
            DOUBLE=f"{cast}(trunc(x) AS {kind})",
            TIMESTAMPTZ=f"{cast}(spark_unix_seconds(x) AS {kind})",
            VARCHAR=f"CASE WHEN regexp_full_match(x, '\\s*[+-]?[0-9]+\\s*') THEN {cast}(x AS {kind}){otherwise} END",
        )
    return tuple(statements)


_DAY = "[+-]?[0-9]{4,7}-[0-9]{1,2}-[0-9]{1,2}"
_MONTH = "[+-]?[0-9]{4,7}-[0-9]{1,2}"
_YEAR = "[+-]?[0-9]{4,7}"
_ZONE = " *([A-Za-z].*|[+-]([0-9]|0[0-9]|1[0-7])(:?[0-9]{2}.*)?|[+-]18(:?00)?)"
_CLOCK = f"([01]?[0-9]|2[0-3])(:[0-9]{{1,2}}(:[0-9]{{1,2}}([.][0-9]*)?({_ZONE})?)?)?"


def _texts_to_cast() -> tuple[str, ...]:
    """Texts as DuckDB has to see them, so that it takes what Spark takes, and fails for the rest.

    DuckDB also takes 1_000, 2024/01/02, infinity and epoch; Spark also takes 1.5d, 2024, 2024-02 and 2024-01-02 03.
    """
    statements = [
        # DuckDB wants a name of a zone behind a space, and a number right behind the seconds.
        _macro(
            "with_zone",
            "(x) AS regexp_replace(regexp_replace(x, '(:[0-9.]+)([A-Za-z]{2,})', '\\1 \\2'), "
            "'(:[0-9.]+) +([+-])', '\\1\\2')",
        )
    ]
    for prefix, otherwise in (("", "spark_fail('CAST_INVALID_INPUT: ' || x)"), ("try_", "NULL")):
        statements += [
            _macro(f"{prefix}decimal_text", f"(x) AS CASE WHEN contains(x, '_') THEN {otherwise} ELSE x END"),
            _macro(
                f"{prefix}fraction_text",
                f"(x) AS CASE WHEN contains(x, '_') THEN {otherwise} "
                "WHEN regexp_matches(x, '[0-9.][dDfF] *$') THEN rtrim(rtrim(x, ' '), 'dDfF') ELSE x END",
            ),
            _macro(
                f"{prefix}date_text",
                f"(x) AS CASE WHEN regexp_full_match(trim(x), '(?s){_DAY}([ T].*)?') "
                f"THEN ltrim(regexp_extract(trim(x), '^{_DAY}'), '+') "
                f"WHEN regexp_full_match(trim(x), '{_MONTH}') THEN ltrim(trim(x), '+') || '-01' "
                f"WHEN regexp_full_match(trim(x), '{_YEAR}') THEN ltrim(trim(x), '+') || '-01-01' "
                f"WHEN x IS NOT NULL THEN {otherwise} END",
            ),
            _macro(
                f"{prefix}time_text",
                f"(x) AS CASE WHEN regexp_full_match(trim(x), '{_DAY}([ T]({_CLOCK})?)?') "
                f"THEN CASE WHEN regexp_full_match(trim(x), '{_DAY}[ T][0-9]{{1,2}}') "
                "THEN ltrim(trim(x), '+') || ':00' ELSE spark_with_zone(ltrim(trim(x), '+')) END "
                f"WHEN regexp_full_match(trim(x), '{_MONTH}') THEN ltrim(trim(x), '+') || '-01' "
                f"WHEN regexp_full_match(trim(x), '{_YEAR}') THEN ltrim(trim(x), '+') || '-01-01' "
                f"WHEN x IS NOT NULL THEN {otherwise} END",
            ),
        ]
    return tuple(statements)


# Java writes numbers below 0.001 and from 10,000,000 on as 1.5E10; `s` is DuckDB's shortest text of the number `a` > 0.
_JAVA_NUMBER = (
    "CASE WHEN a >= 0.001 AND a < 10000000 THEN s "
    "WHEN contains(s, 'e') THEN "
    "CASE WHEN contains(s, '.') THEN split_part(s, 'e', 1) ELSE split_part(s, 'e', 1) || '.0' END "
    "|| 'E' || CAST(CAST(split_part(s, 'e', 2) AS INTEGER) AS VARCHAR) "
    "WHEN a >= 1 THEN s[1] || '.' || "
    "CASE WHEN rtrim(replace(s[2:], '.', ''), '0') = '' THEN '0' ELSE rtrim(replace(s[2:], '.', ''), '0') END "
    "|| 'E' || CAST(strpos(s, '.') - 2 AS VARCHAR) "
    "ELSE ltrim(s, '0.')[1] || '.' || "
    "CASE WHEN ltrim(s, '0.')[2:] = '' THEN '0' ELSE ltrim(s, '0.')[2:] END "
    "|| 'E-' || CAST(length(s) - length(ltrim(s, '0.')) - 1 AS VARCHAR) END"
)


# Any other number in Java's words.
_JAVA_TEXT = (
    "CASE WHEN isnan(x) THEN 'NaN' WHEN isinf(x) THEN CASE WHEN x > 0 THEN 'Infinity' ELSE '-Infinity' END "
    "WHEN x = 0 THEN CAST(x AS VARCHAR) "
    "ELSE CASE WHEN x < 0 THEN '-' ELSE '' END || spark_java_number(abs(x), CAST(abs(x) AS VARCHAR)) END"
)

MACROS: tuple[str, ...] = (
    # An error where a value of any type may stand; DuckDB's own `error` is refused inside of TRY.
    _macro("fail", "(why) AS list_extract([NULL], CAST(why AS BIGINT))"),
    *_texts_to_cast(),
    # Sums of whole numbers are BIGINT, an error where they do not fit.
    _macro(
        "sum",
        *(f"(x {kind}) AS CAST(sum(x) AS BIGINT)" for kind in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")),
        "(x) AS sum(x)",
    ),
    _macro(
        "divide",
        "(a, b) AS CASE WHEN b = 0 AND a IS NOT NULL THEN spark_fail('DIVIDE_BY_ZERO: division by zero') "
        "ELSE a / b END",
    ),
    _macro("div", "(a BIGINT, b BIGINT) AS a // b", "(a HUGEINT, b HUGEINT) AS CAST(a // b AS BIGINT)"),
    # DuckDB's own remainder of fractions by zero is NaN.
    _macro(
        "mod",
        "(a, b) AS CASE WHEN b = 0 AND a IS NOT NULL THEN spark_fail('REMAINDER_BY_ZERO: remainder by zero') "
        "WHEN b = -1 THEN a % 1 ELSE a % b END",
    ),
    _macro("pmod", "(a, b) AS CASE WHEN spark_mod(a, b) < 0 THEN (a % b + b) % b ELSE spark_mod(a, b) END"),
    # Half up, away from zero, on the digits that are shown: 1.005 is 1.01.
    _macro("huge_half_up", "(a, b) AS sign(a) * sign(b) * ((2 * abs(a) + abs(b)) // (2 * abs(b)))"),
    # The text of a decimal from the text of its digits.
    _macro(
        "scaled_digits",
        "(t, s) AS CASE WHEN length(t) > s THEN left(t, length(t) - s) || '.' || right(t, s) "
        "ELSE '0.' || lpad(t, s, '0') END",
    ),
    _macro(
        "scaled",
        "(t, s) AS CASE WHEN starts_with(t, '-') THEN '-' || spark_scaled_digits(t[2:], s) "
        "ELSE spark_scaled_digits(t, s) END",
    ),
    _macro("unscaled", "(x) AS CAST(replace(CAST(x AS VARCHAR), '.', '') AS HUGEINT)"),
    _macro("ln", "(x) AS CASE WHEN x > 0 THEN ln(x) END"),
    _macro("log10", "(x) AS CASE WHEN x > 0 THEN log10(x) END"),
    _macro("log", "(b, x) AS CASE WHEN x > 0 AND b > 0 THEN ln(x) / ln(b) END"),
    _macro("sqrt", "(x) AS CASE WHEN x < 0 THEN CAST('NaN' AS DOUBLE) ELSE sqrt(x) END"),
    _macro("asin", "(x) AS CASE WHEN abs(x) > 1 THEN CAST('NaN' AS DOUBLE) ELSE asin(x) END"),
    _macro("acos", "(x) AS CASE WHEN abs(x) > 1 THEN CAST('NaN' AS DOUBLE) ELSE acos(x) END"),
    _macro("sign", "(x DOUBLE) AS CASE WHEN isnan(x) OR x = 0 THEN x ELSE CAST(sign(x) AS DOUBLE) END"),
    _macro("isnan", "(x) AS COALESCE(isnan(x), FALSE)"),
    *_by_type("octet_length", "x", VARCHAR="CAST(strlen(x) AS INTEGER)", BLOB="CAST(octet_length(x) AS INTEGER)"),
    _macro("nanvl", "(x, y) AS CASE WHEN isnan(x) THEN y ELSE x END"),
    # An infinity, or what lies beyond BIGINT, is an error.
    _macro("to_whole", "(x) AS CASE WHEN isnan(x) THEN 0 ELSE CAST(x AS BIGINT) END"),
    *_by_type("floor", "x", BIGINT="x", DOUBLE="spark_to_whole(floor(x))"),
    *_by_type("ceil", "x", BIGINT="x", DOUBLE="spark_to_whole(ceil(x))"),
    _macro("unix_seconds", "(x) AS CAST((epoch_us(x) - spark_pmod(epoch_us(x), 1000000)) // 1000000 AS BIGINT)"),
    _macro("unix_millis", "(x) AS CAST((epoch_us(x) - spark_pmod(epoch_us(x), 1000)) // 1000 AS BIGINT)"),
    # Spark cuts here, though its `unix_seconds` goes down.
    *_by_type(
        "unix_timestamp",
        "x",
        TIMESTAMPTZ="epoch_us(x) // 1000000",
        DATE="epoch_us(CAST(x AS TIMESTAMPTZ)) // 1000000",
        TIMESTAMP="epoch_us(CAST(x AS TIMESTAMPTZ)) // 1000000",
    ),
    _macro("timestamp_micros", "(x) AS make_timestamptz(CAST(x AS BIGINT))"),
    _macro("timestamp_millis", "(x) AS make_timestamptz(CAST(x AS BIGINT) * 1000)"),
    *_by_type(
        "timestamp_seconds",
        "x",
        BIGINT="make_timestamptz(x * 1000000)",
        DOUBLE="make_timestamptz(CAST(trunc(x * 1000000) AS BIGINT))",
    ),
    *_by_type(
        "timestamp",
        "x",
        TIMESTAMPTZ="x",
        TIMESTAMP="CAST(x AS TIMESTAMPTZ)",
        DATE="CAST(x AS TIMESTAMPTZ)",
        VARCHAR="CAST(spark_time_text(x) AS TIMESTAMPTZ)",
        BIGINT="spark_timestamp_seconds_bigint(x)",
        DOUBLE="spark_timestamp_seconds_double(x)",
    ),
    *_to_whole("tinyint", "TINYINT"),
    *_to_whole("smallint", "SMALLINT"),
    *_to_whole("int", "INTEGER"),
    *_to_whole("bigint", "BIGINT"),
    _macro("java_number", f"(a, s) AS {_JAVA_NUMBER}"),
    *_by_type(
        "string",
        "x",
        DOUBLE=_JAVA_TEXT,
        FLOAT=_JAVA_TEXT,
        VARCHAR="x",
        BIGINT="CAST(x AS VARCHAR)",
        BOOLEAN="CAST(x AS VARCHAR)",
        DATE="CAST(x AS VARCHAR)",
        TIMESTAMP="CAST(x AS VARCHAR)",
        TIMESTAMPTZ="regexp_replace(CAST(x AS VARCHAR), '\\+00$', '')",
        BLOB="decode(x)",
    ),
    # The text of a value of any type. DuckDB knows `typeof` before the statement runs; all but one branch go.
    _macro(
        "text",
        "(x) AS CASE typeof(x) "
        "WHEN 'DOUBLE' THEN spark_string_double(TRY_CAST(CAST(x AS VARCHAR) AS DOUBLE)) "
        "WHEN 'FLOAT' THEN spark_string_float(TRY_CAST(CAST(x AS VARCHAR) AS FLOAT)) "
        "WHEN 'TIMESTAMP WITH TIME ZONE' THEN regexp_replace(CAST(x AS VARCHAR), '\\+00$', '') "
        "WHEN 'BLOB' THEN decode(TRY_CAST(CAST(x AS VARCHAR) AS BLOB)) "
        "ELSE CAST(x AS VARCHAR) END",
    ),
    # DuckDB changes letter by letter; these letters become more than one, or depend on what follows.
    _macro(
        "upper",
        "(x) AS CASE WHEN strlen(x) = length(x) THEN upper(x) "
        "WHEN regexp_matches(x, '[\\x{DF}\\x{149}\\x{1F0}\\x{390}\\x{3B0}\\x{587}\\x{1E96}-\\x{1E9A}"
        "\\x{1F50}-\\x{1FFC}\\x{FB00}-\\x{FB17}]') THEN eventide_upper(x) ELSE upper(x) END",
    ),
    _macro(
        "lower",
        "(x) AS CASE WHEN strlen(x) = length(x) THEN lower(x) "
        "WHEN regexp_matches(x, '[\\x{130}\\x{3A3}]') THEN eventide_lower(x) ELSE lower(x) END",
    ),
    # Letter by letter; DuckDB keeps a letter and its accents together.
    _macro(
        "reverse",
        "(x) AS CASE WHEN strlen(x) = length(x) THEN reverse(x) "
        "ELSE array_to_string(list_reverse(regexp_extract_all(x, '(?s).')), '') END",
    ),
    _macro("start", "(s, p) AS CASE WHEN p > 0 THEN p - 1 WHEN p < 0 THEN length(s) + p ELSE 0 END"),
    _macro(
        "substring",
        "(s, p, n) AS substring(s, CAST(greatest(spark_start(s, p), 0) AS BIGINT) + 1, "
        "greatest(CAST(spark_start(s, p) AS BIGINT) + n - greatest(spark_start(s, p), 0), 0))",
    ),
    *_by_type(
        "item",
        "a, i",
        VARCHAR="a[i]",
        BIGINT="CASE WHEN i < 0 OR i >= len(a) THEN spark_fail('INVALID_ARRAY_INDEX: ' || i || ' of ' || len(a)) "
        "ELSE a[i + 1] END",
    ),
    *_by_type(
        "element_at",
        "a, i",
        VARCHAR="a[i]",
        BIGINT="CASE WHEN i = 0 OR abs(i) > len(a) "
        "THEN spark_fail('INVALID_ARRAY_INDEX_IN_ELEMENT_AT: ' || i || ' of ' || len(a)) ELSE a[i] END",
    ),
    _macro(
        "hll_sketch_agg",
        "(x VARCHAR, k) AS eventide_hll_of_texts(list(DISTINCT x), k)",
        "(x BIGINT, k) AS eventide_hll_of_numbers(list(DISTINCT x), k)",
    ),
    _macro("get", "(a, i) AS CASE WHEN i >= 0 THEN a[CAST(i AS BIGINT) + 1] END"),
    _macro(
        "array_contains",
        "(a, v) AS CASE WHEN a IS NULL OR v IS NULL THEN NULL WHEN list_contains(a, v) THEN TRUE "
        "WHEN len(list_filter(a, lambda e: e IS NULL)) > 0 THEN NULL ELSE FALSE END",
    ),
)
"""Every macro, after those it speaks of."""
