#!/usr/bin/env bash
# spark_jar.sh: the jar and the library that a Spark master loads, in python/quickpickle/recovery_spark/.

cd "$(dirname "$0")/.."
. scripts/progress.sh
. scripts/environment.sh
. scripts/spark_environment.sh

step "system packages"
scripts/system_packages.sh spark
have_jdk || fail "no Java compiler of version 17 or newer; Debian: apt-get install default-jdk-headless"
step "jar and library"
spark_parts
ls -l "$spark_library" | awk 'NR > 1 { printf "    %9d bytes  %s\n", $5, $9 }'
