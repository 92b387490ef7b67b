"""Find the Python interpreters of this machine that quickpickle supports.

Prints one line for each: a short name, the path, and what it is, separated by tabs. The first is
always the one named on the command line (default: ``python3``). Others of a supported version that
cannot be used are named on stderr with the reason. Only the standard library is used, because this
runs before any virtual environment exists, under any Python from 3.8.

Looked at: ``python3`` and ``python3.N`` on PATH and in /usr/bin and /usr/local/bin, and every
version pyenv keeps. QUICKPICKLE_INTERPRETERS, a list of paths separated by spaces, replaces that
search (an empty one means: no others).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

OLDEST = (3, 10)
NEWEST = (3, 14)
WRONG_VERSION = "supported are {}.{} to {}.{}".format(*OLDEST, *NEWEST)

# Run in each candidate: what identifies it. A pyenv shim or a virtual environment leads to the
# interpreter behind it, so that each is used once.
PROBE = """
import importlib.util, json, sys, sysconfig
print(json.dumps({
    "path": getattr(sys, "_base_executable", None) or sys.executable,
    "implementation": sys.implementation.name,
    "version": list(sys.version_info[:3]),
    "release": sys.version.split()[0],
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "debug": hasattr(sys, "gettotalrefcount"),
    "venv": all(importlib.util.find_spec(name) for name in ("venv", "ensurepip")),
}))
"""


class Interpreter(NamedTuple):
    """One interpreter: a name unique on this machine, where it is, and what it calls itself."""

    name: str
    path: str
    about: str


def candidates() -> Iterator[Path]:
    """Paths that may be interpreters, in the order they are preferred."""
    chosen = os.environ.get("QUICKPICKLE_INTERPRETERS")
    if chosen is not None:
        yield from (Path(path) for path in chosen.split())
        return
    names = ["python3", *(f"python3.{minor}" for minor in range(OLDEST[1], NEWEST[1] + 1))]
    folders = [*os.environ.get("PATH", "").split(os.pathsep), "/usr/bin", "/usr/local/bin"]
    for name in names:
        for folder in folders:
            if folder and (Path(folder) / name).exists():
                yield Path(folder) / name
    root = pyenv_root()
    if root is not None:
        yield from sorted(root.glob("versions/*/bin/python3"))


def pyenv_root() -> Path | None:
    """The folder where pyenv keeps its versions, where there is one."""
    root = os.environ.get("PYENV_ROOT")
    if not root and shutil.which("pyenv"):
        root = subprocess.run(["pyenv", "root"], stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
    return Path(root) if root else None


def probe(path: str) -> dict[str, object] | None:
    """What the interpreter says of itself; None where it does not run, like a shim of pyenv's."""
    try:
        done = subprocess.run(
            [path, "-I", "-c", PROBE],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=60,
            check=True,
        )
        facts = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return facts if isinstance(facts, dict) else None


def unsuitable(facts: dict[str, object]) -> str | None:
    """Why this interpreter cannot be used, or None."""
    version = facts["version"]
    assert isinstance(version, list)
    if facts["implementation"] != "cpython":
        return "not CPython"
    if not OLDEST <= tuple(version[:2]) <= NEWEST:
        return WRONG_VERSION
    if facts["free_threaded"]:
        return "free-threaded builds are not supported"
    if not facts["venv"]:
        return "it has no venv or ensurepip module"
    return None


def find(first: str) -> list[Interpreter]:
    """All usable interpreters, ``first`` first; exits with a message where that one is unusable."""
    facts = probe(first)
    reason = "it does not run" if facts is None else unsuitable(facts)
    if facts is None or reason is not None:
        sys.exit(f"interpreters: {first} cannot be used: {reason}")
    found = [facts]
    seen = {os.path.realpath(str(facts["path"]))}
    for path in candidates():
        facts = probe(str(path))
        if facts is None:
            continue
        real = os.path.realpath(str(facts["path"]))
        if real in seen:
            continue
        seen.add(real)
        reason = unsuitable(facts)
        if reason is None:
            found.append(facts)
        elif reason != WRONG_VERSION:
            print(f"passed over {real} ({facts['release']}): {reason}", file=sys.stderr)
    interpreters: list[Interpreter] = []
    for facts in found:
        path_text = str(facts["path"])
        name = f"{facts['release']}{'d' if facts['debug'] else ''}"
        if any(name == other.name for other in interpreters):
            name += "-" + hashlib.sha256(path_text.encode()).hexdigest()[:6]
        about = f"CPython {facts['release']}{' (debug)' if facts['debug'] else ''}"
        interpreters.append(Interpreter(name, path_text, about))
    return interpreters


def main() -> None:
    """Print the interpreters found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("first", nargs="?", default="python3", help="the interpreter to put first")
    parser.add_argument("--only-first", action="store_true", help="do not look for others")
    options = parser.parse_args()
    if options.only_first:
        os.environ["QUICKPICKLE_INTERPRETERS"] = ""
    for interpreter in find(options.first):
        print(*interpreter, sep="\t")


if __name__ == "__main__":
    main()
