"""The documents' examples do what they say, and their links lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


def python_blocks(path: Path) -> str:
    """All Python examples of a document, in order, as one program; line numbers stay those of the document."""
    program: list[str] = []
    inside = False
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            inside = line.strip() == "```python"
            program.append("")
        else:
            program.append(line if inside else "")
    return "\n".join(program)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_examples_run(path: Path, tmp_path: Path) -> None:
    """As a reader would: one after the other, from a file, in an empty folder."""
    program = python_blocks(path)
    if not program.strip():
        assert "```python" not in path.read_text(encoding="utf-8")
        return
    (tmp_path / "example.py").write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "example.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_readme_has_an_example() -> None:
    assert "import quickpickle" in python_blocks(ROOT / "README.md")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8"))
    missing = [
        t for t in targets if not t.startswith(("http:", "https:", "mailto:")) and not (path.parent / t).exists()
    ]
    assert missing == []
