"""Tools that read pickles without running them: list, count, explain, scan, optimise.

Everything here looks at bytes and never imports, looks up or calls what a pickle names, so it is safe on pickles that
nobody vouches for. The work is done in Rust; the command line shows the same things to people. What is malformed is a
:class:`MalformedPickle`, which says where.
"""

from __future__ import annotations

from quickpickle.tools._explain import Explanation, Named, Part, Repeated, explain
from quickpickle.tools._input import Data, MalformedPickle
from quickpickle.tools._listing import dis, optimize
from quickpickle.tools._sarif import sarif
from quickpickle.tools._scan import Finding, GlobalUse, Scan, Verdict, rules, scan, scan_file, scan_files
from quickpickle.tools._statistics import OpcodeCount, Statistics, stats

__all__ = [
    "Data",
    "Explanation",
    "Finding",
    "GlobalUse",
    "MalformedPickle",
    "Named",
    "OpcodeCount",
    "Part",
    "Repeated",
    "Scan",
    "Statistics",
    "Verdict",
    "dis",
    "explain",
    "optimize",
    "rules",
    "sarif",
    "scan",
    "scan_file",
    "scan_files",
    "stats",
]
