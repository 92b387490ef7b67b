"""Write what each CPython version's bytecode looks like, as Rust tables.

python scripts/bytecode_tables.py PYTHON... > crates/quickpickle-python/src/cloud/bytecode_tables.rs

Each PYTHON is an interpreter of another minor version; its ``opcode`` module is asked. A table has one
byte for each opcode: 0 where there is none, else the number of cache entries behind the instruction in
the high four bits and, in the low four, what its argument is (see KINDS).
"""

import json
import subprocess
import sys
from typing import Any

KINDS = {
    "other": 1,
    "const": 2,
    "name": 3,
    "name, from the second bit on": 4,
    "name, from the third bit on": 5,
    "variable": 6,
    "jump forward": 7,
    "jump backward": 8,
    "jump to": 9,
    "more of the next argument": 10,
    "resume": 11,
    "cache": 12,
}

ASK = """
import json, opcode, sys
caches = getattr(opcode, "_inline_cache_entries", {})
if not isinstance(caches, dict):
    caches = {opcode.opname[number]: count for number, count in enumerate(caches) if count}
print(json.dumps({
    "version": sys.version_info[:2],
    "opcodes": {name: number for name, number in opcode.opmap.items() if number < 256},
    "caches": caches,
    **{kind: getattr(opcode, kind) for kind in ("hasconst", "hasname", "haslocal", "hasfree", "hasjrel", "hasjabs")},
}))
"""

HEAD = """\
//! What the bytecode of each CPython version looks like; written by scripts/bytecode_tables.py.
//!
//! One byte for each opcode: 0 where there is none, else the cache entries behind the instruction (high four bits) and
//! what its argument is (low four bits, see `bytecode`).

/// A version and its opcodes.
pub(super) type Table = ((u8, u8), [u8; 256]);
"""


def kind(name: str, number: int, about: dict[str, Any]) -> str:
    """Return what the argument of an opcode is."""
    version = tuple(about["version"])
    if name in ("EXTENDED_ARG", "RESUME", "CACHE"):
        return {"EXTENDED_ARG": "more of the next argument", "RESUME": "resume", "CACHE": "cache"}[name]
    if number in about["hasconst"]:
        return "const"
    if number in about["hasname"]:
        if name == "LOAD_SUPER_ATTR":
            return "name, from the third bit on"
        shifted = (version >= (3, 11) and name == "LOAD_GLOBAL") or (version >= (3, 12) and name == "LOAD_ATTR")
        return "name, from the second bit on" if shifted else "name"
    # Some load two variables, with half of the argument each.
    if (number in about["haslocal"] and name.count("FAST") == 1) or number in about["hasfree"]:
        return "variable"
    if number in about["hasjabs"]:
        return "jump to"
    # Its argument says where the loop began, and it does not jump there.
    if number in about["hasjrel"] and name != "END_ASYNC_FOR":
        return "jump backward" if "BACKWARD" in name else "jump forward"
    return "other"


def table(about: dict[str, Any]) -> str:
    """Return one version's table as Rust."""
    entries = [0] * 256
    for name, number in about["opcodes"].items():
        # These stand in code that is being traced, which nobody is handed.
        if not name.startswith("INSTRUMENTED_"):
            entries[number] = about["caches"].get(name, 0) << 4 | KINDS[kind(name, number, about)]
    major, minor = about["version"]
    rows = "\n".join(
        "        " + " ".join(f"{entry}," for entry in entries[start : start + 16]) for start in range(0, 256, 16)
    )
    return f"    (\n        ({major}, {minor}),\n        [\n{rows}\n        ],\n    ),"


def main() -> None:
    """Ask each interpreter, oldest first, and write all tables."""
    answers = []
    for path in sys.argv[1:]:
        answers.append(json.loads(subprocess.run([path, "-c", ASK], capture_output=True, check=True).stdout))
    answers.sort(key=lambda about: about["version"])
    print(HEAD)
    print("/// All versions known, oldest first.\n#[rustfmt::skip]")
    print(f"pub(super) static TABLES: [Table; {len(answers)}] = [")
    print("\n".join(table(about) for about in answers))
    print("];")


if __name__ == "__main__":
    main()
