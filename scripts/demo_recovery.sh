#!/usr/bin/env bash
# demo_recovery.sh: kill a real Spark master and see it come back, then compare recovery engines, setting up what both
# need first.

cd "$(dirname "$0")/.."
. scripts/progress.sh
. scripts/environment.sh
. scripts/spark_environment.sh

step "system packages"
scripts/system_packages.sh spark
have_jdk || fail "no Java compiler of version 17 or newer; Debian: apt-get install default-jdk-headless"
step "what a Spark master loads"
spark_parts
step "Spark $SPARK_VERSION"
prepare_spark
python=$(realpath -s "$SPARK_VENV")/bin/python
library=$(realpath "$spark_library")
step "a master is killed"
(cd examples && "$python" -m spark_recovery "$library")
step "recovery engines, Spark's and ours: a short run"
"$python" -m benches.bench_recovery_spark --spark-python "$python" --library "$library" --rounds 3 --warmup 10
