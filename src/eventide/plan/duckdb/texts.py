"""Pieces of texts in DuckDB as in Spark: between delimiters, words, single letters.

Law: a text is divided at a constant delimiter that has letters; any other is refused. Letters are those of Unicode, and
grow as `upper` and `lower` let them.
"""

from __future__ import annotations

from sqlglot import exp

from eventide.plan.duckdb.generator import Rule, SparkToDuckDB, call


def _split_part(self: SparkToDuckDB, node: exp.SplitPart) -> str:
    number = self.sql(node, "part_index")
    if not _divides(node) or not number.lstrip("-").isdigit() or int(number) == 0:
        return self.refuse("SPLIT_PART by what is no constant text, or of place 0,")
    return call("split_part", self.sql(node.this), self.sql(node, "delimiter"), number)


def _divides(node: exp.Expression) -> bool:
    """Whether a text is divided by a constant one with some letters."""
    by = node.args["delimiter"]
    return isinstance(by, exp.Literal) and by.is_string and bool(by.name)


def _before(self: SparkToDuckDB, node: exp.SubstringIndex) -> str:
    """What stands before so many delimiters, or behind so many from the end."""
    number = self.sql(node, "count")
    if not _divides(node) or not number.lstrip("-").isdigit():
        return self.refuse("SUBSTRING_INDEX by what is no constant text, or no constant number of times,")
    text, by, times = self.sql(node.this), self.sql(node, "delimiter"), int(number)
    part = "1, 0" if times == 0 else f"1, {times}" if times > 0 else f"{times}, -1"
    # A list without a text is no text; without parts it is an empty one.
    return (
        f"CASE WHEN {text} IS NOT NULL THEN array_to_string(list_slice(string_split({text}, {by}), {part}), {by}) END"
    )


def _initials(self: SparkToDuckDB, node: exp.Initcap) -> str:
    """Words, which spaces divide, with a large letter first and small ones then."""
    word = "spark_upper(substring(w, 1, 1)) || spark_lower(substring(w, 2))"
    text = self.sql(node.this)
    words = f"list_transform(string_split({text}, ' '), lambda w: {word})"
    return f"CASE WHEN {text} IS NOT NULL THEN array_to_string({words}, ' ') END"


def _letter(self: SparkToDuckDB, node: exp.Chr) -> str:
    number = f"CAST({self.sql(node.expressions[0])} AS BIGINT)"
    return f"CASE WHEN {number} < 0 THEN '' ELSE chr(CAST({number} & 255 AS INTEGER)) END"


def _number(self: SparkToDuckDB, node: exp.Ascii) -> str:
    """The number of the first letter; 0 where there is none."""
    text = self.sql(node.this)
    return f"CAST(CASE WHEN {text} = '' THEN 0 ELSE unicode({text}) END AS INTEGER)"


PIECE_RULES: dict[type[exp.Expr], Rule] = {
    exp.Ascii: _number,
    exp.Chr: _letter,
    exp.Initcap: _initials,
    exp.SHA: lambda self, n: call("sha1", self.sql(n.this)),
    exp.Space: lambda self, n: f"CASE WHEN {self.sql(n.this)} < 0 THEN '' ELSE repeat(' ', {self.sql(n.this)}) END",
    exp.SplitPart: _split_part,
    exp.SubstringIndex: _before,
}
