#!/usr/bin/env bash
# memcheck.sh [checked] [debug] [valgrind]: the differential tests in builds that look for misuse of memory.
#
# checked   on every interpreter found, with debug assertions and overflow checks compiled in, the interpreter's
#           allocators in debug mode and its development mode on
# debug     the same build on debug builds of CPython, which check reference counts and objects as they go; as Debian
#           has them, in folders of their own (debian.sh; root is needed): DEBUG_PYTHONS, pairs of suite and version
# valgrind  a part of the tests under memcheck, on the main interpreter
#
# Not part of `make test`: all of it takes an hour or more. Without arguments: all three.

cd "$(dirname "$0")/.."
. scripts/progress.sh
export PROFILE=checked VENV=${CHECKED_VENV:-.venvs/checked}
. scripts/environment.sh

[ $# -gt 0 ] || set -- checked debug valgrind
tests=(tests/pickle tests/hostile tests/properties tests/threads tests/memory tests/fuzz tests/cpython)

# run_checked NAME VENV: the tests with an environment that holds a checked wheel.
run_checked() {
    step "checked: CPython $1"
    PYTHONMALLOC=debug PYTHONDEVMODE=1 QUICKPICKLE_TEST_PATIENCE=20 \
        "$2/bin/python" -m pytest "${tests[@]}" -q -p no:cacheprovider
}

for part in "$@"; do
    case $part in
    checked)
        step "main environment"
        prepare_main test
        found=$(interpreters)
        main_name=$(head -n1 <<<"$found" | cut -f1)
        while IFS=$'\t' read -r name path about; do
            venv=$VENV
            if [ "$name" != "$main_name" ]; then
                venv=.venvs/$name-checked
                create_venv "$path" "$venv"
                build_wheel "$name" "$path"
                install_wheel "$venv" "$wheel" test
            fi
            run_checked "$name" "$venv" </dev/null
        done <<<"$found"
        ;;
    debug)
        pythons=(${DEBUG_PYTHONS:-bookworm 3.11d trixie 3.13d sid 3.14d})
        for ((at = 0; at < ${#pythons[@]}; at += 2)); do
            step "debug: CPython ${pythons[at + 1]} of Debian ${pythons[at]}"
            PYTHONMALLOC=debug scripts/debian.sh "${pythons[at]}" "${pythons[at + 1]}" \
                scripts/test_one.sh "${tests[@]}"
        done
        ;;
    valgrind)
        command -v valgrind >/dev/null || fail "valgrind is missing: apt-get install valgrind"
        step "main environment"
        prepare_main test
        step "valgrind"
        tests/run_valgrind.sh "$VENV/bin/python"
        ;;
    *) fail "memcheck.sh [checked] [debug] [valgrind], not $part" ;;
    esac
done
printf '\nNothing found, in %s\n' "$(elapsed)"
