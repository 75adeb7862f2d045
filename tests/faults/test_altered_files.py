"""Every state file altered, cut short, removed, or swapped with an older one: right, right with a warning, or refused.

What the checkpoint of an engine that was killed holds is damaged, one file at a time. The next life either shows what
an undisturbed run shows, or refuses with the name of the file and the way out; never something else in silence.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.crash.differences import Differences, differences
from benchmarks.crash.outcome import Outcome
from tests.choice import chosen
from tests.faults.lives import NONE, TOLD, Life, lived
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
def killed(shim: Path, calm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as an engine left it that was killed when it had begun a round."""
    told = (calm.parent / f"{calm.name}.{TOLD}").read_text().splitlines()
    intent = f"rename {CHECKPOINT}/intents/{KILLED_IN:010d}.json"
    [number] = [line.split()[0] for line in told if line.endswith(intent)]
    folder = tmp_path_factory.mktemp("killed") / "run"
    record(folder)
    assert [life.end for life in lived(shim, folder, [f"k:{int(number) + 1}"])] == ["killed"]
    return folder


def state_files(folder: Path) -> list[str]:
    """The records, the intents, and the files that they stand on."""
    found = [file for kind in ("rounds", "intents", "slices") for file in (folder / CHECKPOINT / kind).rglob("*.*")]
    return sorted(str(file.relative_to(folder)) for file in found)


def verdict(shim: Path, killed: Path, name: str, how: str, folder: Path, undisturbed: Outcome) -> str:
    """What became of a life that found this file damaged in this way."""
    shutil.copytree(killed, folder)
    DAMAGE[how](folder / name)
    [life] = lived(shim, folder, [NONE])
    what = f"{name} {how}: {life}"
    assert life.end in ("ended", "refused"), what
    if life.end == "refused":
        assert Path(name).name in life.said, what
        assert "Restore these files from a copy" in life.said, what
        return "refused"
    assert differences(folder, undisturbed) == Differences(), what
    return "warned" if Path(name).name in life.said else "right"


REPRESENTATIVE: dict[str, str] = {"rounds": "swapped", "intents": "altered", "slices": "cut short"}


@pytest.mark.parametrize("kind", chosen(REPRESENTATIVE, lambda kind: kind == "rounds"))
def test_the_newest_file_of_each_kind_is_not_believed_when_it_is_damaged(
    kind: str, shim: Path, killed: Path, tmp_path: Path, undisturbed: Outcome
) -> None:
    newest = [name for name in state_files(killed) if name.startswith(f"{CHECKPOINT}/{kind}/")][-1]
    found = verdict(shim, killed, newest, REPRESENTATIVE[kind], tmp_path / "run", undisturbed)
    assert found in ("warned", "refused")


@pytest.mark.slow
@pytest.mark.parametrize("how", DAMAGE)
def test_no_damaged_state_file_changes_a_result_in_silence(
    how: str, shim: Path, killed: Path, tmp_path: Path, undisturbed: Outcome
) -> None:
    found = {
        name: verdict(shim, killed, name, how, tmp_path / str(place), undisturbed)
        for place, name in enumerate(state_files(killed))
    }
    assert {"warned", "refused"} <= set(found.values())
    if how != "removed":
        records = [verdict for name, verdict in found.items() if "/rounds/" in name]
        assert records == ["warned"] * len(records)


def test_lives_tell_how_they_ended(shim: Path, tmp_path: Path) -> None:
    """The harness itself: what is killed, refused and whole is told apart."""
    record(tmp_path / "run")
    lives = lived(shim, tmp_path / "run", ["k:3", "e:30:ENOSPC", NONE])
    assert [life.end for life in lives] == ["killed", "refused", "ended"]
    assert lives[0] == Life("k:3", "killed", "9")
    assert "No space left on device" in lives[1].said
