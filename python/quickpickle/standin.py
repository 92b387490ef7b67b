"""Standing in for ``cloudpickle``, and asked for ``pickle``, in a process: for libraries that import them.

``install()`` makes ``import cloudpickle`` give :mod:`quickpickle.cloudpickle`, and rebinds what modules
imported before have taken from it; ``uninstall()`` puts everything back; ``status()`` tells what is in
place. With ``pickle=True`` the functions and classes of the module ``pickle`` are ours too, and so is
what :mod:`multiprocessing` and :mod:`concurrent.futures` send their work with. Nothing is changed that
is not written down in a layer, to be undone in reverse; a name that somebody else has changed meanwhile
is left to them.

Left to others: ``quickpickle run`` (``cli/run.py``) does this for a whole script. What must stay true:
importing this module changes nothing; ``pickle`` itself stays importable and complete.
"""

from __future__ import annotations

import copyreg
import functools
import importlib
import io
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import ModuleType, TracebackType
from typing import Any, Final

from quickpickle import Pickler, loads

__all__ = ["StandIn", "Status", "install", "status", "uninstall"]

_ABSENT: Final = object()

_PACKAGE: Final = "cloudpickle"
# The modules of the package in which payloads and programs look for its names.
_INNER: Final = ("cloudpickle", "cloudpickle_fast")

# What children look at: see _standin_site/sitecustomize.py.
ENVIRONMENT: Final = "QUICKPICKLE_STANDIN"
SITE: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_standin_site")

# The names of the module pickle that are ours as well.
_PICKLE_NAMES: Final = ("Pickler", "Unpickler", "dump", "dumps", "load", "loads")

_lock = threading.RLock()
_layers: list[StandIn] = []


@dataclass(frozen=True)
class Status:
    """What stands in for what, as :func:`status` found it."""

    cloudpickle: bool
    """Whether ``import cloudpickle`` gives quickpickle."""
    pickle: bool
    """Whether the module ``pickle`` has our functions and classes."""
    children: bool
    """Whether Python processes started from this one do the same."""
    rebound: tuple[str, ...] = ()
    """The names in other modules that mean ours now, each as ``module.name``, in the order of change."""

    def __bool__(self) -> bool:
        return self.cloudpickle or self.pickle


@dataclass
class StandIn:
    """One installation: what it changed, and how it is undone. A context manager that undoes it."""

    cloudpickle: bool
    pickle: bool
    children: bool
    rebound: list[str] = field(default_factory=list)
    _undo: list[Callable[[], None]] = field(default_factory=list, repr=False)

    def __enter__(self) -> StandIn:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.uninstall()

    def uninstall(self) -> None:
        """Undo this installation, and those made after it; undoing twice is fine."""
        with _lock:
            while self in _layers:
                _layers.pop()._undo_all()

    def _undo_all(self) -> None:
        while self._undo:
            self._undo.pop()()

    def _rebind(self, where: dict[str, Any], name: str, value: Any, label: str) -> None:
        old = where.get(name, _ABSENT)
        where[name] = value
        self.rebound.append(label)

        def undo() -> None:
            if where.get(name, _ABSENT) is value:
                if old is _ABSENT:
                    del where[name]
                else:
                    where[name] = old

        self._undo.append(undo)

    def _set_module(self, name: str, module: ModuleType) -> None:
        self._rebind(sys.modules, name, module, f"sys.modules[{name!r}]")

    def _set_environment(self, name: str, value: str) -> None:
        old = os.environ.get(name)
        os.environ[name] = value

        def undo() -> None:
            if os.environ.get(name) == value:
                if old is None:
                    del os.environ[name]
                else:
                    os.environ[name] = old

        self._undo.append(undo)


