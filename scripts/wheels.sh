#!/usr/bin/env bash
# wheels.sh: one wheel for each interpreter found, and an sdist, in dist/; each is installed into a
# clean environment and tried out there.
#
# Wheels are linked through zig against the symbols of glibc 2.17, so that they are manylinux2014
# whatever system builds them; maturin checks that and refuses to tag a wheel that is not. One wheel
# for each minor version: of two interpreters of the same one, the first found builds it.

cd "$(dirname "$0")/.."
. scripts/progress.sh
. scripts/environment.sh
. scripts/spark_environment.sh

policy=${MANYLINUX:-manylinux2014}
maturin="maturin[zig]"

step "system packages"
scripts/system_packages.sh build

step "interpreters"
found=$(interpreters)
declare -A minor_seen=()
chosen=""
while IFS=$'\t' read -r name path about; do
    minor=$(cut -d. -f1,2 <<<"$name")
    if [ -n "${minor_seen[$minor]:-}" ]; then
        note "$about at $path: uses the wheel of ${minor_seen[$minor]}"
    else
        note "$about at $path"
        minor_seen[$minor]=$name
        chosen+="$name"$'\t'"$path"$'\n'
    fi
done <<<"$found"

step "main environment"
IFS=$'\t' read -r name path about <<<"$found"
main_path=$path
create_venv "$path" "$VENV"
ensure_maturin
if ! "$VENV/bin/python" -c 'import ziglang' 2>/dev/null; then
    note "installing $maturin"
    "$VENV/bin/python" -m pip install -q "$maturin"
fi

step "what a Spark master loads"
spark_parts --zig 2.17

rm -rf dist
scratch=$(mktemp -d)
trap 'progress_exit; rm -rf "$scratch"' EXIT

# try_out PATH FILE: install FILE into a clean environment of that interpreter and use it there.
try_out() {
    local venv=$scratch/venv
    rm -rf "$venv"
    "$1" -m venv "$venv"
    "$venv/bin/python" -m pip install -q "$2"
    (cd "$scratch" && "$venv/bin/python" -I "$OLDPWD/scripts/smoke.py")
}

while IFS=$'\t' read -r name path; do
    [ -n "$name" ] || continue
    step "wheel for $path"
    # maturin finds zig through the environment's python.
    PATH=$PWD/$VENV/bin:$PATH CARGO_TARGET_DIR=$target/wheels/$name \
        "$VENV/bin/maturin" build --release --locked --quiet --zig \
        --interpreter "$path" --compatibility "$policy" --out dist </dev/null
done <<<"$chosen"

# Every interpreter found tries the wheel that pip would choose for it.
while IFS=$'\t' read -r name path about; do
    tag=$("$path" -I -c 'import sys; print("cp{}{}".format(*sys.version_info[:2]))' </dev/null)
    wheel=$(ls dist/*-"$tag"-"$tag"-manylinux*.whl)
    step "trying $(basename "$wheel") on $path"
    try_out "$path" "$wheel" </dev/null
done <<<"$found"

step "sdist"
"$VENV/bin/maturin" sdist --out dist
step "building from the sdist in a clean environment of $main_path"
CARGO_TARGET_DIR=$scratch/target try_out "$main_path" dist/*.tar.gz

step "made and tried"
ls -l dist | awk 'NR > 1 { printf "    %9d bytes  %s\n", $5, $9 }'
