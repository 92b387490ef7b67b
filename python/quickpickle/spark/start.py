"""Starts quickpickle in a Python process once that imports PySpark; copied into site-packages by ``enable``.

The copy is imported by a ``.pth`` file whenever an interpreter of the environment starts, so it imports nothing and
puts one finder into ``sys.meta_path``, which goes away when ``pyspark`` is looked for. Left to others: what is done
then (``quickpickle.spark.patching``). What must stay true: nothing here raises into an interpreter's start or into the
import of PySpark; and nothing here needs changing when quickpickle does, because copies stay behind.
"""

import os
import sys


class QuickpickleFinder:
    """Finds nothing, but learns of it when PySpark is looked for."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """None, so that the other finders find the module."""
        if name == "pyspark":
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            start()


def watch() -> None:
    """Wait for PySpark, unless the environment says no."""
    if os.environ.get("QUICKPICKLE_SPARK", "").strip().lower() in ("0", "off", "no", "false"):
        return
    if not any(type(finder).__name__ == "QuickpickleFinder" for finder in sys.meta_path):
        sys.meta_path.insert(0, QuickpickleFinder())


def start() -> None:
    """Have PySpark's modules patched as they are imported; whatever goes wrong leaves them as they are and is said."""
    try:
        from quickpickle.spark import patching

        patching.start()
    except Exception as error:
        try:
            import warnings

            told = f"quickpickle is enabled for PySpark but cannot start, so PySpark runs without it: {error!r}"
            warnings.warn(told, RuntimeWarning, stacklevel=2)
        except Exception:
            return


try:  # noqa: SIM105 - contextlib would be one import more
    watch()
except Exception:
    pass
