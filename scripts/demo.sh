#!/usr/bin/env bash
# demo.sh: run examples/demo with a release build, setting up what it needs first.

cd "$(dirname "$0")/.."
. scripts/progress.sh
. scripts/environment.sh

step "system packages"
scripts/system_packages.sh build
step "main environment"
prepare_main demo
step "demo"
python=$(realpath -s "$VENV")/bin/python
cd examples && exec "$python" -m demo "$@"
