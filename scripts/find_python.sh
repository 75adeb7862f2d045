#!/usr/bin/env bash
# Print a Python that is new enough, or say what to install.
set -euo pipefail
source "$(dirname "$0")/missing.sh"

for python in python3 python3.13 python3.12 python3.11; do
    # Being on the PATH is not enough: a version manager's shim may stand there for a Python it will not start.
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        command -v "$python"
        exit 0
    fi
done
echo "Eventide needs Python 3.11 or newer, and found none. To install it:" >&2
echo "    $(command_to_install "python3 python3-venv" python@3.13 python3.13)" >&2
exit 1
