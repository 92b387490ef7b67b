#!/usr/bin/env bash
# generate.sh PYTHON...: write the payloads of each release of cloudpickle with each of these interpreters.

set -euo pipefail
cd "$(dirname "$0")"

# Payloads hold the path of the script, which is to be the same on every machine.
run='import sys; name = "generate.py"; scope = {"__name__": "__main__", "__file__": name}
exec(compile(open(name).read(), name, "exec"), scope)'
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

for python in "$@"; do
    for release in 2.2.1 3.0.0 3.1.3; do
        rm -rf "$scratch/venv"
        "$python" -m venv "$scratch/venv"
        "$scratch/venv/bin/python" -m pip install -q "cloudpickle==$release"
        PYTHONDONTWRITEBYTECODE=1 "$scratch/venv/bin/python" -c "$run"
    done
done
