"""The setup scripts find what is there and tell the way out, on a PATH with only a few plain tools and these stubs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"


def put_command(path: Path, body: str) -> None:
    path.write_text(f"#!{shutil.which('bash')}\n{body}\n")
    path.chmod(0o755)


def run_script(
    name: str, machine: Path, java_home: Path | None = None, **stubs: str
) -> subprocess.CompletedProcess[str]:
    """Run a script on a machine that has only the given commands (`python3_12` is python3.12)."""
    for tool in ("bash", "dirname", "env", "head", "id", "sed", "uname"):
        found = shutil.which(tool)
        assert found is not None
        (machine / tool).symlink_to(found)
    for command, body in stubs.items():
        put_command(machine / command.replace("_", "."), body)
    environment = {"PATH": str(machine)} | ({"JAVA_HOME": str(java_home)} if java_home else {})
    return subprocess.run([SCRIPTS / name], env=environment, capture_output=True, text=True, check=False)


def java(version: str) -> str:
    return f"echo 'openjdk version \"{version}\" 2025-04-15' >&2"


def test_the_first_python_that_is_new_enough_is_taken(tmp_path: Path) -> None:
    found = run_script("find_python.sh", tmp_path, python3="exit 1", python3_13="exit 127", python3_12="exit 0")
    assert found.stdout.strip() == str(tmp_path / "python3.12")


def test_without_a_python_new_enough_the_way_out_is_told(tmp_path: Path) -> None:
    found = run_script("find_python.sh", tmp_path, python3="exit 1", dnf="exit 1")
    assert (found.returncode, found.stdout) == (1, "")
    assert "Python 3.11 or newer" in found.stderr
    assert "install" in found.stderr


def test_java_17_is_found(tmp_path: Path) -> None:
    assert run_script("find_java.sh", tmp_path, java=java("17.0.15")).stdout.strip() == str(tmp_path / "java")


@pytest.mark.skipif(Path("/usr/libexec/java_home").exists(), reason="a Mac's own registry of Javas would be asked too")
@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_202"])
def test_an_old_java_is_not_taken_and_the_way_out_is_told(tmp_path: Path, version: str) -> None:
    found = run_script("find_java.sh", tmp_path, java=java(version))
    assert (found.returncode, found.stdout) == (1, "")
    assert "Java 17 or newer is missing" in found.stderr
    assert "jre-headless" in found.stderr


def test_java_home_goes_before_the_path(tmp_path: Path) -> None:
    home, machine = tmp_path / "home", tmp_path / "machine"
    machine.mkdir()
    (home / "bin").mkdir(parents=True)
    put_command(home / "bin" / "java", java("21"))
    found = run_script("find_java.sh", machine, java_home=home, java=java("17"))
    assert found.stdout.strip() == str(home / "bin" / "java")
