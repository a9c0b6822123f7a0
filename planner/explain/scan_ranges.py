"""The ranges of a key that a batch scan reads, as RisingWave prints them: `[id = Int32(1) AND n > Int64(2)]`.

RisingWave: src/frontend/src/optimizer/plan_node/batch_seq_scan.rs. DuckDB looks for the rows in its own way; a plan
only says which they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from sparkwave.catalog.types import BIGINT, INTEGER, SMALLINT, VARCHAR, Type
from sparkwave.planner.plan.nodes import Filter, Scan, conjuncts

# The types of a key whose constants are printed, as RisingWave calls their values.
_VALUES = {SMALLINT: "Int16", INTEGER: "Int32", BIGINT: "Int64", VARCHAR: "Utf8"}
_BOUNDS: dict[type[exp.Expr], str] = {exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}
_FLIPPED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}


# The ranges as text, and what is left of a filter and its scan.
Ranges = tuple[tuple[str, ...], Filter | Scan]


def with_ranges(node: Filter, prefix: str) -> Ranges | None:
    """Return the ranges of a filter over a scan, and what is left of both; None if the key does not limit the rows.

    The names of columns have a prefix.
    """
    scan = node.input
    if not isinstance(scan, Scan):
        return None
    left = conjuncts(node.predicate)
    types = {field.name: field.type for field in scan.fields}
    parts: list[str] = []
    ranges: list[str] = []
    for key in scan.relation.key:
        name, shown = f"{scan.alias}.{key}", f"{prefix}{key}"
        value = _VALUES.get(types.get(name, Type("")))
        if value is None:
            break
        equal = next((part for part in left if _side(part, name, exp.EQ, value)), None)
        if equal is not None:
            parts.append(f"{shown} = {_side(equal, name, exp.EQ, value)}")
            left.remove(equal)
            continue
        listed = next((part for part in left if _listed(part, name, value)), None)
        if listed is not None:
            ranges = [" AND ".join([*parts, f"{shown} = {item}"]) for item in _listed(listed, name, value)]
            left.remove(listed)
            break
        bounds = [(part, bound) for part in left for bound in [_bound(part, name, value)] if bound is not None]
        lower = next((pair for pair in bounds if pair[1].startswith(">")), None)
        upper = next((pair for pair in bounds if pair[1].startswith("<")), None)
        for part, bound in (pair for pair in (lower, upper) if pair is not None):
            parts.append(f"{shown} {bound}")
            left.remove(part)
        break
    ranges = ranges or ([" AND ".join(parts)] if parts else [])
    if not ranges:
        return None
    return tuple(ranges), replace(node, predicate=exp.and_(*left, copy=True)) if left else scan


def _side(part: exp.Expr, name: str, kind: type[exp.Expr], value: str) -> str | None:
    """Return the constant that a column is compared with, None for another comparison."""
    if type(part) is not kind:
        return None
    one, other = part.this, part.expression
    if _is_column(one, name):
        return _constant(other, value)
    return _constant(one, value) if _is_column(other, name) else None


def _bound(part: exp.Expr, name: str, value: str) -> str | None:
    sign = _BOUNDS.get(type(part))
    found = _side(part, name, type(part), value) if sign is not None else None
    if sign is None or found is None:
        return None
    return f"{sign if _is_column(part.this, name) else _FLIPPED[sign]} {found}"


def _listed(part: exp.Expr, name: str, value: str) -> Sequence[str]:
    """Return the constants of `column IN (…)`, none for anything else."""
    if not isinstance(part, exp.In) or part.args.get("query") or not _is_column(part.this, name):
        return ()
    found = [_constant(item, value) for item in part.expressions]
    return [item for item in found if item is not None] if None not in found else ()


def _is_column(node: exp.Expr, name: str) -> bool:
    return isinstance(node, exp.Column) and node.name == name


def _constant(node: exp.Expr, value: str) -> str | None:
    bare = node.unnest()
    sign = "-" if isinstance(bare, exp.Neg) else ""
    literal = bare.this if sign else bare
    if not isinstance(literal, exp.Literal):
        return None
    if value == "Utf8":
        return f'Utf8("{literal.name}")' if literal.is_string and not sign else None
    return f"{value}({sign}{literal.name})" if literal.is_int else None
