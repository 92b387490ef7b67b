#!/usr/bin/env bash
# demo_spark.sh [OPTIONS OF benches.bench_spark]: jobs of a real Spark with and without quickpickle, setting up what
# that needs first. The plot goes to target/demo-spark.png.

cd "$(dirname "$0")/.."
. scripts/progress.sh
. scripts/environment.sh
. scripts/spark_environment.sh

step "system packages"
scripts/system_packages.sh spark
command -v java >/dev/null || fail "no Java; Debian: apt-get install default-jdk-headless"
step "main environment"
prepare_main bench
step "Spark $SPARK_VERSION"
prepare_spark
spark_overlay .venvs/spark-quickpickle "$wheel"
python=$(realpath -s .venvs/spark-quickpickle/bin/python)
step "which of Spark's processes have quickpickle"
PYSPARK_PYTHON=$python SPARK_LOCAL_IP=127.0.0.1 PYTHONWARNINGS=ignore "$python" -m quickpickle spark check \
    --conf spark.log.level=FATAL --conf spark.ui.showConsoleProgress=false
step "jobs with and without: a short run"
mkdir -p "$target"
"$VENV/bin/python" -m benches.bench_spark --python "$python" --rounds 5 --warmup 1 --seconds 0.3 \
    --plot "$target/demo-spark.png" "$@"
