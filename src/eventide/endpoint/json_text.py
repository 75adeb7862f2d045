"""Plain data as a line of JSON.

Law: whatever is given, numbers of NumPy's and values that are no JSON at all included, becomes one line that every
reader of JSON takes; numbers that JSON does not have are null.

>>> as_json({"lag": float("nan"), "rows": 3})
b'{"lag":null,"rows":3}\\n'
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def as_json(data: Any) -> bytes:
    """Plain data as one line."""
    return json.dumps(_plain(data), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


def _plain(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {str(name): _plain(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        return None
    if data is None or isinstance(data, str | bool | int | float):
        return data
    # Numbers of NumPy's.
    return _plain(data.item()) if hasattr(data, "item") else str(data)
