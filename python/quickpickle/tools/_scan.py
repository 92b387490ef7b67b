"""Whether files are safe to load: every pickle in them is scanned, however it is packed, and nothing is run.

The verdict on a pickle comes from Rust; here files and archives are opened and their pickles found. What must stay
true: content decides and never a name, and what could not be looked into is never ``ok``.
"""

from __future__ import annotations

import fnmatch
import mmap
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from quickpickle import _native
from quickpickle.tools._containers import Opaque, inside
from quickpickle.tools._input import Data

__all__ = ["Finding", "GlobalUse", "Scan", "Verdict", "rules", "scan", "scan_file", "scan_files"]

# Archives in archives in archives.
_DEPTH: Final = 6
# Bytes that a compressed member may grow to.
MOST_BYTES: Final = 2 << 30
# Names by which a file claims to be a pickle, so that being none is worth a word.
_CLAIMS: Final = (".pkl", ".pickle", ".pck", ".p", ".joblib", ".dill", ".cloudpickle", ".pt", ".pth", ".ckpt", ".mdl")


class Verdict(Enum):
    """What to think of something."""

    OK = "ok"
    """Plain data, and calls that only make data."""
    UNKNOWN = "unknown"
    """It names something nobody has judged, or cannot be looked into."""
    DANGEROUS = "dangerous"
    """It runs or reaches what a loader should not, or hides what it does."""

    def __lt__(self, other: Verdict) -> bool:
        order = list(Verdict)
        return order.index(self) < order.index(other)

    def __ge__(self, other: Verdict) -> bool:
        return not self < other


@dataclass(frozen=True)
class Finding:
    """One reason for a verdict."""

    verdict: Verdict
    rule: str
    """Which kind of thing it is; ``rules()`` has all kinds."""
    message: str
    """What was found."""
    member: str
    """Where in the file: names of members, with ``!`` between archives; empty for the file itself."""
    offset: int
    """The byte of the operation, in what the member holds."""
    count: int = 1
    """How often."""


@dataclass(frozen=True)
class GlobalUse:
    """A global that a pickle names."""

    module: str
    name: str
    verdict: Verdict
    member: str
    offset: int
    count: int
    """How often it is named."""
    calls: int
    """How often it is called."""


@dataclass
class Scan:
    """What was found in one file."""

    path: str
    verdict: Verdict = Verdict.OK
    findings: list[Finding] = field(default_factory=list)
    """Worst first."""
    globals: list[GlobalUse] = field(default_factory=list)
    pickles: int = 0
    """Complete pickles that were found."""
    kinds: list[str] = field(default_factory=list)
    """What the file was taken for."""


def rules() -> dict[str, str]:
    """Every rule, with what it means."""
    known = dict(_native.tools_scan_rules())
    known["not-looked-into"] = "There is content that cannot be read here, whatever it is."
    return known


def scan(data: Data, *, name: str = "", allow: Iterable[str] = (), max_bytes: int = MOST_BYTES) -> Scan:
    """Say whether the pickles in some bytes are safe to load. Nothing is run and nothing is imported.

    Args:
        data: a pickle, several in a row, or any archive of them.
        name: what to call it.
        allow: patterns of globals that are fine, such as ``"sklearn.*"``. What is dangerous stays so.
        max_bytes: the largest number of bytes that a compressed member may grow to.
    """
    looked = _Looking(Scan(name), tuple(allow), max_bytes)
    looked.at(memoryview(data), "", name, 0)
    return looked.finish()


def scan_file(path: str | os.PathLike[str], *, allow: Iterable[str] = (), max_bytes: int = MOST_BYTES) -> Scan:
    """As ``scan``, of a file.

    Raises:
        OSError: it cannot be read.
    """
    name = os.fspath(path)
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size < 64 << 20:
            return scan(file.read(), name=name, allow=allow, max_bytes=max_bytes)
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as view:
            return scan(view, name=name, allow=allow, max_bytes=max_bytes)


def scan_files(
    paths: Iterable[str | os.PathLike[str]],
    *,
    allow: Iterable[str] = (),
    max_bytes: int = MOST_BYTES,
    failed: Callable[[str, OSError], None] | None = None,
) -> Iterator[Scan]:
    """Scan files, and all files below folders; links to folders are not followed.

    Args:
        paths: files and folders.
        allow: as for ``scan``.
        max_bytes: as for ``scan``.
        failed: told of each file that cannot be read; without it the error is raised.
    """
    allowed = tuple(allow)
    for path in paths:
        for file in _files(os.fspath(path)):
            try:
                yield scan_file(file, allow=allowed, max_bytes=max_bytes)
            except OSError as error:
                if failed is None:
                    raise
                failed(file, error)


def _files(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            file = os.path.join(folder, name)
            # No pipes or devices, which might never end.
            if os.path.isfile(file):
                yield file


class _Looking:
    """A scan of one file under way."""

    def __init__(self, found: Scan, allow: tuple[str, ...], most: int) -> None:
        self.found = found
        self.allow = allow
        self.most = most

    def at(self, data: memoryview, member: str, name: str, depth: int) -> None:
        """Look at content that may be anything."""
        for kind, contents in inside(data, self.most):
            self.found.kinds.append(f"{kind} ({member})" if member else kind)
            if depth >= _DEPTH:
                self.opaque(f"{kind}: archives are nested more than {_DEPTH} deep", member)
                continue
            try:
                for inner, content in contents:
                    path = "!".join(part for part in (member, inner) if part)
                    with memoryview(content) as view:
                        self.at(view, path, inner or name, depth + 1)
            except Opaque as error:
                self.opaque(f"{kind}: {error}", member)
        self.pickle(data, member, name)

    def opaque(self, message: str, member: str) -> None:
        self.found.findings.append(Finding(Verdict.UNKNOWN, "not-looked-into", message, member, 0))

    def pickle(self, data: memoryview, member: str, name: str) -> None:
        report = _native.tools_scan(data)
        verdict = Verdict(report["verdict"])
        headed = len(data) > 2 and data[0] == 0x80 and data[1] <= 5
        claims = headed or name.lower().endswith(_CLAIMS)
        complete = report["pickles"] > 0 and report["operations"] > 1
        called = any(calls for *_, calls in report["globals"])
        # Text may begin with what looks like operations. It counts once it is complete, or does something dangerous.
        if not (claims or complete or (verdict is Verdict.DANGEROUS and called)):
            return
        if self.found.kinds and not complete and not called and not headed:
            return  # what has been opened as something else need not be a pickle too
        self.found.pickles += report["pickles"]
        if report["error"] is not None:
            message, offset = report["error"]
            if data[:1]:
                message = f"no complete pickle: {message}"
                self.found.findings.append(Finding(Verdict.UNKNOWN, "malformed", message, member, offset))
        for found_verdict, rule, offset, message, count in report["findings"]:
            finding = Finding(Verdict(found_verdict), rule, message, member, offset, count)
            if not self.allowed(finding):
                self.found.findings.append(finding)
        for module, global_name, judged, offset, count, calls in report["globals"]:
            use = GlobalUse(module, global_name, Verdict(judged), member, offset, count, calls)
            self.found.globals.append(use)

    def allowed(self, finding: Finding) -> bool:
        name = finding.message.removesuffix(" is on no list")
        return finding.rule == "unknown-global" and any(fnmatch.fnmatchcase(name, rule) for rule in self.allow)

    def finish(self) -> Scan:
        order = list(Verdict)
        self.found.findings.sort(key=lambda finding: -order.index(finding.verdict))
        if self.found.findings:
            self.found.verdict = self.found.findings[0].verdict
        return self.found
