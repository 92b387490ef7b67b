#!/usr/bin/env bash
# test_sid.sh [PYTEST ARGUMENTS]: the whole Python suite on CPython 3.14, as Debian's unstable suite has it.

cd "$(dirname "$0")/.."
exec scripts/debian.sh sid 3.14 scripts/test_one.sh "$@"
