"""Transcripts of queries: small stories in YAML that both engines must tell alike. This is the door for users.

    from eventide.testing.transcript import cases, run_transcript

    @pytest.mark.parametrize(("transcript", "variant"), cases("tests/transcripts"), ids=str)
    def test_transcript_holds(transcript, variant):
        run_transcript(transcript, variant=variant)

The format is told in `docs/testing.md`, its laws in `transcript_format` and `transcript_run`.

>>> told = Transcript.of({
...     "name": "two rows of a window, and one of the next",
...     "streams": {"S": {"columns": {"t": "bigint", "v": "int"}, "time": "t"}},
...     "query": {"select": {"total": "sum(v)"}, "window": {"range": 10}},
...     "rounds": [{"rows": {"S": [[1, 5], [2, 6], [10, 9]]}, "heartbeat": 9, "expect": {"final": [{"total": 11}]}}],
... })
>>> for variant in variants(told):
...     run_transcript(told, variant=variant)
"""

from __future__ import annotations

from pathlib import Path

from eventide.errors import DeclarationError
from eventide.testing.transcript_format import Expect, Step, Transcript
from eventide.testing.transcript_run import Variant, run_transcript, variants

__all__ = ["Expect", "Step", "Transcript", "Variant", "cases", "run_transcript", "variants"]


def cases(folder: Path | str) -> list[tuple[Transcript, Variant]]:
    """Every transcript of a folder in every variant that applies to it, for `pytest.mark.parametrize`.

    >>> cases("no/such/folder")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: there is no transcript (*.yaml) in no/such/folder
    """
    told = [Transcript.read(path) for path in sorted(Path(folder).glob("*.yaml"))]
    if not told:
        raise DeclarationError(f"there is no transcript (*.yaml) in {folder}")
    return [(transcript, variant) for transcript in told for variant in variants(transcript)]
