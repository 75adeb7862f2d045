#!/usr/bin/env bash
# Print a Java that Spark can run on (17 or newer). As root with apt, install one; otherwise say what to install.
set -euo pipefail
source "$(dirname "$0")/missing.sh"

# "17" of `openjdk version "17.0.15"`; "1" of the old `java version "1.8.0_202"`, which is too old anyway.
major_version() {
    "$1" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1
}

print_java() {
    local home java major
    # On a Mac, java on the PATH may be a stub; java_home knows where the real ones are.
    home=$(/usr/libexec/java_home -v 17+ 2>/dev/null || true)
    for java in ${JAVA_HOME:+"$JAVA_HOME/bin/java"} java ${home:+"$home/bin/java"}; do
        command -v "$java" >/dev/null || continue
        major=$(major_version "$java" || true)
        if [ "${major:-0}" -ge 17 ]; then
            command -v "$java"
            return 0
        fi
    done
    return 1
}

if print_java; then
    exit 0
fi
if apt_install_first_of openjdk-17-jre-headless openjdk-21-jre-headless && print_java; then
    exit 0
fi
echo "Java 17 or newer is missing. Nothing needs it yet; the Spark engine will. To install it:" >&2
echo "    $(command_to_install openjdk-17-jre-headless openjdk@17 java-17-openjdk-headless)" >&2
exit 1
