# The checks that lint.sh and test.sh share. Sourced after environment.sh, at the project's root.

# PyO3 links test programs with this interpreter's library; kept the same for clippy and the tests,
# so that neither compiles everything anew.
rust_environment() {
    export PYO3_PYTHON=$PWD/$VENV/bin/python
    export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-auto}
}

lint_rust() {
    rust_environment
    step "cargo fmt"
    cargo fmt --version >/dev/null 2>&1 || fail "cargo fmt is missing: rustup component add rustfmt"
    cargo fmt --all --check
    step "cargo clippy"
    cargo clippy --version >/dev/null 2>&1 || fail "cargo clippy is missing: rustup component add clippy"
    cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
    step "cargo doc"
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --locked --quiet
}

lint_python() {
    step "ruff"
    "$VENV/bin/ruff" check --output-format=concise .
    "$VENV/bin/ruff" format --check .
    step "mypy"
    "$VENV/bin/mypy"
    step "stubtest: the types written down against the module"
    "$VENV/bin/python" -m mypy.stubtest --mypy-config-file pyproject.toml quickpickle
}
