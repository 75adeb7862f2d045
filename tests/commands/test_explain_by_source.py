"""`explain` and `check` say which queries close source by source, and why others cannot; settings of slow flush."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventide.commands.check import check_file
from eventide.errors import DeclarationError
from eventide.language.script import read_script
from eventide.launch.settings import RunSettings
from eventide.report.explain import plan_of

SCRIPT = """
CREATE STREAM fleet (ts TIMESTAMP, device STRING, load DOUBLE, done BOOLEAN) FROM json 'in'
    SOURCE BY device PUNCTUATED BY done;
CREATE QUERY own AS SELECT device, max(load) AS most FROM fleet [RANGE 60 s] GROUP BY device CLOSE BY SOURCE;
CREATE QUERY could AS SELECT device, max(load) AS most FROM fleet [RANGE 60 s] GROUP BY device;
CREATE QUERY cannot AS SELECT max(load) AS most FROM fleet [RANGE 60 s];
CREATE QUERY above AS SELECT max(most) AS top FROM own;
"""


def test_explain_says_how_each_query_closes() -> None:
    plan = plan_of(read_script(SCRIPT))
    closes = {query["name"]: query["closes"] for query in plan["queries"]}
    assert closes["own"].startswith("source by source")
    assert "it could close source by source" in closes["could"]
    assert "group by device, as a plain column" in closes["cannot"]
    assert closes["above"] == "with what own has promised"
    assert "__by" in next(query["merge"]["sql"] for query in plan["queries"] if query["name"] == "own")
    assert plan["streams"][0]["punctuation"] == "done"


def test_check_names_the_queries_that_close_by_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "fleet.sql").write_text(SCRIPT, encoding="utf-8")
    assert check_file(str(tmp_path / "fleet.sql"), as_json=False) == 0
    assert "no errors; closing source by source: own" in capsys.readouterr().out


def test_flush_rows_is_a_number_above_zero() -> None:
    assert RunSettings.of({"flush.rows": "1000"}).flush_rows == 1000
    for wrong in ("0", "-1", "many"):
        with pytest.raises(DeclarationError, match=r"SET flush\.rows"):
            RunSettings.of({"flush.rows": wrong})
