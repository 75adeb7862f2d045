"""The casts that Spark makes without being asked, written out where DuckDB would make others or none.

Law: the same answer on Spark with and without them. Where text meets a number it becomes BIGINT, or DOUBLE beside
fractions and decimals; where it meets a date, a time or a condition it becomes one. FLOAT beside any other number is
DOUBLE. A function of texts takes the text of whatever it is given. Parts whose type the words do not tell stay as they
are.

>>> import sqlglot
>>> types = SparkTypes({"f": "FLOAT", "s": "STRING", "n": "TINYINT", "d": "DOUBLE"})
>>> for sql in ("f > 0.1", "s = 5", "n + 1", "concat(s, d)", "d > 0.1"):
...     written_out(sqlglot.parse_one(sql, read=SPARK), types).sql(SPARK)
'CAST(f AS DOUBLE) > 0.1'
'CAST(s AS BIGINT) = 5'
'CAST(n AS INT) + 1'
'CONCAT(s, CAST(d AS STRING))'
'd > 0.1'
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from eventide.plan.expressions.spark_dialect import SPARK
from eventide.plan.expressions.spark_types import DOUBLES, SparkTypes, common

COMPARED: dict[type[exp.Expr], tuple[str, ...]] = {
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE), ("this", "expression")),
    exp.NullSafeEQ: ("this", "expression"),
    exp.Between: ("this", "low", "high"),
    exp.In: ("this", "expressions"),
}
COMPUTED = (
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.SafeAdd, exp.SafeSubtract, exp.SafeMultiply,
    exp.SafeDivide,
)  # fmt: skip
CHOSEN: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Coalesce: ("this", "expressions"),
    exp.Greatest: ("this", "expressions"),
    exp.Least: ("this", "expressions"),
    exp.If: ("true", "false"),
    exp.Nvl2: ("true", "false"),
    exp.Array: ("expressions",),
    exp.Nanvl: ("this", "expression"),
}
TEXTS: dict[type[exp.Expr], tuple[str, ...]] = {
    **dict.fromkeys((exp.Upper, exp.Lower, exp.Substring, exp.Left, exp.Right, exp.Repeat, exp.Reverse), ("this",)),
    **dict.fromkeys((exp.Trim, exp.StartsWith, exp.EndsWith, exp.Contains), ("this", "expression")),
    **dict.fromkeys((exp.RegexpLike, exp.RegexpReplace, exp.RegexpExtract, exp.RegexpSplit), ("this",)),
    **dict.fromkeys((exp.Concat, exp.ConcatWs), ("expressions",)),
    exp.Like: ("this",),
    exp.DPipe: ("this", "expression"),
    exp.Length: ("this",),
    exp.Pad: ("this", "fill_pattern"),
    exp.Replace: ("this", "expression", "replacement"),
    exp.StrPosition: ("this", "substr"),
    exp.Translate: ("this", "from_", "to"),
}
"""The arguments that are texts."""

NUMERIC = (*DOUBLES, exp.Neg, exp.Abs, exp.Round, exp.Floor, exp.Ceil)
INSTANTS = (exp.Hour, exp.Minute, exp.Second, exp.TimestampTrunc)
DAYS = (
    exp.Year, exp.Quarter, exp.Month, exp.Day, exp.DayOfMonth, exp.DayOfWeek, exp.DayOfYear, exp.WeekOfYear,
    exp.LastDay, exp.AddMonths, exp.TsOrDsAdd, exp.TsOrDsToDate, exp.DateTrunc, exp.UnixDate,
)  # fmt: skip
NO_TEXT = ("STRING", "BINARY", "VOID")
SMALL = ("TINYINT", "SMALLINT")


def written_out(tree: exp.Expression, types: SparkTypes) -> exp.Expression:
    """The tree itself, with casts put in."""
    whole = exp.Paren(this=tree)
    for node in reversed(list(tree.walk())):
        if isinstance(node, exp.Expression):
            _write_out(node, types)
    inside = whole.this
    inside.pop()
    assert isinstance(inside, exp.Expression)
    return inside


def _write_out(node: exp.Expression, types: SparkTypes) -> None:
    if type(node) in COMPARED:
        _meet(_parts(node, COMPARED[type(node)]), types, small=False)
    elif isinstance(node, COMPUTED):
        _compute(node, types)
    elif type(node) in CHOSEN:
        texts = not isinstance(node, exp.Greatest | exp.Least)
        _meet(_parts(node, CHOSEN[type(node)]), types, texts=texts)
    elif isinstance(node, exp.Case):
        _case(node, types)
    elif isinstance(node, exp.Nullif):
        _nullif(node, types)
    elif type(node) in TEXTS:
        _as_texts(_parts(node, TEXTS[type(node)]), types)
    elif isinstance(node, NUMERIC):
        _from_text(node, "DOUBLE", types)
    elif isinstance(node, INSTANTS):
        _from_text(node, "TIMESTAMP", types)
    elif isinstance(node, DAYS):
        _from_text(node, "DATE", types)
    elif isinstance(node, exp.DateDiff):
        for part in (node.this, node.expression):
            if types.of(part) == "STRING":
                _cast(part, "DATE")


def _parts(node: exp.Expression, keys: Iterable[str]) -> list[exp.Expression]:
    found: list[exp.Expression] = []
    for key in keys:
        given = node.args.get(key)
        every = given if isinstance(given, list) else [given]
        found += [part for part in every if isinstance(part, exp.Expression)]
    return found


def _meet(parts: list[exp.Expression], types: SparkTypes, small: bool = True, texts: bool = True) -> None:
    """Values that stand beside each other get the type that holds them all."""
    kinds = [types.of(part) for part in parts]
    target = common(kinds)
    if target is None or ("STRING" in kinds and (target == "STRING" or not texts)):
        return
    text = "STRING" in kinds
    for part, kind in zip(parts, kinds, strict=True):
        if kind in ("VOID", target):
            continue
        if kind == "STRING" or kind == "FLOAT" or (text and target == "DOUBLE") or (small and kind in SMALL):
            _cast(part, target)


def _compute(node: exp.Expression, types: SparkTypes) -> None:
    parts = [node.this, node.expression]
    kinds = [types.of(part) for part in parts]
    if kinds == ["FLOAT", "FLOAT"]:
        if isinstance(node, exp.Div | exp.SafeDivide):
            _cast(node.this, "DOUBLE")
        return
    target = common(kinds)
    if target is None or target in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "BOOLEAN", "STRING"):
        return
    _meet(parts, types)


def _case(node: exp.Case, types: SparkTypes) -> None:
    branches = [branch for branch in node.args["ifs"] if isinstance(branch, exp.If)]
    values = [branch.args["true"] for branch in branches]
    default = node.args.get("default")
    _meet([*values, *([default] if default is not None else [])], types)
    if node.this is not None:
        _meet([node.this, *(branch.this for branch in branches)], types, small=False)


def _nullif(node: exp.Nullif, types: SparkTypes) -> None:
    """NULLIF gives its first argument as it was; only what is compared is cast."""
    kinds = [types.of(node.this), types.of(node.expression)]
    target = common(kinds)
    if target is None or target == "STRING" or not {"STRING", "FLOAT"} & set(kinds) or kinds[0] == kinds[1]:
        return
    same = exp.EQ(this=node.this.copy(), expression=node.expression.copy())
    _meet([same.this, same.expression], types, small=False)
    node.replace(exp.Case().when(same, exp.Null()).else_(node.this.copy()))


def _as_texts(parts: list[exp.Expression], types: SparkTypes) -> None:
    kinds = [types.of(part) for part in parts]
    for part, kind in zip(parts, kinds, strict=True):
        if kind is None:
            # Beside a text it can only be meant as one; alone it might be an array.
            if "STRING" in kinds and len(parts) > 1 and isinstance(part.parent, exp.Concat | exp.DPipe):
                _cast(part, "STRING")
        elif kind not in NO_TEXT and not kind.startswith(("ARRAY", "MAP", "STRUCT")):
            _cast(part, "STRING")


def _from_text(node: exp.Expression, target: str, types: SparkTypes) -> None:
    if isinstance(node.this, exp.Expression) and types.of(node.this) == "STRING":
        _cast(node.this, target)


def _cast(part: exp.Expression, target: str) -> None:
    part.replace(exp.cast(part.copy(), target, dialect=SPARK))
