"""One engine for all tests that only ask; a test that stops it, or sets other limits, makes its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eventide.endpoint.auth import Limits
from tests.endpoint.asking import Asked, asked


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    with asked(tmp_path_factory.mktemp("asked"), Limits(seconds=20, rate=10_000, burst=10_000)) as found:
        yield found
