#!/usr/bin/env bash
# bench.sh [OPTION...]: the benchmarks on a release wheel, in the main environment. The options are
# those of benches/bench_pickle.py; raw samples go to benches/record.

cd "$(dirname "$0")/.."
. scripts/progress.sh
. scripts/environment.sh

step "system packages"
scripts/system_packages.sh build
step "main environment"
prepare_main bench
step "benchmarks"
exec "$VENV/bin/python" -m benches.bench_pickle "$@"
