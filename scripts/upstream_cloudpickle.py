"""Fetch cloudpickle's own test suite and run it, over stock cloudpickle or over us in its name.

python scripts/upstream_cloudpickle.py [--stock] [--junit FILE] [PYTEST ARGUMENT ...]

The suite is in Debian's source package, which comes from the mirror that this machine's apt uses. None of
it is kept in this repository: it lies under target/upstream, and is fetched once. Over us, ``cloudpickle``
means quickpickle in the test process and in all Python processes that it starts, by what
``quickpickle.install(children=True)`` sets. Run it with an interpreter that has quickpickle, cloudpickle,
pytest, psutil and numpy.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "upstream"


def debian_mirror() -> str:
    """The first mirror of Debian that apt is set up with."""
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages", "Origin: Debian"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    for site in listed:
        if site.rstrip("/").endswith("/debian"):
            return site.rstrip("/")
    raise SystemExit("apt knows no mirror of Debian here")


def fetch() -> Path:
    """Return the folder of the suite; from Debian the first time."""
    found = sorted(TARGET.glob("cloudpickle-*/tests"))
    if found:
        return found[-1]
    TARGET.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        # A package list of its own: that of the machine stays as it is.
        (folder / "lists" / "partial").mkdir(parents=True)
        (folder / "cache" / "archives" / "partial").mkdir(parents=True)
        (folder / "sources.list").write_text(f"deb-src {debian_mirror()} sid main\n")
        options = [
            f"-oDir::Etc::SourceList={folder}/sources.list",
            "-oDir::Etc::SourceParts=/dev/null",
            f"-oDir::State::Lists={folder}/lists",
            f"-oDir::Cache={folder}/cache",
            "-oAPT::Sandbox::User=",
        ]
        subprocess.run(["apt-get", "-qq", *options, "update"], check=True, cwd=folder)
        # Other parts of the source package may be missing from a mirror, and are not needed.
        subprocess.run(["apt-get", "-qq", *options, "source", "--download-only", "cloudpickle"], cwd=folder)
        archives = sorted(folder.glob("cloudpickle_*.orig.tar.*"))
        if not archives:
            raise SystemExit("the source package of cloudpickle cannot be fetched")
        with tarfile.open(archives[-1]) as archive:
            # Not the package itself: the installed one is to be found.
            suite = [member for member in archive.getmembers() if "/tests" in member.name]
            # The oldest Pythons of Debian 12 do not know the parameter; the archive is signed.
            safely: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            archive.extractall(TARGET, members=suite, **safely)
    found = sorted(TARGET.glob("cloudpickle-*/tests"))
    if not found:
        raise SystemExit("there are no tests in the source package")
    return found[-1]


def main() -> int:
    """Fetch, then run pytest in the suite's folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stock", action="store_true", help="run over cloudpickle itself")
    parser.add_argument("--junit", type=Path, help="write the results to this file")
    options, rest = parser.parse_known_args()
    suite = fetch()
    environment = dict(os.environ)
    if not options.stock:
        from quickpickle import standin

        paths = [standin.SITE, environment.get("PYTHONPATH", "")]
        environment[standin.ENVIRONMENT] = "cloudpickle"
        environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", "-s", "."]
    if options.junit is not None:
        command.append(f"--junitxml={options.junit.resolve()}")
    # The suite's folders are installed by its own instructions; on the path they do as well.
    paths = [environment.get("PYTHONPATH", ""), str(suite / "cloudpickle_testpkg")]
    environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    return subprocess.run([*command, *rest], cwd=suite, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
