"""Every state file altered, cut short, removed, or swapped with an older one: right, right with a warning, or refused.

What the checkpoint of an engine that was killed holds is damaged, one file at a time. The next life either shows what
an undisturbed run shows, or refuses with the name of the file and the way out; never something else in silence.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from benchmarks.crash.differences import Differences, differences
from eventide.report.stopped_run import verify
from eventide.storage.storage import Storage
from tests.faults.calm import Calm
from tests.faults.lives import NONE, Life, lived
from tests.faults.program import CHECKPOINT, record

KILLED_IN = 4
"""The round that had begun, and not more, when the engine was killed."""


def altered(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0x10
    file.write_bytes(data)


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size * 2 // 3])


def swapped(file: Path) -> None:
    """What another file of the folder holds, an older one if there is one."""
    others = sorted(other for other in file.parent.iterdir() if other.is_file() and other != file)
    older = [other for other in others if other.name < file.name] or others
    file.unlink()
    if older:
        file.write_bytes(older[-1].read_bytes())


DAMAGE: dict[str, Callable[[Path], None]] = {
    "altered": altered,
    "cut short": cut_short,
    "removed": Path.unlink,
    "swapped": swapped,
}


@pytest.fixture(scope="module")
def killed(shim: Path, whole: Calm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as an engine left it that was killed when it had begun a round."""
    return killed_in(shim, whole, tmp_path_factory.mktemp("killed") / "run")


@pytest.fixture(scope="module")
def killed_far(shim: Path, far: Calm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same of one whose state is on a cluster."""
    return killed_in(shim, far, tmp_path_factory.mktemp("killed") / "run")


def killed_in(shim: Path, calm: Calm, folder: Path) -> Path:
    begun = calm.operations.index(("rename", f"{CHECKPOINT}/intents/{KILLED_IN:010d}.json"))
    record(folder, calm.queries)
    assert [life.end for life in lived(shim, (folder, f"k:{begun + 1}"))] == ["killed"]
    return folder


def state_files(folder: Path, kinds: Iterable[str] = ("rounds", "intents", "slices")) -> list[str]:
    """The records, the intents, and the files that they stand on; or those of other folders of the checkpoint."""
    found = [file for kind in kinds for file in (folder / CHECKPOINT / kind).rglob("*.*")]
    return sorted(str(file.relative_to(folder)) for file in found)


def verdicts(shim: Path, killed: Path, names: list[str], how: str, where: Path, calm: Calm) -> dict[str, str]:
    """What became of lives each of which found one of these files damaged in this way."""
    folders = {name: where / str(place) / "run" for place, name in enumerate(names)}
    for name, folder in folders.items():
        shutil.copytree(killed, folder)
        DAMAGE[how](folder / name)
    lives = lived(shim, *((folder, NONE) for folder in folders.values()))
    found = zip(folders.items(), lives, strict=True)
    return {name: _verdict(name, f"{name} {how}: {life}", life, folder, calm) for (name, folder), life in found}


def _verdict(name: str, what: str, life: Life, folder: Path, calm: Calm) -> str:
    assert life.end in ("ended", "refused"), what
    if life.end == "refused":
        assert name.partition("/")[2] in life.said, what
        assert "Restore these files from a copy" in life.said, what
        return "refused"
    assert differences(folder, calm.outcome) == Differences(), what
    return "warned" if name.partition("/")[2] in life.said else "right"


MEET = {
    "altered": slice(None),
    "cut short": slice(0, None, 3),
    "removed": slice(1, None, 3),
    "swapped": slice(1, None, 2),
}
"""Which files meet which damage: each is altered, most meet something else as well, and records meet everything."""


def damaged(killed: Path, how: str) -> list[str]:
    """The files that are damaged so."""
    files = state_files(killed)
    return sorted({*files[MEET[how]], *(name for name in files if "/rounds/" in name)})


@pytest.mark.slow
@pytest.mark.parametrize("how", DAMAGE)
def test_no_damaged_state_file_changes_a_result_in_silence(
    how: str, shim: Path, killed: Path, tmp_path: Path, whole: Calm
) -> None:
    found = verdicts(shim, killed, damaged(killed, how), how, tmp_path, whole)
    assert "warned" in found.values()
    if how == "altered":
        assert "refused" in found.values()
    if how != "removed":
        records = [verdict for name, verdict in found.items() if "/rounds/" in name]
        assert records == ["warned"] * len(records)


@pytest.mark.slow
@pytest.mark.parametrize("how", DAMAGE)
def test_no_damaged_state_file_on_a_cluster_changes_a_result_in_silence(
    how: str, shim: Path, killed_far: Path, tmp_path: Path, far: Calm
) -> None:
    names = [name for name in state_files(killed_far)[MEET[how]] if "/slices/" in name or how != "altered"]
    found = verdicts(shim, killed_far, names[::2], how, tmp_path, far)
    assert set(found.values()) & {"warned", "refused"}


@pytest.mark.slow
@pytest.mark.parametrize("how", ["altered", "cut short"])
def test_a_checkpoint_is_looked_over_before_it_is_needed(how: str, killed: Path, tmp_path: Path) -> None:
    """All that a start would find, `eventide checkpoint verify` finds; and half a table of late or rejected rows."""
    side_tables = state_files(killed, ("late", "rejects"))
    assert {name.split("/")[1] for name in side_tables} == {"late", "rejects"}
    for place, name in enumerate((*state_files(killed), *(side_tables if how == "cut short" else ()))):
        folder = tmp_path / str(place)
        shutil.copytree(killed / CHECKPOINT, folder / CHECKPOINT)
        DAMAGE[how](folder / name)
        damage = verify(Storage.at(folder / CHECKPOINT, make=False)).damage
        assert any(name.partition("/")[2] in wrong for wrong in damage), name
