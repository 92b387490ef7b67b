"""An explanation as text: the tree with bars, and below it what is worth knowing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from quickpickle.tools._explain import Explanation, Part, Repeated

__all__ = ["text"]

_Style: TypeAlias = Callable[..., str]
_UNITS: Final = ("KiB", "MiB", "GiB", "TiB")
_BAR: Final = 10


def text(found: Explanation, style: _Style = lambda text, *styles: text, lines: int = 40, levels: int = 10) -> str:
    """All of it.

    Args:
        found: what to show.
        style: makes text bold, dim and so on.
        lines: most lines of the tree.
        levels: most levels of the tree.
    """
    parts = [f"{size(found.bytes)} in {found.objects} objects", ""]
    parts += _tree(found, style, lines, levels)
    parts += ["", style("most bytes by themselves", "bold")]
    parts += [
        f"  {size(part.own):>10}  {100 * part.own / max(found.bytes, 1):5.1f}%  {printable(path) or 'the root'}  "
        + style(described(part), "dim")
        for path, part in found.top(8)
        if part.own
    ]
    by_value = found.by_value
    if by_value:
        parts += ["", style("functions and classes by value: their code is in the pickle", "bold")]
        parts += [f"  {size(part.bytes):>10}  {printable(part.kind)}" for part in by_value[:10]]
    if found.globals:
        parts += ["", style(f"by reference: {len(found.globals)} globals; loading imports", "bold")]
        for module in found.modules[:20]:
            names = [printable(named.name) for named in found.globals if named.module == module]
            more = f" and {len(names) - 6} more" if len(names) > 6 else ""
            parts.append(f"  {printable(module)}: {', '.join(names[:6])}{more}")
    parts += _repeated(found.shared, style, "shared: in the pickle once, used in several places")
    parts += _repeated(found.duplicates, style, "duplicates: equal, and in the pickle several times; share them")
    return "\n".join(parts)


def _repeated(found: tuple[Repeated, ...], style: _Style, title: str) -> Iterator[str]:
    if found:
        yield ""
        yield style(title, "bold")
    for one in found[:6]:
        kind = printable(one.kind)
        places = f"{one.count} places, first at byte {one.offset}"
        yield f"  {size(one.repeated_bytes):>10}  {kind} of {size(one.bytes)}, {places}"


def _tree(found: Explanation, style: _Style, lines: int, levels: int) -> list[str]:
    """Depth first, but what is large comes before what is deep: parts below a threshold are left out."""
    everything = sorted((part.bytes for _, part in found.walk()), reverse=True)
    least = everything[lines] if len(everything) > lines else 0
    made: list[str] = []

    def add(part: Part, indent: str, branch: str, level: int) -> None:
        share = part.bytes / max(found.bytes, 1)
        bar = ("#" * round(_BAR * share)).ljust(_BAR)
        role = f"{printable(part.role)} " if part.role else ""
        head = f"{size(part.bytes):>10} {style(bar, 'cyan')} "
        made.append(f"{head}{indent}{branch}{style(role, 'bold') if role else ''}{described(part)}")
        below = indent + ("" if not branch else "   " if branch == "`- " else "|  ")
        shown = [child for child in part.children if child.bytes > least] if level < levels else []
        left = len(part.children) - len(shown)
        for at, child in enumerate(shown):
            last = at == len(shown) - 1 and not left
            add(child, below, "`- " if last else "|- ", level + 1)
        if left:
            rest = part.bytes - part.own - sum(child.bytes for child in shown)
            made.append(f"{size(rest):>10} {' ' * _BAR} {below}`- {style(f'{left} smaller', 'dim')}")

    add(found.root, "", "", 0)
    return made


def described(part: Part) -> str:
    """What parts are, and how many."""
    if part.count == 1:
        return printable(part.kind)
    return f"{printable(part.kind)} x {part.count}, largest {size(part.largest)} at byte {part.largest_offset}"


def printable(text: str, most: int = 70) -> str:
    """Text from the pickle, fit for a terminal."""
    shown = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text[: most + 1])
    return f"{shown[:most]}..." if len(shown) > most else shown


def size(count: int) -> str:
    """Bytes as people say them."""
    if count < 1024:
        return f"{count} B"
    power = min((count.bit_length() - 1) // 10, len(_UNITS))
    return f"{count / 1024**power:.1f} {_UNITS[power - 1]}"
