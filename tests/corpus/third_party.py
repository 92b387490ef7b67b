"""numpy and pandas objects, where those are installed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

try:
    import numpy as np
except ImportError:  # pragma: no cover - the test extra installs it
    np = None  # type: ignore[assignment]
try:
    import pandas as pd
except ImportError:  # pragma: no cover
    pd = None


def values() -> Iterator[tuple[str, Any]]:
    """Yield the objects, or nothing where the library is missing."""
    if np is not None:
        yield from _numpy()
    if pd is not None:
        yield from _pandas()


def _numpy() -> Iterator[tuple[str, Any]]:
    grid = np.arange(12.0).reshape(3, 4)
    yield "array", grid
    yield "array fortran", np.asfortranarray(grid)
    yield "array view", grid[::2, 1:]
    yield "array transposed", grid.T
    yield "array empty", np.array([])
    yield "array 0d", np.array(5)
    yield "array large", np.arange(20_000, dtype="u4")
    yield "array objects", np.array([1, "a", None, [2]], dtype=object)
    yield "array strings", np.array(["a", "bcd"])
    yield "array bytes", np.array([b"a", b"bcd"])
    yield "array records", np.array([(1, 2.5)], dtype=[("i", "i4"), ("f", "f8")])
    yield "array big endian", np.arange(3, dtype=">i4")
    yield "array bool", np.array([True, False])
    yield "array complex", np.array([1j, 2])
    yield "array datetimes", np.array(["2024-01-01", "NaT"], dtype="M8[ns]")
    yield "array readonly", _readonly(np.arange(3))
    yield "array masked", np.ma.masked_array([1, 2, 3], mask=[0, 1, 0])
    yield "array shared", [grid, grid]
    yield "scalars", [np.float64(1.5), np.int64(3), np.bool_(True), np.str_("s"), np.float32("nan")]
    yield "scalars many", [np.float64(i) for i in range(100)]
    yield "datetime64", [np.datetime64("2024-01-01T00:00:00"), np.timedelta64(5, "s")]
    yield "dtypes", [np.dtype("f8"), np.dtype([("a", "i4"), ("b", "S3")]), np.dtype("M8[us]")]
    yield "functions", [np.sin, np.mean, np.add, np.ndarray, np.float64]
    yield "generator state", np.random.RandomState(3).get_state()


def _readonly(array: Any) -> Any:
    array.flags.writeable = False
    return array


def _pandas() -> Iterator[tuple[str, Any]]:
    frame = pd.DataFrame({"i": [1, 2, 3], "f": [0.5, None, 2.5], "s": ["a", "b", None]})
    yield "frame", frame
    yield "frame empty", pd.DataFrame()
    yield "frame indexed", frame.set_index("i")
    yield "frame mixed", frame.assign(t=pd.date_range("2024-01-01", periods=3), c=pd.Categorical(list("xyx")))
    yield "series", pd.Series([1, 2, 3], name="n")
    yield "series strings", pd.Series(["a", "b"], index=["x", "y"])
    yield "indexes", [pd.Index([1, 2]), pd.RangeIndex(5), pd.Index(["a"]), pd.DatetimeIndex(["2024-01-01"])]
    yield "multi index", pd.MultiIndex.from_tuples([(1, "a"), (2, "b")])
    yield "timestamps", [pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-01", tz="UTC"), pd.NaT]
    yield "timedelta", [pd.Timedelta("1s"), pd.Interval(0, 1), pd.Period("2024-01")]
    yield "nullable", pd.array([1, None], dtype="Int64")
