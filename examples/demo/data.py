"""Real tables, in the shapes in which programs hold them when they pickle them.

The tables come with the package bokeh-sampledata: 9,994 orders of a shop (text, whole numbers and
amounts) and 52,281 readings of a glucose sensor (each with its time). Nothing here knows of pickle.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from bokeh_sampledata import glucose, sample_superstore

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass
class Order:
    """One line of the shop's order book; amounts in US dollars."""

    ship_mode: str
    segment: str
    country: str
    city: str
    state: str
    postal_code: int
    region: str
    category: str
    sub_category: str
    sales: float
    quantity: int
    discount: float
    profit: float


class Reading(NamedTuple):
    """One reading of the sensor: when, its current (missing now and then), glucose in mg/dL."""

    time: datetime.datetime
    current: float | None
    glucose: int


def order_table() -> pd.DataFrame:
    """The order book as pandas reads it."""
    table: pd.DataFrame = sample_superstore.data.copy()
    table.columns = table.columns.str.lower().str.replace("[ -]", "_", regex=True)
    return table


def order_dicts() -> list[dict[str, Any]]:
    """The order book as a list of dicts, the way a JSON or database client hands it out."""
    return [{str(key): value for key, value in row.items()} for row in order_table().to_dict("records")]


def order_instances() -> list[Order]:
    """The order book as instances of a dataclass."""
    return [Order(**row) for row in order_dicts()]


def order_numbers() -> npt.NDArray[np.float64]:
    """The numeric columns of the order book as one NumPy array."""
    table = order_table()
    return np.column_stack([table[name].to_numpy("float64") for name in ("sales", "quantity", "discount", "profit")])


def readings() -> list[Reading]:
    """The sensor's readings as named tuples that hold datetimes."""
    table: pd.DataFrame = glucose.data
    return [
        Reading(time.to_pydatetime(), None if current == "nil" else float(current), int(level))
        for time, current, level in table.itertuples()
    ]
