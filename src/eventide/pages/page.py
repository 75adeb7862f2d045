"""Put a page into one file: its data, its style, and the modules that draw it, which are those of the console.

Laws. The file loads nothing: it looks the same without a network, and years later. Data are data: whatever stands in
them, nothing of it is run or becomes markup. Only the scripts of this package run there (Content Security Policy).

>>> made = page("Speeds & delays", "plan.js", {"name": "</script><script>alert(1)</script>"})
>>> "<title>Speeds &amp; delays</title>" in made, "<script>alert" in made, "http-equiv" in made
(True, False, True)
"""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from eventide.errors import InputError
from eventide.launch.logs import say

IMPORT = re.compile(r'(?<=from )"\./([\w./-]+\.js)"')
STYLES = ("vendor/uPlot.css", "style.css", "page.css")
ICON = "icon.svg"


def page(title: str, script: str, data: Any) -> str:
    """The text of a page that hands `data` to the function `show` of a module."""
    style = "\n".join(_file(name).read_text(encoding="utf-8") for name in STYLES)
    modules = {name: _address("text/javascript", text) for name, text in _modules(script)}
    # A module in an address cannot name its neighbours by their paths: the map does.
    imports = json.dumps({"imports": modules})
    start = f'import {{ show }} from "{script}";\nshow(JSON.parse(document.getElementById("data").textContent));'
    allowed = f"script-src data: {_hash(imports)} {_hash(start)}; style-src {_hash(style)}; img-src data:"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; {allowed}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<link rel="icon" href="{_address("image/svg+xml", _file(ICON).read_text(encoding="utf-8"))}">
<style>{style}</style>
<script type="importmap">{imports}</script>
</head>
<body>
<main id="main"></main>
<noscript>This page draws itself with JavaScript.</noscript>
<script id="data" type="application/json">{_harmless(json.dumps(data, allow_nan=False, ensure_ascii=False))}</script>
<script type="module">{start}</script>
</body>
</html>
"""


def write_page(file: str, text: str) -> None:
    """Write a page, and say where it is."""
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file}: the page cannot be written there: {error.strerror}") from error
    say(f"page: {file}")


def _modules(script: str) -> Iterator[tuple[str, str]]:
    """A module and all that it imports, each once, with names in place of paths."""
    ahead, seen = [script], {script}
    while ahead:
        name = ahead.pop()
        text = _file(name).read_text(encoding="utf-8")
        found = IMPORT.findall(text)
        ahead += [one for one in dict.fromkeys(found) if one not in seen]
        seen.update(found)
        yield name, IMPORT.sub(r'"\1"', text)


def _file(name: str) -> Traversable:
    """A file of the pages, or one of the console's."""
    own = files("eventide.pages").joinpath("static", name)
    return own if own.is_file() else files("eventide.console").joinpath("static", name)


def _address(kind: str, text: str) -> str:
    return f"data:{kind};base64,{b64encode(text.encode()).decode()}"


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _harmless(text: str) -> str:
    """JSON that ends no element of the page, whatever is in it."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
