"""FOR SYSTEM_TIME AS OF a time, and FOR SYSTEM_VERSION AS OF a snapshot, of the tables and views in a query's FROM.

The time may be a text, seconds since 1970, or NOW() less an interval (RisingWave documentation, "Time travel queries").
Only the lake knows the newest snapshot at that time, so planning has two steps: `points` returns the points in time of
a statement, and `Environment.versions` has the snapshot of each when the statement is planned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.trees import position_of

SNAPSHOT = "snapshot"  # the mark on a table that is read at a snapshot


@dataclass(frozen=True)
class Point:
    """A point in time: the number of a snapshot, or DuckDB's text of a time, in microseconds since 1970.

    `key` is its key in `Environment.versions`.
    """

    key: str
    version: int | None
    time: str | None
    position: int | None


def points(tree: exp.Expr | None) -> dict[str, Point]:
    """Return the points in time of a query by their keys. Raises Error 0A000 or 22023 for an invalid one."""
    if tree is None or isinstance(tree, exp.Values):  # may be long
        return {}
    found = (_point(table) for table in tree.find_all(exp.Table))
    return {point.key: point for point in found if point is not None}


def at_versions(tree: exp.Expr, versions: Mapping[str, int]) -> exp.Expr:
    """Return the tree, changed in place, with marks on its tables instead of their points in time.

    Raises Error 0A000 for a statement whose points have not been looked up.
    """
    for table in tree.find_all(exp.Table):
        point = _point(table)
        if point is None:
            continue
        if point.key not in versions:
            message = "FOR SYSTEM_TIME AS OF is not supported in this statement"
            raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=point.position)
        table.meta[SNAPSHOT] = versions[point.key]
        table.set("version", None)
    return tree


def _point(table: exp.Table) -> Point | None:
    clause = table.args.get("version")
    if not isinstance(clause, exp.Version):
        return None
    position, value = position_of(table), clause.expression
    if clause.args.get("kind") != "AS OF" or value is None:
        raise _refused(position)
    key = clause.sql(dialect="postgres")
    if str(clause.this).upper() == "VERSION":
        if not (isinstance(value, exp.Literal) and value.is_int):
            message = "FOR SYSTEM_VERSION AS OF takes the number of a snapshot"
            raise Error(message, errors.INVALID_PARAMETER_VALUE, position=position)
        return Point(key, int(value.name), None, position)
    return Point(key, None, _microseconds(value, position), position)


def _microseconds(value: exp.Expr, position: int | None) -> str:
    if isinstance(value, exp.Literal) and not value.is_string:
        return f"({value.name}::DECIMAL(38, 6) * 1000000)::BIGINT"
    if isinstance(value, exp.Literal):
        return f"epoch_us({value.sql(dialect='duckdb')}::TIMESTAMPTZ)"
    if isinstance(value, exp.Sub | exp.Add) and _is_now(value.this):
        length = value.expression.unnest()
        if isinstance(length, exp.Cast) and length.this.is_string and length.is_type("interval"):
            length = exp.Interval(this=length.this)
        if isinstance(length, exp.Interval) and isinstance(length.this, exp.Literal):
            unit = length.args.get("unit")
            text = exp.Literal.string(f"{length.this.name}{f' {unit.name}' if unit else ''}").sql(dialect="duckdb")
            sign = "-" if isinstance(value, exp.Sub) else "+"
            return f"epoch_us(now() {sign} {text}::INTERVAL)"
    if _is_now(value):
        return "epoch_us(now())"
    if isinstance(value, exp.Anonymous) and str(value.this).upper() == "PROCTIME":
        message = "do not support temporal join for batch queries"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, hint="Use AS OF NOW().", position=position)
    raise _refused(position)


def _is_now(value: exp.Expr) -> bool:
    return isinstance(value, exp.CurrentTimestamp)


def _refused(position: int | None) -> Error:
    return Error(
        "FOR SYSTEM_TIME AS OF takes a constant time",
        errors.INVALID_PARAMETER_VALUE,
        hint="It is a text such as '2026-01-31T12:00:00Z', a number of seconds since 1970, or NOW() - INTERVAL '10s'.",
        position=position,
    )
