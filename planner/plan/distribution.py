"""The distribution of a plan's rows over parallel workers, as data, which EXPLAIN prints as exchanges.

The rules are RisingWave's: a join needs both sides distributed by its keys, an aggregate, top-n or window by its
groups, and an operator without keys needs all rows in one place. Sparkwave runs an operator in one engine, which
distributes the rows itself; the exchanges cut a plan into the fragments that RisingWave would run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from sparkwave.planner.plan.join_types import DYNAMIC, FULL, TEMPORAL, TEMPORAL_LEFT
from sparkwave.planner.plan.nodes import (
    Aggregate,
    Join,
    Node,
    OverWindow,
    Project,
    Scan,
    TopN,
    UnionAll,
    Values,
    column,
)

HASH, UPSTREAM, SINGLE, BROADCAST, SOME = "HashShard", "UpstreamHashShard", "Single", "Broadcast", "SomeShard"


@dataclass(frozen=True)
class Distribution:
    """The place of a row: for HASH and UPSTREAM (a table's), by the hash of `keys`.

    The keys are expressions over the row's fields. SOME is a distribution by values that the row has no longer.
    """

    kind: str
    keys: tuple[exp.Expr, ...] = ()

    def is_within(self, names: Iterable[str]) -> bool:
        """Return whether rows that are equal in these fields are in one place."""
        if self.kind not in (HASH, UPSTREAM) or not self.keys:
            return False
        allowed = set(names)
        return all(isinstance(key, exp.Column) and key.name in allowed for key in self.keys)


def by(names: Iterable[str]) -> Distribution:
    return Distribution(HASH, tuple(column(name) for name in dict.fromkeys(names)))


def of_upstream(scan: Scan) -> Distribution:
    """Return the distribution of a relation's rows: by its key."""
    return Distribution(UPSTREAM, tuple(map(column, scan.key))) if scan.key else Distribution(SINGLE)


def distribution(node: Node) -> Distribution:
    """Return the distribution of a node's rows, after its inputs moved as `moves` says."""
    inputs = [move or distribution(child) for child, move in zip(node.inputs, moves(node), strict=True)]
    match node:
        case Scan():
            sends_key = set(node.key) <= {f.name for f in node.fields}
            return of_upstream(node) if sends_key else Distribution(SOME)
        case Values():
            return Distribution(SINGLE)
        case Project():
            return _passed_on(inputs[0], node)
        case Join(kind=kind) if kind == FULL and inputs[0].kind != SINGLE:
            return Distribution(SOME)  # rows of the right side alone lack the left side's keys
        case UnionAll():
            return inputs[0] if all(each == inputs[0] for each in inputs) else Distribution(SOME)
    return inputs[0]


def moves(node: Node) -> tuple[Distribution | None, ...]:
    """Return for each input the distribution to which its rows have to move for this node.

    None if they need not move.
    """
    match node:
        case Join():
            return _join_moves(node)
        case Aggregate(keys=keys):
            return (_grouped(node.input, keys),)
        case TopN(partition=keys) | OverWindow(partition=keys):
            return (_grouped(node.input, keys),)
        case UnionAll() if node.branch_key:
            found = [distribution(branch) for branch in node.branches]
            if all(each.kind == SINGLE for each in found):
                return (None,) * len(found)
            return tuple(None if each == by(node.branch_key) else by(node.branch_key) for each in found)
    return (None,) * len(node.inputs)


def view_move(root: Project) -> Distribution | None:
    """Return the distribution by which a whole view is stored: its key; None if equal keys are in one place already.

    Rows of a join always move: by the keys of the join, all rows of a popular key would be in one place.
    """
    found = distribution(root)
    if found.kind == SINGLE or (found.is_within(root.key) and not _ends_in_join(root)):
        return None
    return by(root.key)


def _ends_in_join(node: Node) -> bool:
    if isinstance(node, Project):
        return _ends_in_join(node.input)
    return isinstance(node, Join) and node.kind != DYNAMIC


def _join_moves(node: Join) -> tuple[Distribution | None, ...]:
    if node.kind == DYNAMIC:
        return (None, Distribution(BROADCAST))  # its one row goes to all rows of the left side
    if not node.pairs:
        wanted = [Distribution(SINGLE), Distribution(SINGLE)]
    else:
        wanted = [Distribution(HASH, tuple(pair[side] for pair in node.pairs)) for side in (0, 1)]  # type: ignore[misc]
    if node.kind in (TEMPORAL, TEMPORAL_LEFT):
        # The right side is looked up in its place: the left side's rows move there.
        right = distribution(node.right)
        on_key = {other: one for one, other, _ in node.pairs}
        if right.keys and all(key in on_key for key in right.keys):
            wanted[0] = Distribution(HASH, tuple(on_key[key] for key in right.keys))
            return (_needed(node.left, wanted[0]), right)
    return tuple(_needed(side, there) for side, there in zip(node.inputs, wanted, strict=True))


def _needed(node: Node, wanted: Distribution) -> Distribution | None:
    return None if distribution(node) == wanted else wanted


def _grouped(node: Node, keys: tuple[str, ...]) -> Distribution | None:
    if not keys:
        return _needed(node, Distribution(SINGLE))
    return None if distribution(node).is_within(keys) else by(keys)


def _passed_on(found: Distribution, node: Project) -> Distribution:
    """Return the distribution over a projection's outputs; SOME when it drops a key."""
    if not found.keys:
        return found
    names = [node.passed_on.get(key.name) if isinstance(key, exp.Column) else None for key in found.keys]
    kept = tuple(column(name) for name in names if name is not None)
    return Distribution(found.kind, kept) if len(kept) == len(names) else Distribution(SOME)
