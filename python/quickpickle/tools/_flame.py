"""An explanation as a page: a flame graph to click through, that loads nothing from elsewhere.

Text of the pickle reaches the page as JSON with ``<`` escaped and is shown as text only, so that no pickle can put a
script into it.
"""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from quickpickle.tools._explain import Explanation, Part

__all__ = ["page"]

# Parts smaller than this share of the pickle are too thin to be seen or clicked.
_THINNEST: Final = 1 / 5000


def page(found: Explanation, title: str) -> str:
    """The whole page."""
    least = found.bytes * _THINNEST
    data = json.dumps(_shown(found.root, least), separators=(",", ":")).replace("<", "\\u003c")
    return _PAGE.replace("@TITLE@", escape(title)).replace("@TEXT@", escape(str(found))).replace("@DATA@", data)


def _shown(part: Part, least: float) -> dict[str, Any]:
    children = [_shown(child, least) for child in part.children if child.bytes >= least]
    return {"r": part.role, "k": part.kind, "n": part.count, "b": part.bytes, "o": part.offset, "c": children}


_PAGE: Final = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>@TITLE@</title>
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<style>
body { font: 14px system-ui, sans-serif; margin: 1.5em; color: #222; background: #fff; }
h1 { font-size: 1.2em; } #graph { position: relative; width: 100%; }
.part { position: absolute; height: 23px; line-height: 23px; overflow: hidden; white-space: nowrap; font-size: 12px;
  border: 1px solid #fff; box-sizing: border-box; padding: 0 4px; cursor: pointer; border-radius: 2px; }
.part:hover { filter: brightness(0.9); } #about { min-height: 1.5em; color: #555; }
pre { overflow: auto; font-size: 12px; }
</style></head><body>
<h1>@TITLE@</h1><p id="about">Click a part to look closer, the top one to go back.</p>
<div id="graph"></div><pre>@TEXT@</pre>
<script>
"use strict";
const root = @DATA@, graph = document.getElementById("graph"), about = document.getElementById("about");
const units = ["B", "KiB", "MiB", "GiB", "TiB"];
function size(count) {
  let unit = 0;
  while (count >= 1024 && unit < 4) { count /= 1024; unit++; }
  return (unit ? count.toFixed(1) : count) + " " + units[unit];
}
function color(text) {
  let hash = 0;
  for (const char of text) hash = (hash * 31 + char.codePointAt(0)) % 360;
  return `hsl(${hash}, 65%, 78%)`;
}
function link(part, up) { part.up = up; part.c.forEach(child => link(child, part)); }
link(root, null);
function show(top) {
  graph.textContent = "";
  let deepest = 0;
  const above = [];
  for (let part = top.up; part; part = part.up) above.unshift(part);
  above.forEach((part, level) => draw(part, level, 0, 1));
  (function lay(part, level, left, width) {
    draw(part, level, left, width);
    for (const child of part.c) {
      const share = width * child.b / part.b;
      if (share > 0.0008) lay(child, level + 1, left, share);
      left += share;
    }
  })(top, above.length, 0, 1);
  graph.style.height = (deepest + 1) * 24 + "px";
  function draw(part, level, left, width) {
    deepest = Math.max(deepest, level);
    const box = document.createElement("div");
    box.className = "part";
    box.style.cssText = `left:${left * 100}%;width:${width * 100}%;top:${level * 24}px;background:${color(part.k)}`;
    const share = (100 * part.b / root.b).toFixed(1);
    box.textContent = `${part.r} ${part.k} ${size(part.b)}`;
    box.title = `${part.r} ${part.k}, ${part.n} of them, ${size(part.b)}, ${share}%, first at byte ${part.o}`;
    box.onclick = () => show(part === top && part.up ? part.up : part);
    box.onmouseenter = () => { about.textContent = box.title; };
    graph.append(box);
  }
}
show(root);
</script></body></html>
"""
