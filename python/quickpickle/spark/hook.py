"""Says when modules have been imported: for what is to be changed in modules that come later.

Left to others: what is done then. What must stay true: a module is imported as it would be without us, by the same
loader, with the same ``__spec__`` and ``__loader__``; and whatever a callback raises stays with the callback.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

__all__ = ["Watch"]


class Watch(importlib.abc.MetaPathFinder):
    """A finder that calls back when one of its modules has been imported."""

    def __init__(self) -> None:
        self._callbacks: dict[str, Callable[[], None]] = {}

    def when_imported(self, name: str, callback: Callable[[], None]) -> None:
        """Call ``callback`` now if the module is there, else as soon as it has been imported."""
        module = sys.modules.get(name)
        spec = getattr(module, "__spec__", None)
        if module is not None and not getattr(spec, "_initializing", False):
            callback()
            return
        self._callbacks[name] = callback
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def stop(self) -> None:
        """Watch nothing any more."""
        self._callbacks.clear()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """As the other finders, with a loader that tells us; None for modules nobody asked for."""
        callback = self._callbacks.get(fullname)
        if callback is None:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if find is None or finder is self:
                continue
            spec: importlib.machinery.ModuleSpec | None = find(fullname, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Telling(spec.loader, lambda: self._imported(fullname))
                return spec
        return None

    def _imported(self, name: str) -> None:
        callback = self._callbacks.pop(name, None)
        if not self._callbacks:
            self.stop()
        if callback is not None:
            callback()


class _Telling(importlib.abc.Loader):
    """The loader it stands for, which calls back afterwards. In place only until the module runs."""

    def __init__(self, loader: Any, done: Callable[[], None]) -> None:
        self._loader = loader
        self._done = done

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._done()
