"""The picture of a round (`mermaid`) has the steps that a round has, in their order, and joins what it names."""

from __future__ import annotations

import re

from eventide.engine.round.report import STEPS
from tests.docs.blocks import tagged

[PICTURE] = tagged("mermaid")


def test_the_steps_in_the_picture_are_those_of_a_round() -> None:
    numbered = re.findall(r"<b>(\d) (\w+)</b>", PICTURE.text)
    assert numbered == [(str(number), name) for number, name in enumerate(STEPS, start=1)]


def test_every_arrow_joins_boxes_and_every_box_is_joined() -> None:
    boxes = set(re.findall(r"^ *(\w+)\[", PICTURE.text, re.MULTILINE)) | set(re.findall(r"(\w+)\(\[", PICTURE.text))
    arrows = [line for line in PICTURE.text.splitlines() if "-->" in line]
    joined = {re.match(r"\w+", end.strip())[0] for line in arrows for end in line.split("-->")}  # type: ignore[index]
    assert joined == boxes
