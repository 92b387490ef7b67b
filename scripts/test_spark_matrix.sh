#!/usr/bin/env bash
# test_spark_matrix.sh [VERSION ...]: the tests of tests/spark on each PySpark that is supported, one after the other, each
# in an environment of its own that is removed again. For the night: every version is a download of some 450 MB.

cd "$(dirname "$0")/.."
. scripts/progress.sh
. scripts/environment.sh
. scripts/spark_environment.sh

versions=("$@")
[ $# -gt 0 ] || versions=(4.3.0 4.2.0 4.1.3 4.0.4)
progress_steps=$((1 + ${#versions[@]}))

step "main environment"
prepare_main test
reports=$target/test-reports
mkdir -p "$reports"
failed=()
for version in "${versions[@]}"; do
    step "PySpark $version"
    SPARK_VENV=.venvs/spark-$version
    SPARK_PACKAGES=("pyspark[connect,sql]==$version" 'pandas<3')
    prepare_spark
    if ! QUICKPICKLE_SPARK_PYTHON=$(realpath -s "$SPARK_VENV/bin/python") "$VENV/bin/python" -m pytest tests/spark -q \
        -p no:cacheprovider --junitxml="$reports/spark-$version.xml" -o junit_suite_name="PySpark $version"; then
        failed+=("$version")
    fi
    rm -rf "$SPARK_VENV"
done
[ ${#failed[@]} -eq 0 ] || fail "PySpark ${failed[*]}; the logs are above, and in $reports"
printf 'All versions passed in %s\n' "$(elapsed)"
