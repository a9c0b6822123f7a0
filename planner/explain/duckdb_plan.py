"""Shows DuckDB's own plan of a query, as `EXPLAIN (FORMAT json)` and `EXPLAIN (ANALYZE, FORMAT json)` return it."""

from __future__ import annotations

import re
from typing import Any

from sparkwave.catalog.column_names import readable
from sparkwave.planner.explain.operator_tree import Operator, Text

_ESTIMATE = "Estimated Cardinality"
_HIDDEN = frozenset({"Filename(s)"})  # paths on the server
# A column of a projection that only changes how DuckDB keeps numbers.
_UNCHANGED = re.compile(r"#\d+|__internal_(de)?compress_\w+\(.*\)")


def planned(plan: list[dict[str, Any]]) -> Operator:
    """Return the operators of a plan."""
    return _operator(plan[0])


def analyzed(profile: dict[str, Any]) -> Operator:
    """Return the operators of a query that has run, below a line with its rows and its time."""
    [explained] = profile["children"]
    below = _below(explained)
    rows = below[0].fields[0] if below else ("rows", "0")
    return Operator("Query", (rows, ("time", _ms(profile["latency"]))), below)


def _operator(node: dict[str, Any]) -> Operator:
    fields: list[tuple[str, Text]] = []
    if "operator_cardinality" in node:
        fields += [("rows", str(node["operator_cardinality"])), ("time", _ms(node["operator_timing"]))]
    for key, value in node["extra_info"].items():
        if key in _HIDDEN:
            continue
        shown = "estimated_rows" if key == _ESTIMATE else key.lower().replace(" ", "_")
        fields.append((shown, readable(value) if isinstance(value, str) else tuple(map(readable, value))))
    return Operator(_name(node).title().replace("_", "").strip(), tuple(fields), _below(node))


def _below(node: dict[str, Any]) -> tuple[Operator, ...]:
    """Return the operators below a node, without projections that change nothing."""
    children = node.get("children", ())
    while len(children) == 1 and _changes_nothing(children[0]):
        children = children[0].get("children", ())
    return tuple(map(_operator, children))


def _changes_nothing(node: dict[str, Any]) -> bool:
    shown = node["extra_info"].get("Projections", ())
    listed = (shown,) if isinstance(shown, str) else shown
    return bool(listed) and "PROJECTION" in _name(node) and all(map(_UNCHANGED.fullmatch, listed))


def _name(node: dict[str, Any]) -> str:
    return str(node.get("operator_name") or node["name"])


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.3f} ms"
