"""Texts, arrays, structs and maps in DuckDB as in Spark.

Law: arrays count from 0 in brackets and from 1 in ELEMENT_AT, a place not there is an error; texts count from 1.
"""

from __future__ import annotations

from sqlglot import exp

from eventide.plan.dialect_saying import Rule, Saying, as_int, by_type, call, macro


def _place(self: Saying, node: exp.Bracket) -> str:
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


def _struct(self: Saying, node: exp.Struct) -> str:
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


def _like(self: Saying, node: exp.Like) -> str:
    pattern = node.expression
    plain = isinstance(pattern, exp.Literal) and "\\" not in pattern.name
    if isinstance(pattern, exp.All) or (isinstance(pattern, exp.Anonymous) and pattern.name.lower() in ("any", "some")):
        return self.refuse("LIKE with several patterns")
    text = f"{self.sql(node.this)} {'NOT ' if node.args.get('negate') else ''}LIKE {self.sql(pattern)}"
    return text if plain or isinstance(node.parent, exp.Escape) else f"{text} ESCAPE '\\'"


def _substring(self: Saying, node: exp.Substring) -> str:
    length = node.args.get("length")
    size = "2147483647" if length is None else self.sql(length)
    return call("spark_substring", self.sql(node.this), self.sql(node, "start"), size)


def _right(self: Saying, node: exp.Right) -> str:
    text, size = self.sql(node.this), self.sql(node.expression)
    return f"CASE WHEN {size} <= 0 THEN LEFT({text}, 0) ELSE RIGHT({text}, {size}) END"


def _lambda_of_one(name: str) -> Rule:
    def rule(self: Saying, node: exp.Expression) -> str:
        if isinstance(node.expression, exp.Lambda) and len(node.expression.expressions) > 1:
            return self.refuse("a function of an element and its place")
        return call(name, self.sql(node.this), self.sql(node.expression))

    return rule


def _size(self: Saying, node: exp.ArraySize) -> str:
    is_map = (self.kind(node.this) or "").startswith("MAP<")
    return f"CAST({'cardinality' if is_map else 'len'}({self.sql(node.this)}) AS INTEGER)"


def _position(self: Saying, node: exp.StrPosition) -> str:
    if node.args.get("position") is not None or node.args.get("occurrence") is not None:
        return self.refuse("LOCATE from a place on")
    return f"CAST(strpos({self.sql(node.this)}, {self.sql(node, 'substr')}) AS INTEGER)"


def _concat(self: Saying, node: exp.Concat) -> str:
    if any((self.kind(part) or "").startswith("ARRAY") for part in node.expressions):
        return self.refuse("CONCAT of arrays")
    return "(" + " || ".join(self.sql(part) for part in node.expressions) + ")"


def _joined(self: Saying, node: exp.ArrayToString) -> str:
    """The texts of the elements; NULL is left out, or replaced."""
    array, separator, missing = self.sql(node.this), self.sql(node.expression), node.args.get("null")
    texts = f"list_transform({array}, lambda e: spark_text(e))"
    if missing is not None:
        texts = f"list_transform({array}, lambda e: COALESCE(spark_text(e), {self.sql(missing)}))"
    there = f"{array} IS NOT NULL AND {separator} IS NOT NULL"
    return f"CASE WHEN {there} THEN COALESCE(array_to_string({texts}, {separator}), '') END"


def _reversed(self: Saying, node: exp.Reverse) -> str:
    array = (self.kind(node.this) or "").startswith("ARRAY")
    return call("list_reverse" if array else "spark_reverse", self.sql(node.this))


RULES: dict[type[exp.Expr], Rule] = {
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
    exp.Transform: _lambda_of_one("list_transform"),
}