def install(*, cloudpickle: bool = True, pickle: bool = False, children: bool = False) -> StandIn:
    """Stand in for cloudpickle, and with ``pickle`` for the standard library's pickle, in this process.

    cloudpickle: ``import cloudpickle`` gives :mod:`quickpickle.cloudpickle` from now on, and modules that
        have imported it before, or functions and classes from it, are given ours. Loky's pickler is set
        to ours where loky is imported.
    pickle: the functions and classes of the module ``pickle`` are ours, and so are those that modules
        have imported from it, and the pickler of multiprocessing, which concurrent.futures uses too.
    children: Python processes that this one starts do the same, through ``PYTHONPATH`` and an
        environment variable.

    Returns what was done, which is also a context manager that undoes it. Installing again adds what is
    new. Objects that keep a pickler of their own, and classes derived from cloudpickle's or pickle's
    before, are not changed. Raises ``ImportError`` if there is no by-value pickler in this build.
    """
    with _lock:
        layer = StandIn(cloudpickle, pickle, children)
        _layers.append(layer)
        try:
            if cloudpickle:
                _stand_in_for_cloudpickle(layer)
            if pickle:
                _stand_in_for_pickle(layer)
            if children:
                _stand_in_in_children(layer)
        except BaseException:
            layer.uninstall()
            raise
        return layer


def uninstall() -> None:
    """Undo all installations."""
    with _lock:
        while _layers:
            _layers.pop()._undo_all()


def status() -> Status:
    """What stands in for what at the moment."""
    import pickle

    import quickpickle

    with _lock:
        return Status(
            cloudpickle=_stands_in(sys.modules.get(_PACKAGE)),
            pickle=pickle.dumps is quickpickle.dumps,
            children=ENVIRONMENT in os.environ,
            rebound=tuple(label for layer in _layers for label in layer.rebound),
        )


# What marks a module that stands in for one of cloudpickle's. Such a module is of no class of its own, because
# only plain modules are pickled by name.
_MARK: Final = "__standing_in__"


def _stands_in(module: object) -> bool:
    return isinstance(module, ModuleType) and _MARK in vars(module)


def _alias(name: str) -> ModuleType:
    """A module of the package cloudpickle whose names are those of quickpickle.cloudpickle."""
    ours = importlib.import_module("quickpickle.cloudpickle")
    made = ModuleType(name, ours.__doc__)
    made.__dict__.update({key: value for key, value in vars(ours).items() if not _is_module_attribute(key)})

    def ask(attribute: str) -> Any:
        if attribute in ("__path__", "__file__"):
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        return getattr(ours, attribute)

    def names() -> list[str]:
        return sorted({*vars(made), *dir(ours)})

    made.__dict__.update({"__getattr__": ask, "__dir__": names, _MARK: "quickpickle"})
    return made


def _is_module_attribute(name: str) -> bool:
    kept = ("__version__", "__all__")
    return name == "__getattr__" or (name.startswith("__") and name.endswith("__") and name not in kept)


def _stand_in_for_cloudpickle(layer: StandIn) -> None:
    if _stands_in(sys.modules.get(_PACKAGE)):
        return
    package = _alias(_PACKAGE)
    package.__path__ = []
    modules = {_PACKAGE: package}
    for inner in _INNER:
        modules[f"{_PACKAGE}.{inner}"] = _alias(f"{_PACKAGE}.{inner}")
        setattr(package, inner, modules[f"{_PACKAGE}.{inner}"])
    # Found before sys.modules is changed: what others have taken from the modules that are replaced.
    replaced = {}
    for name, module in modules.items():
        stock = sys.modules.get(name)
        if stock is not None:
            replaced[id(stock)] = (stock, module)
            replaced.update(_counterparts(stock, module))
    _rebind_everywhere(layer, replaced)
    for name, module in modules.items():
        layer._set_module(name, module)
    layer._undo.insert(0, lambda: _rebind_back(modules))
    _stand_in_for_loky(layer)


def _counterparts(stock: ModuleType, ours: ModuleType) -> dict[int, tuple[Any, Any]]:
    """The functions and classes that are the module's own, and ours of the same name; by identity."""
    found = {}
    for name, value in vars(stock).items():
        if getattr(value, "__module__", None) != stock.__name__ or not callable(value):
            continue
        counterpart = getattr(ours, name, None)
        if counterpart is not None and counterpart is not value:
            found[id(value)] = (value, counterpart)
    return found


def _other_modules() -> Iterator[ModuleType]:
    for name, module in list(sys.modules.items()):
        root = name.partition(".")[0]
        if isinstance(module, ModuleType) and root not in (_PACKAGE, "quickpickle", "_pickle"):
            yield module


