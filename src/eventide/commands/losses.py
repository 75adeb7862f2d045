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
from collections.abc import Sequence
from dataclasses import dataclass, field

from eventide.engine.round.report import RoundReport
from eventide.engine.running import Running

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


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"


def _where(table: str, checkpoint: str | None, keeping: str) -> str:
    if checkpoint is None:
        return f"gone with the temporary checkpoint ({keeping} keeps such rows)"
    return f"see {checkpoint}/{table}"
