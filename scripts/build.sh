#!/usr/bin/env bash
# build.sh: a release build, installed in the main environment with all development tools.

cd "$(dirname "$0")/.."
. scripts/progress.sh
. scripts/environment.sh

step "system packages"
scripts/system_packages.sh build
step "main environment"
prepare_main dev
printf '\nReady: %s\n' "$VENV/bin/python -c 'import quickpickle'"
