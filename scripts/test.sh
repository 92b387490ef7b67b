#!/usr/bin/env bash
# test.sh: everything that must hold, on every interpreter found; stops at the first failing step.
#
# Rust's own lints and tests come first, because they need no wheel; then the main interpreter, with
# the Python lints; then each other one. QUICKPICKLE_INTERPRETERS="" leaves the others out.

cd "$(dirname "$0")/.."
. scripts/progress.sh
. scripts/environment.sh
. scripts/checks.sh

step "system packages"
scripts/system_packages.sh test

step "interpreters"
found=$(interpreters)
while IFS=$'\t' read -r name path about; do note "$about at $path"; done <<<"$found"
others=$(tail -n +2 <<<"$found")
progress_steps=$((12 + $(grep -c . <<<"$others" || true)))

step "main environment"
prepare_main dev
main_name=$(head -n1 <<<"$found" | cut -f1)

reports=$target/test-reports
rm -rf "$reports"
mkdir -p "$reports"

# run_pytest NAME VENV: the whole Python suite with that environment's wheel.
run_pytest() {
    "$2/bin/python" -m pytest tests -q -p no:cacheprovider --junitxml="$reports/$1.xml" \
        -o junit_suite_name="CPython $1"
}

lint_rust
step "cargo test"
cargo test --workspace --locked --quiet 2>&1 | tee "$reports/cargo.log"
lint_python

step "Python tests, CPython $main_name"
run_pytest "$main_name" "$VENV"

while IFS=$'\t' read -r name path about; do
    [ -n "$name" ] || continue
    step "Python tests, $about at $path"
    venv=.venvs/$name
    create_venv "$path" "$venv"
    build_wheel "$name" "$path"
    install_wheel "$venv" "$wheel" test
    run_pytest "$name" "$venv" </dev/null
done <<<"$others"

step "summary"
"$VENV/bin/python" scripts/summary.py "$reports"
printf 'All tests passed in %s\n' "$(elapsed)"
