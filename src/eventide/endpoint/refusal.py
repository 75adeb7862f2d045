"""A request that is not answered, and why.

>>> Refusal(404, "there is no query 'sped'", "did you mean 'speed'?").body()
{'error': "there is no query 'sped'", 'hint': "did you mean 'speed'?"}
"""

from __future__ import annotations


class Refusal(Exception):  # noqa: N818 - it is an answer, and no fault
    """The status of the answer, a sentence, and perhaps the way out; `headers` go with it."""

    def __init__(self, status: int, error: str, hint: str | None = None, **headers: str) -> None:
        super().__init__(error)
        self.status, self.error, self.hint = status, error, hint
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def body(self) -> dict[str, str | None]:
        """What the client reads."""
        return {"error": self.error, "hint": self.hint}
