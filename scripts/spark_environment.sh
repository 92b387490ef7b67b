# Spark, and the jar and library a Spark master loads. Sourced after environment.sh, at the project's root.
#
# The jar is compiled against the jars of PySpark, in an environment of its own. Jar and library go beside the Python
# package, from where every wheel takes them; a wheel built without them lacks the Spark half and nothing else.

SPARK_VERSION=4.3.0
# PySpark with what its data frames, Connect and pandas functions need; pandas in the version it supports.
SPARK_PACKAGES=("pyspark[connect,sql]==$SPARK_VERSION" 'pandas<3')
SPARK_VENV=${SPARK_VENV:-.venvs/spark}
spark_library=python/quickpickle/recovery_spark

# have_jdk: whether there is a Java compiler of version 17 or newer.
have_jdk() {
    local version
    version=$(javac -version 2>&1) || return 1
    version=${version#javac }
    [ "${version%%.*}" -ge 17 ] 2>/dev/null
}

# prepare_spark: an environment with PySpark, kept if it is there.
prepare_spark() {
    local path
    path=$(command -v "$PYTHON")
    create_venv "$path" "$SPARK_VENV"
    if [ "$(cat "$SPARK_VENV/pyspark-version" 2>/dev/null)" != "${SPARK_PACKAGES[*]}" ]; then
        note "installing ${SPARK_PACKAGES[*]} into $SPARK_VENV (some 700 MB)"
        "$SPARK_VENV/bin/python" -m pip install -q "${SPARK_PACKAGES[@]}"
        echo "${SPARK_PACKAGES[*]}" >"$SPARK_VENV/pyspark-version"
    fi
    spark_jars=$(ls -d "$SPARK_VENV"/lib/python*/site-packages/pyspark/jars)
}

# spark_overlay VENV WHEEL: an environment with the same PySpark and this wheel of quickpickle, enabled. The one below
# stays without, as a worker's may be.
spark_overlay() {
    local venv=$1 wheel=$2 place
    create_venv "$(realpath -s "$SPARK_VENV/bin/python")" "$venv"
    place=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    "$SPARK_VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$place/spark.pth"
    if [ "$(cat "$venv/wheel" 2>/dev/null)" != "$(sha256sum <"$wheel")" ]; then
        note "installing $(basename "$wheel") into $venv"
        "$venv/bin/python" -m pip install -q --force-reinstall --no-deps "$wheel"
        sha256sum <"$wheel" >"$venv/wheel"
    fi
    "$venv/bin/python" -m quickpickle spark enable
}

# spark_sources_hash: changes when anything that goes into the jar or the library does.
spark_sources_hash() {
    {
        echo "$SPARK_VERSION $*"
        find Cargo.toml Cargo.lock java/src/main crates/quickpickle-jni crates/quickpickle-recovery crates/quickpickle-format \
            -type f ! -path '*/benches/*' ! -path '*/tests/*' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
    } | sha256sum | cut -c1-16
}

# spark_parts [--zig GLIBC]: build jar and library unless they are there. Without a JDK, says so and leaves them out:
# stale ones are removed, since a wheel would take them.
spark_parts() {
    local hash scratch built cargo_target
    if ! have_jdk; then
        note "no Java compiler of version 17 or newer (Debian: default-jdk-headless): left out is what a Spark master loads"
        rm -rf "$spark_library"
        return 0
    fi
    hash=$(spark_sources_hash "$@")
    if [ "$(cat "$target/spark-parts/sources" 2>/dev/null)" = "$hash" ] && [ -f "$spark_library/quickpickle-spark-recovery.jar" ] &&
        [ -f "$spark_library/libquickpickle_jni.so" ]; then
        note "jar and library are there"
        return 0
    fi
    prepare_spark
    rm -rf "$spark_library"
    mkdir -p "$target/spark-parts"
    scratch=$(mktemp -d)

    note "compiling the jar against Spark $SPARK_VERSION"
    mkdir "$scratch/classes"
    javac -Xlint:all -Werror --release 17 -d "$scratch/classes" \
        -cp "$(find "$spark_jars" -name 'spark-core_*.jar' -o -name 'spark-common-utils*.jar' -o -name 'scala-library-*.jar' \
            -o -name 'kryo-shaded-*.jar' -o -name 'slf4j-api-*.jar' | paste -sd:)" \
        java/src/main/java/io/quickpickle/recovery/*.java
    # The date is fixed, so that the same sources make the same jar.
    jar --create --file "$scratch/quickpickle-spark-recovery.jar" --date=2026-01-01T00:00:00Z -C "$scratch/classes" .

    if [ "${1:-}" = --zig ]; then
        note "building the library for glibc $2"
        cargo_target=$(rustc -vV | sed -n 's/^host: //p')
        [ -x "$VENV/bin/cargo-zigbuild" ] || "$VENV/bin/python" -m pip install -q 'cargo-zigbuild>=0.20,<1' ziglang
        PATH=$PWD/$VENV/bin:$PATH CARGO_TARGET_DIR=$target/spark-parts/zig cargo-zigbuild zigbuild --release --locked --quiet \
            --config 'profile.release.strip="symbols"' -p quickpickle-jni --target "$cargo_target.$2"
        built=$target/spark-parts/zig/$cargo_target/release
    else
        note "building the library"
        CARGO_TARGET_DIR=$target/spark-parts/native cargo build --release --locked --quiet \
            --config 'profile.release.strip="symbols"' -p quickpickle-jni
        built=$target/spark-parts/native/release
    fi
    mkdir -p "$spark_library"
    install -m 755 "$built/libquickpickle_jni.so" "$spark_library/"
    install -m 644 "$scratch/quickpickle-spark-recovery.jar" "$spark_library/"
    rm -rf "$scratch"
    echo "$hash" >"$target/spark-parts/sources"
}
