"""Other versions of Spark than the pinned one, each in a folder of its own below the virtual environment.

Law: everything else is the same for all of them: a program that is started with `environment_of(version)` has the
packages of this Python, and that version of PySpark before them. It is fetched once; what cannot be had is an
`UnavailableError` that says why. `python -m scripts.spark_versions 4.1.1 COMMAND ...` runs a command with it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from scripts.servers import UnavailableError, folder_of, ran

OTHERS = ("4.1.1", "4.3.0")
"""One of each minor version that `pyproject.toml` allows, beside the pinned one."""


def environment_of(version: str) -> dict[str, str]:
    """The variables with which a program finds this version."""
    folder = Path(sys.prefix) / f"spark-{version}"
    if not folder.exists():
        with folder_of("fetching") as fetched:
            installing = [
                sys.executable,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--no-deps",
                "--target",
                str(fetched / "spark"),
            ]
            try:
                ran([*installing, f"pyspark=={version}"])
            except UnavailableError as error:
                raise UnavailableError(f"pip cannot fetch PySpark {version}, is there a network? {error}") from None
            if not folder.exists():
                os.rename(fetched / "spark", folder)
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


if __name__ == "__main__":
    try:
        environment = environment_of(sys.argv[1])
    except UnavailableError as missing:
        raise SystemExit(f"there is no Spark {sys.argv[1]}: {missing}") from None
    raise SystemExit(subprocess.run(sys.argv[2:], env=environment, check=False).returncode)
