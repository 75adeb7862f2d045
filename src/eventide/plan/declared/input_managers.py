"""Rows that wait before a join: for programs in which operators may be held back.

Law: a join tells a pair when its second row comes, whatever the heartbeats; so it can be held back only by keeping rows
from it. Where that is wanted, every input of a join goes through a merge of its own, the *input manager* of the STREAM
paper (section 7.2), which lets rows go in the order of time and as far as the join may go. The pairs are the same.

>>> from eventide.plan.declared.join import Band, Join, Side
>>> from eventide.plan.declared.stream import Stream, columns
>>> a, b = (Stream(name, columns("t BIGINT"), time="t") for name in "ab")
>>> managed = with_input_managers(Program((a, b), operators=(Join("j", Side("a"), Side("b"), (Band("t", "t"),)),)))
>>> [(one.name, one.inputs) for one in managed.operators]
[('j__a', ('a',)), ('j__b', ('b',)), ('j', ('j__a', 'j__b'))]
>>> input_managers(managed)
{'j__a': 'j', 'j__b': 'j'}
"""

from __future__ import annotations

from dataclasses import replace

from eventide.eventtime.scheduling.labels import Level
from eventide.plan.declared.join import Join, Side
from eventide.plan.declared.program import Operator, Program
from eventide.plan.declared.rows import Rows


def as_run(program: Program, heartbeats: Level) -> Program:
    """The program that an engine runs: with input managers, unless every operator goes by its own inputs."""
    return program if heartbeats is Level.OPERATOR else with_input_managers(program)


def with_input_managers(program: Program) -> Program:
    """The same program, with rows kept before its joins."""
    operators: list[Operator] = []
    for operator in program.operators:
        if isinstance(operator, Join):
            sides = operator.left, operator.right
            operators += (Rows(_name(operator, side), (side.input,)) for side in sides)
            left, right = (replace(side, input=_name(operator, side)) for side in sides)
            operator = replace(operator, left=left, right=right)
        operators.append(operator)
    return replace(program, operators=tuple(operators))


def input_managers(program: Program) -> dict[str, str]:
    """Whose input manager each of them is."""
    joins = [operator for operator in program.operators if isinstance(operator, Join)]
    sides = ((join, side) for join in joins for side in (join.left, join.right))
    return {side.input: join.name for join, side in sides if side.input == _name(join, side)}


def _name(join: Join, side: Side) -> str:
    return f"{join.name}__{side.alias}"
