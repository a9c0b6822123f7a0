"""The order in which the upstreams of a view are read: `WITH (backfill_order = FIXED(a -> b) | AUTO | NONE | DEFAULT)`.

The rules are RisingWave's (src/frontend/src/optimizer/backfill_order_strategy.rs): of a pair (before, after), all scans
of the first relation end before any scan of the second begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Catalog
from sparkwave.planner.bind.binder import Scope, resolve
from sparkwave.planner.plan.join_types import DYNAMIC, TEMPORAL, TEMPORAL_LEFT
from sparkwave.planner.plan.nodes import Join, Node, Scan, UnionAll, walk
from sparkwave.planner.statements import Name, Option

Pairs = tuple[tuple[int, int], ...]

_CYCLE = "Backfill order strategy has a cycle"
# The joins that are no StreamHashJoin in RisingWave, by the names of its plan nodes.
_UNORDERED = {DYNAMIC: "StreamDynamicFilter", TEMPORAL: "StreamTemporalJoin", TEMPORAL_LEFT: "StreamTemporalJoin"}


@dataclass(frozen=True)
class BackfillOrder:
    pairs: Pairs = ()
    notices: tuple[str, ...] = ()


def backfill_order(root: Node, option: Option | None, catalog: Catalog, scope: Scope) -> BackfillOrder:
    """Return the order of the option.

    Raises Error 22023 for a relation that the plan does not scan and for a cycle, and the errors of `resolve`.
    """
    if option is None or option.value in ("none", "default"):
        return BackfillOrder()
    return _automatic(root) if option.value == "auto" else BackfillOrder(_fixed(root, option, catalog, scope))


def _fixed(root: Node, option: Option, catalog: Catalog, scope: Scope) -> Pairs:
    scanned = {node.relation.id for node in walk(root) if isinstance(node, Scan)}

    def id_of(name: Name) -> int:
        found = resolve(catalog, scope, name)
        if found.id not in scanned:
            raise Error(
                f"Table or source '{name}' specified in backfill_order is not used in the query",
                errors.INVALID_PARAMETER_VALUE,
                position=name.position,
            )
        return found.id

    pairs = tuple(dict.fromkeys((id_of(before), id_of(after)) for before, after in option.edges))
    if has_cycle(pairs):
        raise Error(_CYCLE, errors.INVALID_PARAMETER_VALUE, position=option.position)
    return pairs


def _automatic(root: Node) -> BackfillOrder:
    """Return an order in which the right sides of joins come before the leftmost scans: dimensions before facts."""
    for node in walk(root):
        if isinstance(node, Join) and node.kind in _UNORDERED:
            return BackfillOrder(notices=(f"Backfill order strategy is not supported for {_UNORDERED[node.kind]}",))
    pairs = tuple(sorted(set(_pairs(root, frozenset()))))
    return BackfillOrder(notices=(_CYCLE,)) if has_cycle(pairs) else BackfillOrder(pairs)


def _pairs(node: Node, before: frozenset[int]) -> Iterator[tuple[int, int]]:
    """Yield the pairs below a node; the relations in `before` come before its leftmost scans."""
    match node:
        case Scan(relation=relation):
            yield from ((earlier, relation.id) for earlier in before)
        case Join():
            yield from _pairs(node.right, frozenset())
            yield from _pairs(node.left, before | _last(node.right))
        case _:
            for child in node.inputs:
                yield from _pairs(child, before)


def _last(node: Node) -> frozenset[int]:
    """Return the relations below a node that are read last: its leftmost scans, one for each branch of a union."""
    match node:
        case Scan(relation=relation):
            return frozenset({relation.id})
        case UnionAll():
            return frozenset().union(*map(_last, node.branches))
    return _last(node.inputs[0]) if node.inputs else frozenset()


def has_cycle(pairs: Iterable[tuple[int, int]]) -> bool:
    """Return whether a relation would have to come before itself."""
    left = set(pairs)
    while True:
        waiting = {after for _, after in left}
        ready = {(before, after) for before, after in left if before not in waiting}
        if not ready:
            return bool(left)
        left -= ready
