"""Relational nodes of a view's plan: frozen, compared by value, with derived fields and stream key.

A field has one flat name in the whole plan: a scan's are `alias.column`, a projection's are its output names.
Scalar expressions are sqlglot trees whose columns are such names; they are never changed in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from sqlglot import exp

from catalog.model import Relation
from catalog.types import BIGINT, INTEGER, Type

WEIGHT = "_weight"
COUNT = "_count"
BRANCH = "_branch"


@dataclass(frozen=True)
class Field:
    name: str
    type: Type


def column(name: str, table: str | None = None) -> exp.Column:
    """A reference to a field by its flat name."""
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(table) if table else None)


@dataclass(frozen=True)
class Scan:
    """Rows of a relation. `input` names this occurrence: a relation scanned twice has two inputs."""

    input: str
    relation: Relation
    alias: str
    columns: tuple[str, ...]

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        types = {column.name: column.type for column in self.relation.columns}
        return tuple(Field(f"{self.alias}.{name}", types[name]) for name in self.columns)

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(f"{self.alias}.{name}" for name in self.relation.key)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()


@dataclass(frozen=True)
class Filter:
    """The rows for which the predicate is true (not false, not NULL)."""

    input: Node
    predicate: exp.Expr

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields

    @property
    def key(self) -> tuple[str, ...]:
        return self.input.key

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True)
class Item:
    """One output of a projection."""

    name: str
    expression: exp.Expr
    type: Type

    @property
    def source(self) -> str | None:
        """The input field this passes on unchanged, if it does nothing else."""
        return self.expression.name if isinstance(self.expression, exp.Column) else None


@dataclass(frozen=True)
class Project:
    """Computes its items for each row. Its key is its input's, where the items pass it on."""

    input: Node
    items: tuple[Item, ...]

    def __post_init__(self) -> None:
        names = [item.name for item in self.items]
        assert len(names) == len(set(names)), names

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return tuple(Field(item.name, item.type) for item in self.items)

    @cached_property
    def passed_on(self) -> dict[str, str]:
        """Input field to the first output that is that field unchanged."""
        found: dict[str, str] = {}
        for item in self.items:
            if item.source is not None:
                found.setdefault(item.source, item.name)
        return found

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(self.passed_on.get(name, name) for name in self.input.key)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True)
class Join:
    """Inner join; no condition makes it a cross product."""

    left: Node
    right: Node
    condition: exp.Expr | None

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.left.fields + self.right.fields

    @property
    def key(self) -> tuple[str, ...]:
        return self.left.key + self.right.key

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True)
class UnionAll:
    """All rows of its inputs, whose fields have equal names and types.

    `width` counts the fields the query asked for; keys come after. `branch_key` is how a row is told from those of
    the other inputs; empty until `rules.carry_keys` adds it.
    """

    branches: tuple[Node, ...]
    width: int
    branch_key: tuple[str, ...] = ()

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.branches[0].fields

    @property
    def key(self) -> tuple[str, ...]:
        return self.branch_key

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.branches


@dataclass(frozen=True)
class Call:
    """A mergeable aggregate: count, sum, min or max of a field; count of None counts rows."""

    name: str
    function: str
    argument: str | None
    type: Type


@dataclass(frozen=True)
class Aggregate:
    """One row a group. Without keys there is always exactly one row, also over no input.

    Its fields are its state: the group keys, `_count` (rows of the group) and the calls. What SQL calls avg(x), or
    sum(x) of no values, a projection above computes from them.
    """

    input: Node
    keys: tuple[str, ...]
    calls: tuple[Call, ...]

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        types = {field.name: field.type for field in self.input.fields}
        return tuple(Field(name, types[name]) for name in self.keys) + tuple(
            Field(call.name, call.type) for call in self.calls
        )

    @property
    def key(self) -> tuple[str, ...]:
        return self.keys

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


Node = Scan | Filter | Project | Join | UnionAll | Aggregate


def with_inputs(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The same node over other inputs."""
    match node:
        case Scan():
            return node
        case Filter() | Project() | Aggregate():
            return replace(node, input=inputs[0])
        case Join():
            return replace(node, left=inputs[0], right=inputs[1])
        case UnionAll():
            return replace(node, branches=inputs)


def transform(node: Node, function: Callable[[Node], Node]) -> Node:
    """Apply a function to every node, inputs first."""
    return function(with_inputs(node, tuple(transform(child, function) for child in node.inputs)))


def walk(node: Node) -> Iterator[Node]:
    """Every node, inputs first."""
    for child in node.inputs:
        yield from walk(child)
    yield node


def count_rows_call() -> Call:
    return Call(COUNT, "count", None, BIGINT)


def branch_item(number: int) -> Item:
    return Item(BRANCH, exp.Literal.number(number), INTEGER)
