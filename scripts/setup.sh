#!/usr/bin/env bash
# Make the virtual environment named by the first argument, with the pinned versions, and look for Java.
set -euo pipefail
scripts=$(cd "$(dirname "$0")" && pwd)
source "$scripts/missing.sh"
cd "$scripts/.."
venv=$1

if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    python=$("$scripts/find_python.sh")
    # Debian ships Python without the part that fills a new environment.
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
        if ! apt_install_first_of "$package" python3-venv; then
            echo "$python cannot make virtual environments. To install what it lacks:" >&2
            echo "    $(command_to_install "$package" python@3.13 python3)" >&2
            exit 1
        fi
    fi
    echo "making $venv with $("$python" --version) ($python)"
    "$python" -m venv --clear "$venv"
fi

# setuptools first and pinned, so that building Eventide itself fetches nothing unpinned.
echo "installing the versions of constraints.txt into $venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -c constraints.txt setuptools
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -c constraints.txt \
    --no-build-isolation --editable '.[dev]'

# Without Java the local engine and the dry run still work: say what is missing, and go on.
if java=$("$scripts/find_java.sh"); then
    echo "found Java for the Spark engine: $java"
fi
