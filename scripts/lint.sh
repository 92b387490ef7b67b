#!/usr/bin/env bash
# lint.sh: formatting, lints and types of everything, in the main environment.

cd "$(dirname "$0")/.."
. scripts/progress.sh
. scripts/environment.sh

step "system packages"
scripts/system_packages.sh build
step "main environment"
prepare_main dev
. scripts/checks.sh
lint_rust
lint_python
printf '\nAll lints passed in %s\n' "$(elapsed)"
