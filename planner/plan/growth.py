"""Finds the plans that only gain rows."""

from __future__ import annotations

from sparkwave.planner.delta.now import reads_now
from sparkwave.planner.plan.nodes import (
    INNER,
    TEMPORAL,
    TEMPORAL_LEFT,
    Aggregate,
    ChangeLog,
    Filter,
    Join,
    Memo,
    Node,
    OverWindow,
    Scan,
    TopN,
)


def only_grows(node: Node) -> bool:
    """Return whether no row ever leaves: then RisingWave's operators keep less, and a sink is append-only."""
    match node:
        case Scan(relation=relation):
            return relation.append_only
        case Filter(predicate=predicate) if reads_now(predicate):
            return False
        case Join(kind=kind) if kind not in (INNER, TEMPORAL, TEMPORAL_LEFT):
            return False
        case Join(kind=kind) if kind != INNER:
            return only_grows(node.left)
        case Memo(input=below):
            return isinstance(below, ChangeLog)
        case ChangeLog():
            return True
        case Aggregate() | TopN() | OverWindow():
            return False
    return all(map(only_grows, node.inputs))
