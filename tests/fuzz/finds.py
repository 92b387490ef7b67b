"""Pickles that fuzzing found trouble with, each with what the trouble was.

A find is added here with the fix, and is loaded by both unpicklers in every run of the test suite.
"""

from __future__ import annotations

FINDS: list[tuple[str, bytes]] = [
    ("a mark where BUILD wants a state", b"ctests.samples\nPlain\n)\x81(b."),
    ("memo index of a state dict that BUILD consumed", b"ctests.samples\nPlain\n)\x81}\x94(\x8c\x01aK\x01ubh\x00."),
    ("APPENDS on what a POP left", b"](N01e."),
]
