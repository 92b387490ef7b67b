#!/usr/bin/env bash
# test.sh: everything that must hold, on every interpreter found; stops at the first failure.
#
# Lints and Rust's tests come first, because they need no more than one build. Then the Python suite
# on each interpreter, as many at a time as there are processors (TEST_JOBS): each writes a log that
# is shown when it ends. QUICKPICKLE_INTERPRETERS="" leaves all but the main interpreter out.

cd "$(dirname "$0")/.."
. scripts/progress.sh
. scripts/environment.sh
. scripts/spark_environment.sh
. scripts/checks.sh

step "system packages"
scripts/system_packages.sh test

step "interpreters"
found=$(interpreters)
while IFS=$'\t' read -r name path about; do note "$about at $path"; done <<<"$found"
count=$(wc -l <<<"$found")
progress_steps=$((12 + count))

step "what a Spark master loads"
spark_parts
if [ -d "$spark_library" ]; then
    prepare_spark
    spark_python=$(realpath -s "$SPARK_VENV/bin/python")
fi

step "main environment"
prepare_main dev
main_name=$(head -n1 <<<"$found" | cut -f1)

reports=$target/test-reports
rm -rf "$reports"
mkdir -p "$reports"

lint_rust
step "cargo test"
# The ZooKeeper tests start a real server from Debian's package zookeeper; without it they say SKIPPED.
cargo test --workspace --locked --quiet --features quickpickle-format/serde,quickpickle-recovery/zookeeper 2>&1 |
    tee "$reports/cargo.log"
lint_python

# test_on NAME PATH: the whole Python suite with that interpreter's wheel.
test_on() {
    local name=$1 path=$2 venv=$VENV
    # Spark's own Python is the same whichever interpreter asks, so one of them does.
    local QUICKPICKLE_SPARK_PYTHON=
    [ "$name" != "$main_name" ] || QUICKPICKLE_SPARK_PYTHON=${spark_python:-}
    export QUICKPICKLE_SPARK_PYTHON
    if [ "$name" != "$main_name" ]; then
        venv=.venvs/$name
        create_venv "$path" "$venv"
        build_wheel "$name" "$path"
        install_wheel "$venv" "$wheel" test
    fi
    # What is the same on every interpreter, and slow, runs on the main one.
    [ "$name" = "$main_name" ] || export QUICKPICKLE_SECONDARY_INTERPRETER=1
    "$venv/bin/python" -m pytest tests -q -p no:cacheprovider --junitxml="$reports/$name.xml" \
        -o junit_suite_name="CPython $name"
}

# reap: wait for one interpreter's run to end, and show how it went; stop everything if it failed.
declare -A running=()
reap() {
    local pid code=0 name
    wait -n -p pid "${!running[@]}" || code=$?
    name=${running[$pid]}
    unset "running[$pid]"
    step "Python tests, CPython $name"
    if [ "$code" -ne 0 ]; then
        cat "$reports/$name.log"
        for pid in "${!running[@]}"; do pkill -P "$pid" || true; done
        fail "Python tests on CPython $name (exit code $code); the log is above, and in $reports/$name.log"
    fi
    cat "$reports/$name.log"
}

jobs=${TEST_JOBS:-$(nproc)}
while IFS=$'\t' read -r name path about; do
    while [ ${#running[@]} -ge "$jobs" ]; do reap; done
    printf '\n--> [%s] starting the Python tests on %s at %s\n' "$(elapsed)" "$about" "$path"
    test_on "$name" "$path" </dev/null >"$reports/$name.log" 2>&1 &
    running[$!]=$name
done <<<"$found"
while [ ${#running[@]} -gt 0 ]; do reap; done

step "summary"
"$VENV/bin/python" scripts/summary.py "$reports"
printf 'All tests passed in %s\n' "$(elapsed)"
