"""What did not go into any answer, counted while an engine runs: late rows and rejects, with their reasons.

>>> counted = Losses()
>>> counted.rejected["malformed row"] = 3
>>> counted.sentences("state")
['3 rows rejected: malformed row; see state/rejects']
>>> counted.sentences(None)[0]
'3 rows rejected: malformed row; gone with the temporary checkpoint (--checkpoint DIR keeps such rows)'
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from eventide.engine.introspection.status import StreamStatus
from eventide.engine.round.report import RoundReport
from eventide.engine.running import Running
from eventide.eventtime.policies.drop_ratio.policy import DropRatio
from eventide.plan.declared.stream import Stream

REASONS_TOLD = 3
PLACE = re.compile(r" \(query [^()]*\)$")


@dataclass
class Losses:
    """Late rows by stream, rejects by reason; `functions` are told by the names that they have here.

    >>> counted = Losses(functions=("halfOf",))
    >>> counted.spelled("query 'q': HALFOF(v) fails")
    "query 'q': halfOf(v) fails"
    """

    late: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    functions: Sequence[str] = ()

    def watch(self, engine: Running) -> None:
        """Count after every round of this engine."""
        engine.on_round(self._after)

    def _after(self, work: RoundReport) -> None:
        self.late.update(work.late)
        for reason, count in work.rejected.items():
            # A lost value names its window; here only what happened counts.
            self.rejected[self.spelled(PLACE.sub("", reason))] += count

    def spelled(self, reason: str) -> str:
        """The reason, in which SQL has written all functions in capital letters."""
        for name in self.functions:
            reason = re.sub(rf"\b{re.escape(name)}\(", f"{name}(", reason, flags=re.IGNORECASE)
        return reason

    def sentences(self, checkpoint: str | None, keeping: str = "--checkpoint DIR") -> list[str]:
        """What to tell in the end; `checkpoint` None says that it was a temporary one, `keeping` how to have one."""
        said = []
        if late := sum(self.late.values()):
            said.append(f"{_rows(late)} came too late; {_where('late', checkpoint, keeping)}")
        if rejected := sum(self.rejected.values()):
            common = self.rejected.most_common()
            reasons = common[0][0] if len(common) == 1 else "; ".join(f"{n:,} {r}" for r, n in common[:REASONS_TOLD])
            more = f"; {len(common) - REASONS_TOLD} more reasons" if len(common) > REASONS_TOLD else ""
            said.append(f"{_rows(rejected)} rejected: {reasons}{more}; {_where('rejects', checkpoint, keeping)}")
        return said


def beyond_permitted(streams: Iterable[Stream], status: Iterable[StreamStatus]) -> list[str]:
    """What to tell of streams that lost more rows than their declaration permits, and what to do about it."""
    permitted = {stream.name: _permitted(stream.policy) for stream in streams}
    said = []
    for one in status:
        ratio, share = permitted.get(one.name), one.late / max(1, one.rows)
        if ratio is not None and one.late > 1 and share > ratio:
            said.append(
                f"stream {one.name!r}: {one.late:,} of {_rows(one.rows)} came too late ({100 * share:.1f} %), and "
                f"{100 * ratio:.4g} % was permitted: they are not read in the order in which they came. Sort files by "
                "time before they are read, name the column that says when a row came (ARRIVAL BY), or wait (DELAY)"
            )
    return said


def _permitted(policy: object) -> float | None:
    """The share of rows that a policy may lose, whatever is wrapped around it."""
    while policy is not None and not isinstance(policy, DropRatio):
        policy = getattr(policy, "inner", None)
    return None if policy is None else policy.ratio


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"


def _where(table: str, checkpoint: str | None, keeping: str) -> str:
    if checkpoint is None:
        return f"gone with the temporary checkpoint ({keeping} keeps such rows)"
    return f"see {checkpoint}/{table}"
