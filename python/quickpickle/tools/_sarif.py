"""Scans as SARIF 2.1.0, the format in which code hosts take findings."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import quote

from quickpickle.tools._scan import Finding, Scan, Verdict, rules

__all__ = ["sarif"]

_LEVELS: Final = {Verdict.DANGEROUS: "error", Verdict.UNKNOWN: "warning", Verdict.OK: "note"}


def sarif(scans: Iterable[Scan], version: str) -> dict[str, Any]:
    """One run with a result for each finding, as a document for ``json.dump``."""
    known = rules()
    names = list(known)
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "quickpickle scan",
                        "version": version,
                        "rules": [{"id": name, "shortDescription": {"text": text}} for name, text in known.items()],
                    }
                },
                "results": [_result(scan, finding, names) for scan in scans for finding in scan.findings],
            }
        ],
    }


def _result(scan: Scan, finding: Finding, names: list[str]) -> dict[str, Any]:
    place: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(scan.path.replace(os.sep, "/"))},
            "region": {"byteOffset": finding.offset if not finding.member else 0, "byteLength": 1},
        }
    }
    if finding.member:
        place["logicalLocations"] = [{"fullyQualifiedName": finding.member, "kind": "member"}]
    return {
        "ruleId": finding.rule,
        "ruleIndex": names.index(finding.rule),
        "level": _LEVELS[finding.verdict],
        "message": {"text": finding.message},
        "locations": [place],
        "properties": {"verdict": finding.verdict.value, "byteInMember": finding.offset, "count": finding.count},
    }
