from __future__ import annotations

import json
from dataclasses import replace

import pytest

from eventide.errors import CheckpointError, DeclarationError
from eventide.eventtime.policies.drop_ratio.policy import DropRatio
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.eventtime.policies.slack import Slack
from eventide.plan.declared.evolution import Begin, Consent, Evolution, Verdict
from eventide.plan.declared.fingerprint import described
from eventide.plan.declared.join import Band, Join, Side
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import Future, Input, Stream, columns
from eventide.plan.declared.window import Window

S = Stream("s", columns("t BIGINT, k STRING, v INT, w INT"), time="t", policy=FixedDelay(5), input=Input("json", "in"))
R = replace(S, name="r")
COUNT = named_as(n="count(*)")
SUMS = Query("sums", "s", Window(10), named_as(total="sum(v)"), named_as("k"), where="w > 0")
ABOVE = Query("above", "sums", Window(60), named_as(most="max(total)"))
BOTH = Rows("both", ("s", "r"))
OVER_BOTH = Query("over_both", "both", Window(10), named_as(total="sum(v)"))
PAIRS = Join(
    "pairs", Side("s", keys=("k",)), Side("r", keys=("k",)), (Band("t", "t", -1, 1),), select=named_as(v="s.v")
)
OVER_PAIRS = Query("over_pairs", "pairs", Window(10), COUNT)
PROGRAM = Program((S, R), (SUMS, ABOVE, OVER_BOTH, OVER_PAIRS), (BOTH, PAIRS))
RUNNING = ("sums", "above", "over_both", "pairs", "over_pairs")


def verdicts(program: Program, *backfill: str) -> dict[str, tuple[Verdict, Begin]]:
    """What becomes of all that does not go on as it was."""
    old = json.loads(json.dumps(described(PROGRAM)))
    found = Evolution.between(old, described(program), RUNNING, backfill)
    return {p.name: (p.verdict, p.begin) for p in found.parts if p.verdict is not Verdict.UNCHANGED}


def with_stream(**changed: object) -> Program:
    return replace(PROGRAM, streams=(replace(S, **changed), R))  # type: ignore[arg-type]


CHANGED = (Verdict.CHANGED, Begin.PRESENT)
ADJUSTED = (Verdict.ADJUSTED, Begin.STATE)


def test_the_same_program_changes_nothing() -> None:
    assert verdicts(PROGRAM) == {}
    assert verdicts(with_stream(input=Input("json", "elsewhere", max_files=9))) == {}


def test_a_changed_query_changes_those_that_read_it_and_no_other() -> None:
    changed = replace(PROGRAM, queries=(replace(SUMS, where="w > 1"), ABOVE, OVER_BOTH, OVER_PAIRS))
    assert verdicts(changed) == {"sums": CHANGED, "above": CHANGED}


def test_numbers_of_a_policy_need_no_word_and_another_policy_learns_anew() -> None:
    assert verdicts(with_stream(policy=FixedDelay(9))) == {"s": ADJUSTED}
    assert verdicts(with_stream(policy=DropRatio(0.1))) == {"s": (Verdict.CHANGED, Begin.LEARNING)}
    assert verdicts(with_stream(future=Future(60))) == {"s": (Verdict.CHANGED, Begin.LEARNING)}
    old = described(Program((replace(S, policy=Slack(3)),)))
    [part] = Evolution.between(old, described(Program((replace(S, policy=Slack(4)),)))).parts
    assert part.begin is Begin.LEARNING, "its state has as many places as its number says"


def test_a_column_more_changes_nothing() -> None:
    assert verdicts(with_stream(columns=columns("t BIGINT, k STRING, v INT, w INT, x INT"))) == {"s": ADJUSTED}


def test_a_column_of_another_type_changes_what_reads_it() -> None:
    retyped = verdicts(with_stream(columns=columns("t BIGINT, k STRING, v INT, w BIGINT")))
    assert retyped == {"s": ADJUSTED, "sums": CHANGED, "above": CHANGED}
    gone = replace(
        with_stream(columns=columns("t BIGINT, k STRING, w INT")),
        queries=(replace(SUMS, select=COUNT), ABOVE, OVER_BOTH, OVER_PAIRS),
    )
    assert verdicts(gone) == {
        "s": ADJUSTED,
        **dict.fromkeys(("sums", "above", "over_both", "pairs", "over_pairs"), CHANGED),
    }


def test_a_sample_depends_on_every_column() -> None:
    old = described(Program((S,), (replace(SUMS, sample=0.5),)))
    wider = replace(S, columns=columns("t BIGINT, k STRING, v INT, w INT, x INT"))
    found = Evolution.between(old, described(Program((wider,), (replace(SUMS, sample=0.5),))), ("sums",))
    assert [part.verdict for part in found.parts] == [Verdict.ADJUSTED, Verdict.CHANGED]


@pytest.mark.parametrize(
    "changed",
    [{"time": "w"}, {"source": ("k",)}, {"arrival": "w"}, {"columns": columns("t INT, k STRING, v INT, w INT")}],
)
def test_another_time_begins_all_its_readers_anew(changed: dict[str, object]) -> None:
    found = verdicts(with_stream(**changed))
    assert found == dict.fromkeys(("s", "sums", "above", "over_both", "pairs", "over_pairs"), CHANGED) | (
        {"both": CHANGED} if "both" in found else {}
    )


def test_another_format_is_read_from_its_beginning() -> None:
    assert verdicts(with_stream(input=Input("csv", "in"))) == {"s": (Verdict.CHANGED, Begin.OTHER_INPUT)}


def test_what_is_new_begins_and_what_is_gone_goes() -> None:
    other = Program((S, replace(R, name="q")), (SUMS, Query("n", "q", Window(5), COUNT)))
    assert verdicts(other, "n") == {
        "q": (Verdict.ADDED, Begin.BEGINNING),
        "n": (Verdict.ADDED, Begin.BEGINNING),
        "r": (Verdict.REMOVED, Begin.NOTHING),
        **dict.fromkeys(("above", "over_both", "over_pairs", "both", "pairs"), (Verdict.REMOVED, Begin.NOTHING)),
    }


def test_a_backfill_takes_all_that_it_reads_along_and_refuses_results_that_are_not_kept() -> None:
    joined = replace(PAIRS, condition="s.v > r.v")
    changed = replace(PROGRAM, operators=(BOTH, joined))
    assert verdicts(changed, "over_pairs")["pairs"] == (Verdict.CHANGED, Begin.BEGINNING)
    more = replace(PROGRAM, queries=(*PROGRAM.queries, Query("n", "sums", Window(60), COUNT)))
    with pytest.raises(DeclarationError, match="it reads 'sums', whose earlier results are not kept"):
        verdicts(more, "n")
    merged = replace(PROGRAM, queries=(*PROGRAM.queries, Query("n", "both", Window(60), COUNT)))
    assert verdicts(merged, "n") == {"n": (Verdict.ADDED, Begin.BEGINNING)}


def test_only_what_drops_state_has_to_be_accepted() -> None:
    old = described(PROGRAM)
    more = Evolution.between(
        old, described(replace(PROGRAM, queries=(*PROGRAM.queries, replace(SUMS, name="n")))), RUNNING
    )
    more.check(Consent())
    fewer = Evolution.between(old, described(replace(PROGRAM, queries=PROGRAM.queries[:1])), RUNNING)
    with pytest.raises(CheckpointError, match="query above: removed, its state is dropped"):
        fewer.check(Consent())
    fewer.check(Consent(accept=True))
