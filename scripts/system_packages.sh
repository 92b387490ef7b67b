#!/usr/bin/env bash
# system_packages.sh build|test|spark: have the system packages that a build, the tests, or a Spark master need.
#
# On Debian as root, what is missing is installed. Elsewhere what is missing is named, and it is an
# error only where the build cannot do without. Rust is left to rustup or the machine's owner.

cd "$(dirname "$0")/.."
. scripts/progress.sh

purpose=${1:?build, test or spark}
progress_now="system packages"
PYTHON=${PYTHON:-python3}

rust_wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
command -v cargo >/dev/null || fail "cargo is not on PATH: install Rust $rust_wanted or newer"
rust_found=$(rustc --version | cut -d' ' -f2)
oldest=$(printf '%s\n%s\n' "$rust_wanted" "$rust_found" | sort -V | head -n1)
[ "$oldest" = "$rust_wanted" ] || fail "rustc is $rust_found, but Rust $rust_wanted or newer is needed"

# Each line: package, and a test that it is there.
missing=()
need() {
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || missing+=("$package")
}

need gcc command -v cc
need libc6-dev test -e /usr/include/stdio.h
# Debian splits its interpreters: virtual environments, headers and the test package are extra.
# Only those it ships, by their own names; others (pyenv's) come whole.
command -v "$PYTHON" >/dev/null || missing+=(python3 python3-venv python3-dev)
for python in /usr/bin/python3.1[0-9]; do
    [ -x "$python" ] && command -v dpkg >/dev/null && dpkg -S "$python" >/dev/null 2>&1 || continue
    name=${python##*/}
    need "$name-venv" "$python" -I -c 'import ensurepip, venv'
    need "$name-dev" test -e "/usr/include/$name/Python.h"
    if [ "$purpose" = test ]; then
        # CPython's own pickle tests run over our classes.
        need "lib$name-testsuite" "$python" -I -c 'import test.pickletester'
    fi
done
if [ "$purpose" != build ]; then
    # A real Spark master, and a real ZooKeeper.
    need default-jdk-headless command -v javac
    need zookeeper test -e /usr/share/java/zookeeper.jar
fi

if [ "$purpose" = test ]; then
    # Recovery stores are tested on a real ZooKeeper server.
    need libzookeeper-java test -e /usr/share/java/zookeeper.jar
fi

[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    note "installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
else
    note "missing system packages (Debian's names): ${missing[*]}"
    command -v cc >/dev/null || fail "no C compiler to link with; as root: apt-get install ${missing[*]}"
    command -v "$PYTHON" >/dev/null || fail "no $PYTHON; as root: apt-get install ${missing[*]}"
fi
