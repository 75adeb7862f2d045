# Sourced by the scripts beside it: how to get a package that this machine is missing.

# Install Debian packages: the first name that apt knows. Only root may, and only where there is apt.
apt_install_first_of() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    local quiet="-qq -o Acquire::Retries=1 -o Acquire::http::Timeout=20"
    # shellcheck disable=SC2086
    apt-get update $quiet >/dev/null 2>&1 || true
    local package
    for package in "$@"; do
        # shellcheck disable=SC2086
        if DEBIAN_FRONTEND=noninteractive apt-get install -y $quiet --no-install-recommends "$package" >/dev/null 2>&1; then
            echo "installed $package with apt" >&2
            return 0
        fi
    done
    return 1
}

# The command that would install it here: $1 for apt, $2 for Homebrew, $3 for dnf.
command_to_install() {
    if command -v apt-get >/dev/null; then
        echo "sudo apt-get install $1"
    elif [ "$(uname)" = Darwin ]; then
        echo "brew install $2"
    elif command -v dnf >/dev/null; then
        echo "sudo dnf install $3"
    else
        echo "your package manager, for what Debian calls $1"
    fi
}