def _rebind_everywhere(layer: StandIn, replaced: dict[int, tuple[Any, Any]]) -> None:
    """Give all modules the new objects where they hold the old ones, by identity."""
    if not replaced:
        return
    for module in _other_modules():
        # What a module says of itself is not looked at: some answer with anything.
        names = vars(module)
        for name, value in list(names.items()):
            if id(value) in replaced and replaced[id(value)][0] is value:
                layer._rebind(names, name, replaced[id(value)][1], f"{module.__name__}.{name}")
            elif type(value) is functools.partial and id(value.func) in replaced:
                new = functools.partial(replaced[id(value.func)][1], *value.args, **value.keywords)
                layer._rebind(names, name, new, f"{module.__name__}.{name}")


def _rebind_back(modules: dict[str, Any]) -> None:
    """After undoing: modules that were imported meanwhile hold our aliases; give them the real modules."""
    aliases = {id(alias): name for name, alias in modules.items()}
    for module in _other_modules():
        names = vars(module)
        for name, value in list(names.items()):
            if id(value) in aliases and modules[aliases[id(value)]] is value:
                try:
                    names[name] = importlib.import_module(aliases[id(value)])
                except ImportError:
                    return


def _stand_in_for_loky(layer: StandIn) -> None:
    """Set loky's pickler, which its workers are told of, where loky is imported."""
    for name in ("loky.backend.reduction", "joblib.externals.loky.backend.reduction"):
        reduction = sys.modules.get(name)
        if reduction is None:
            continue
        before = reduction.get_loky_pickler_name()
        reduction.set_loky_pickler("quickpickle.cloudpickle")
        layer.rebound.append(f"{name}: set_loky_pickler")

        def undo(reduction: Any = reduction, before: str = before) -> None:
            if reduction.get_loky_pickler_name() == "quickpickle.cloudpickle":
                reduction.set_loky_pickler(before)

        layer._undo.append(undo)


def _stand_in_for_pickle(layer: StandIn) -> None:
    import pickle

    import quickpickle

    if pickle.dumps is quickpickle.dumps:
        return
    # Imported first, so that its own pickler is derived from the standard one and can be put back.
    importlib.import_module("multiprocessing.reduction")
    replaced = {}
    for name in _PICKLE_NAMES:
        old, new = getattr(pickle, name), getattr(quickpickle, name)
        replaced[id(old)] = (old, new)
    reduction: Any = sys.modules["multiprocessing.reduction"]
    replaced[id(reduction.ForkingPickler)] = (reduction.ForkingPickler, _forking_pickler(reduction.ForkingPickler))
    _rebind_everywhere(layer, replaced)


class _ForkingPickler(Pickler):
    """As multiprocessing.reduction.ForkingPickler, over ours. Its reducers are those of the standard one."""

    _extra_reducers: dict[type, Callable[[Any], Any]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.dispatch_table = {**copyreg.dispatch_table, **self._extra_reducers}

    @classmethod
    def register(cls, kind: type, reduce: Callable[[Any], Any], /) -> None:
        """Register a reduce function for a type."""
        cls._extra_reducers[kind] = reduce

    @classmethod
    def dumps(cls, obj: Any, protocol: int | None = None) -> memoryview:
        """The pickle of an object, as a view of memory."""
        buffer = io.BytesIO()
        cls(buffer, protocol).dump(obj)
        return buffer.getbuffer()

    @staticmethod
    def loads(data: Any, /) -> Any:
        """The object of a pickle."""
        return loads(data)


def _forking_pickler(stock: Any) -> type:
    """The pickler of multiprocessing over ours, with the reducers that have been and will be registered with it."""
    names = {"_extra_reducers": stock._extra_reducers, "__module__": stock.__module__, "__doc__": stock.__doc__}
    return type(stock.__name__, (_ForkingPickler,), names)


def _stand_in_in_children(layer: StandIn) -> None:
    wanted = ",".join(name for name, value in (("cloudpickle", layer.cloudpickle), ("pickle", layer.pickle)) if value)
    layer._set_environment(ENVIRONMENT, wanted)
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if SITE not in paths:
        layer._set_environment("PYTHONPATH", os.pathsep.join([SITE, *paths]))
