#!/usr/bin/env bash
# test_one.sh [PYTEST ARGUMENTS]: the whole Python suite on the main interpreter alone, lints and Rust's tests left out.

cd "$(dirname "$0")/.."
. scripts/progress.sh
. scripts/environment.sh

step "main environment"
prepare_main test
step "Python tests"
"$VENV/bin/python" -m pytest "${@:-tests}" -q -p no:cacheprovider
