#!/bin/sh
# Runs the differential tests under valgrind's memcheck and fails on any error that is not CPython's own.
#
#     tests/run_valgrind.sh [PYTHON [PYTEST ARGUMENTS...]]
#
# PYTHONMALLOC=malloc makes each object an allocation that memcheck can watch. Expect an hour for the whole of
# tests/pickle; the default is the part that reaches most code for the time it takes.
set -eu
cd "$(dirname "$0")/.."
python=${1:-python3}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- tests/pickle/test_reference_counts.py tests/pickle/test_load_errors.py \
    tests/pickle/test_same_bytes.py -k "not containers and not third_party and not fast_mode and not 66000"
suppressions=
for file in tests/valgrind.supp; do
    [ -f "$file" ] && suppressions="--suppressions=$file"
done
PYTHONMALLOC=malloc PYTHONHASHSEED=0 exec valgrind --tool=memcheck --error-exitcode=99 --leak-check=no \
    --undef-value-errors=no --num-callers=25 --quiet $suppressions --trace-children=no \
    "$("$python" -c 'import sys; print(sys.executable)')" -m pytest -q -p no:cacheprovider \
    -o faulthandler_timeout=0 -o timeout=0 "$@"
