# Virtual environments with quickpickle in them. Sourced after progress.sh, at the project's root.
#
# What is tested and measured is what users get: a release wheel, built for each interpreter and
# installed. Nothing is done twice: a wheel is rebuilt when a source file has changed, an environment
# when its interpreter has, an installation when the wheel or the wanted extras have.
#
# Paths: $VENV for the main interpreter, .venvs/NAME for the others, wheels under
# $target/wheelhouse/NAME, and a cargo target folder for each interpreter, because PyO3 is compiled
# anew whenever the interpreter changes.

PYTHON=${PYTHON:-python3}
VENV=${VENV:-.venv}
target=${CARGO_TARGET_DIR:-target}
# Wheels of another cargo profile than release are for looking for faults, and kept apart.
profile=${PROFILE:-release}

unset PYTHONPATH PYTHONHOME VIRTUAL_ENV
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

# interpreters [--only-first]: lines of name, path, description; the main one first.
interpreters() {
    "${PYTHON_FOR_SEARCH:-$PYTHON}" scripts/interpreters.py "$@" "$PYTHON"
}

# source_hash: changes when anything that goes into a wheel does.
source_hash() {
    find Cargo.toml Cargo.lock pyproject.toml README.md LICENSE-* crates python -type f \
        ! -path '*/__pycache__/*' ! -name '*.so' ! -path '*/target/*' \
        ! -path '*/benches/*' ! -path '*/tests/*' -print0 |
        LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16
}

# create_venv PATH VENV: an empty environment of the interpreter at PATH; kept if it is one already.
create_venv() {
    local path=$1 venv=$2
    if [ "$(cat "$venv/interpreter" 2>/dev/null)" != "$path" ] ||
        ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        note "creating $venv with $path"
        rm -rf "$venv"
        "$path" -m venv "$venv"
        echo "$path" >"$venv/interpreter"
    fi
}

# ensure_maturin: the build tool, in the main environment, in the version pyproject.toml asks for.
ensure_maturin() {
    local wanted
    wanted=$(sed -n 's/^requires = \["\(maturin[^"]*\)"\]/\1/p' pyproject.toml)
    if [ "$(cat "$VENV/maturin-wanted" 2>/dev/null)" != "$wanted" ]; then
        note "installing $wanted"
        "$VENV/bin/python" -m pip install -q "$wanted"
        echo "$wanted" >"$VENV/maturin-wanted"
    fi
}

# build_wheel NAME PATH: build the wheel unless it is there; sets $wheel to its path.
build_wheel() {
    local name=$1 path=$2 house=$target/wheelhouse/$1 hash
    [ "$profile" = release ] || house+=-$profile
    hash=$(source_hash)
    if [ "$(cat "$house/sources" 2>/dev/null)" != "$hash" ]; then
        note "building a $profile wheel for $path"
        rm -rf "$house"
        CARGO_TARGET_DIR=$target/interpreters/$name "$VENV/bin/maturin" build --profile "$profile" --locked --quiet \
            --interpreter "$path" --compatibility linux --out "$house"
        echo "$hash" >"$house/sources"
    fi
    wheel=$(ls "$house"/*.whl)
}

# install_wheel VENV WHEEL EXTRAS: install the wheel, and what its extras name, unless they are there.
install_wheel() {
    local venv=$1 wheel=$2 extras=$3 wheel_hash extras_hash
    wheel_hash=$(sha256sum <"$wheel")
    extras_hash=$(sha256sum <pyproject.toml)
    if [ "$(cat "$venv/extras-$extras" 2>/dev/null)" != "$extras_hash" ]; then
        note "installing what [$extras] names into $venv"
        "$venv/bin/python" -m pip install -q "quickpickle[$extras] @ file://$(realpath "$wheel")"
        echo "$extras_hash" >"$venv/extras-$extras"
    fi
    if [ "$(cat "$venv/wheel" 2>/dev/null)" != "$wheel_hash" ]; then
        note "installing $(basename "$wheel") into $venv"
        # Forced, because pip keeps an installed copy of the same version.
        "$venv/bin/python" -m pip install -q --force-reinstall --no-deps "$wheel"
        echo "$wheel_hash" >"$venv/wheel"
    fi
}

# prepare_main EXTRAS: the main environment, ready to use.
prepare_main() {
    local name path about
    IFS=$'\t' read -r name path about < <(interpreters --only-first)
    [ -n "${path:-}" ] || fail "no usable interpreter: PYTHON=$PYTHON"
    note "$about at $path"
    create_venv "$path" "$VENV"
    ensure_maturin
    build_wheel "$name" "$path"
    install_wheel "$VENV" "$wheel" "$1"
}
