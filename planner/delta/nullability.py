"""Finds the fields of a node that are never NULL, so that `=` can compare them.

`IS NOT DISTINCT FROM` reads every row group; with `=` DuckDB compares statistics first and skips row groups.
"""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp

from sparkwave.planner.plan.nodes import (
    ANTI,
    AS_OF,
    AS_OF_LEFT,
    DYNAMIC,
    FULL,
    INNER,
    LEFT,
    SEMI,
    TEMPORAL,
    TEMPORAL_LEFT,
    Aggregate,
    ChangeLog,
    Filter,
    Join,
    Memo,
    Node,
    OverWindow,
    Project,
    Scan,
    TopN,
    UnionAll,
    Unnest,
    Values,
    conjuncts,
)


@lru_cache(maxsize=4096)
def never_null(node: Node) -> frozenset[str]:
    """Return the names of the fields that have a value in every row."""
    match node:
        case Scan(relation=relation):
            # A view's key may be a group key that is NULL; a table's key is never NULL.
            names = {c.name for c in relation.columns if c.not_null} | (
                set(relation.key) if relation.is_table else set()
            )
            return frozenset(f"{node.alias}.{name}" for name in node.output if name in names)
        case Values():
            return frozenset({node.number})
        case Filter(predicate=predicate):
            return never_null(node.input) | _compared(predicate)
        case Project(items=items):
            below = never_null(node.input)
            return frozenset(i.name for i in items if i.source in below or isinstance(i.expression, exp.Literal))
        case Unnest():
            return never_null(node.input) | {node.position}
        case ChangeLog():
            return never_null(node.input) | {node.code.name, node.time.name}
        case UnionAll(branches=branches):
            return frozenset.intersection(*map(never_null, branches))
        case Aggregate(keys=keys):
            counts = {call.name for call in node.calls if call.function == "count"}
            return (never_null(node.input) & set(keys)) | counts
        case TopN() | OverWindow() | Memo():
            return never_null(node.input)
        case Join(kind=kind):
            return _of_join(node, kind)
    return frozenset()


def _of_join(node: Join, kind: str) -> frozenset[str]:
    left, right = never_null(node.left), never_null(node.right)
    met = _compared(node.condition) if node.condition is not None else frozenset()
    if kind in (INNER, TEMPORAL, AS_OF):
        return left | right | met
    if kind in (SEMI, DYNAMIC):
        return left | (met & {f.name for f in node.left.fields})
    return left if kind in (LEFT, ANTI, TEMPORAL_LEFT, AS_OF_LEFT) else frozenset() if kind == FULL else left


def _compared(predicate: exp.Expr) -> frozenset[str]:
    """Return the fields that a true condition has compared, because a comparison with NULL is not true."""
    found = set()
    for part in conjuncts(predicate):
        if isinstance(part, exp.EQ | exp.GT | exp.GTE | exp.LT | exp.LTE | exp.NEQ):
            found |= {side.name for side in (part.this, part.expression) if isinstance(side, exp.Column)}
    return frozenset(found)
