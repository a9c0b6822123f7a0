"""The last rule: a scan sends on only the columns that an operator above reads.

A scan reads its upstream's whole key, by which a backfill finds its position and a change its row; the operators above
may need a part of the key or none of it. RisingWave has the same two lists in a scan, `upstream_column_ids` and
`output_indices` (proto/stream_plan.proto, StreamScanNode).
"""

from __future__ import annotations

from dataclasses import replace

from sparkwave.planner.build.builder import columns_in, names_of
from sparkwave.planner.plan.join_types import AS_OF, AS_OF_LEFT
from sparkwave.planner.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Node,
    Project,
    Scan,
    UnionAll,
    Unnest,
    with_inputs,
)


def limit_outputs(root: Node) -> Node:
    """Let each scan send on only what an operator above reads, and at least one column."""
    return _limited(root, names_of(root))


def _limited(node: Node, needed: set[str]) -> Node:
    if isinstance(node, Scan):
        sent = tuple(name for name in node.columns if f"{node.alias}.{name}" in needed)
        return replace(node, sent_on=sent or node.columns[:1])
    below = fields_read(node, needed)
    return with_inputs(node, tuple(_limited(child, below) for child in node.inputs))


def fields_read(node: Node, needed: set[str]) -> set[str]:
    """Return the fields that a node reads from its inputs when `needed` are read from the node."""
    match node:
        case Filter(predicate=predicate):
            return needed | columns_in(predicate)
        case Project(items=items):
            return set().union(*(columns_in(item.expression) for item in items))
        case Unnest(array=array):
            return needed | columns_in(array)
        case Join(condition=condition):
            nearest = set(node.right.key) if node.kind in (AS_OF, AS_OF_LEFT) else set()
            return needed | nearest | (columns_in(condition) if condition is not None else set())
        case Aggregate(keys=keys, calls=calls):
            arguments = {call.argument for call in calls if call.argument is not None}
            computed = (columns_in(call.expression) for call in calls if call.expression is not None)
            return set(keys).union(arguments, *computed)
        case UnionAll():
            return names_of(node)
    # Ties are broken by the key.
    return needed.union(*(names_of(below) | set(below.key) for below in node.inputs))
