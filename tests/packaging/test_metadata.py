"""What the installed distribution says of itself agrees with the project's files."""

import importlib.metadata
import re
import sys
from pathlib import Path

import quickpickle

ROOT = Path(__file__).resolve().parents[2]


def test_one_version_everywhere() -> None:
    """Its home is the workspace's Cargo.toml; CHANGELOG.md opens with it or with what comes next."""
    declared = re.search(r'^\[workspace\.package\]\nversion = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert declared is not None
    version = declared[1]
    assert quickpickle.__version__ == version
    assert importlib.metadata.version("quickpickle") == version
    headings = re.findall(r"^## \[?([^\]\s]+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] in {version, "Unreleased"}


def test_oldest_python_is_the_same_everywhere() -> None:
    metadata = importlib.metadata.metadata("quickpickle")
    oldest = metadata["Requires-Python"].removeprefix(">=")
    major, minor = oldest.split(".")
    assert sys.version_info[:2] >= (int(major), int(minor))
    assert f"OLDEST = ({major}, {minor})" in (ROOT / "scripts" / "interpreters.py").read_text()
    listed = {
        line.rpartition(" ")[2]
        for line in metadata.get_all("Classifier") or []
        if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", line)
    }
    assert oldest in listed
    assert f"{sys.version_info[0]}.{sys.version_info[1]}" in listed


def test_types_and_licences_are_installed() -> None:
    names = {Path(str(path)).name for path in importlib.metadata.files("quickpickle") or []}
    assert {"py.typed", "_native.pyi", "LICENSE-MIT", "LICENSE-APACHE"} <= names


def test_nothing_but_cloudpickle_has_to_be_installed() -> None:
    """That is for plain ``pickle.loads`` of what travels by value; nothing here imports it."""
    required = importlib.metadata.requires("quickpickle") or []
    assert [line.replace(" ", "") for line in required if "extra ==" not in line] == ["cloudpickle>=3.1"]
