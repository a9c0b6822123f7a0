"""Relational nodes of a view's plan: frozen, compared by value, with derived fields and stream key.

A field has one flat name in the whole plan: a scan's are `alias.column`, a projection's are its output names.
Scalar expressions are sqlglot trees whose columns are such names; they are never changed in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeGuard

from sqlglot import exp

from sparkwave.catalog.lazy import lazy
from sparkwave.catalog.model import Relation
from sparkwave.catalog.types import BIGINT, INTEGER, Type

WEIGHT = "_weight"
COUNT = "_count"
BRANCH = "_branch"


@dataclass(frozen=True)
class Field:
    name: str
    type: Type


@dataclass(frozen=True)
class Order:
    """One sort column: a field and where its NULLs go."""

    name: str
    descending: bool = False
    nulls_first: bool = False


def column(name: str, table: str | None = None) -> exp.Column:
    """A reference to a field by its flat name."""
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(table) if table else None)


class _Leaf:
    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()


@dataclass(frozen=True)
class _Unary:
    input: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True)
class _SameRows(_Unary):
    """Has some of its input's rows, unchanged."""

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields

    @property
    def key(self) -> tuple[str, ...]:
        return self.input.key


@dataclass(frozen=True)
class Scan(_Leaf):
    """Rows of a relation. `input` names this occurrence: a relation scanned twice has two inputs.

    `columns` are read from the upstream, its whole key among them. `sent_on` are those of them that become fields;
    None, until `outputs.limit_outputs` sets it, means all.
    """

    input: str
    relation: Relation
    alias: str
    columns: tuple[str, ...]
    sent_on: tuple[str, ...] | None = None

    @lazy
    def output(self) -> tuple[str, ...]:
        return self.columns if self.sent_on is None else self.sent_on

    @lazy
    def fields(self) -> tuple[Field, ...]:
        types = {column.name: column.type for column in self.relation.columns}
        return tuple(Field(f"{self.alias}.{name}", types[name]) for name in self.output)

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(f"{self.alias}.{name}" for name in self.relation.key)


@dataclass(frozen=True)
class Values(_Leaf):
    """Constant rows, numbered from 1 in the field `number` when there are several."""

    rows: tuple[tuple[exp.Expr, ...], ...]
    columns: tuple[Field, ...]
    number: str

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.columns, Field(self.number, INTEGER))

    @property
    def key(self) -> tuple[str, ...]:
        return (self.number,) if len(self.rows) > 1 else ()


@dataclass(frozen=True)
class Filter(_SameRows):
    """The rows for which the predicate is true (not false, not NULL). It may compare with the epoch's `now()`."""

    predicate: exp.Expr


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
class Project(_Unary):
    """Computes its items for each row. Its key is that of its input, under the names by which the items pass it on."""

    items: tuple[Item, ...]

    def __post_init__(self) -> None:
        names = [item.name for item in self.items]
        assert len(names) == len(set(names)), names

    @lazy
    def fields(self) -> tuple[Field, ...]:
        return tuple(Field(item.name, item.type) for item in self.items)

    @lazy
    def passed_on(self) -> dict[str, str]:
        """The input fields, each with the first output that passes it on unchanged."""
        found: dict[str, str] = {}
        for item in self.items:
            if item.source is not None:
                found.setdefault(item.source, item.name)
        return found

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(self.passed_on.get(name, name) for name in self.input.key)


@dataclass(frozen=True)
class Unnest(_Unary):
    """One row for each element of an array, with the element and its position (from 1); none for an empty array."""

    array: exp.Expr
    element: Field
    position: str

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.input.fields, self.element, Field(self.position, BIGINT))

    @property
    def key(self) -> tuple[str, ...]:
        return (*self.input.key, self.position)


INNER, LEFT, FULL, SEMI, ANTI, DYNAMIC, TEMPORAL, TEMPORAL_LEFT, AS_OF, AS_OF_LEFT = (
    "Inner", "LeftOuter", "FullOuter", "LeftSemi", "LeftAnti", "DynamicFilter", "TemporalInner", "TemporalLeftOuter",
    "AsOfInner", "AsOfLeftOuter",
)  # fmt: skip
_LEFT_ONLY = (SEMI, ANTI, DYNAMIC)


@dataclass(frozen=True)
class Join:
    """A join of one of RisingWave's types; an inner join without a condition is a cross product.

    A right outer join is built as a left one with its sides swapped. A dynamic filter keeps the left rows for which the
    condition holds with the one row that its right side always has. A temporal join looks the right side up as it is
    when a left row arrives, and takes a result back only with the left row, from a memo. An as-of join pairs a left row
    with the one nearest right row for which its inequality holds; of equally near rows, with the first in the order of
    the right side's key.
    """

    left: Node
    right: Node
    condition: exp.Expr | None
    kind: str = INNER
    marker: str | None = None  # a field of the left side that is never NULL: part of a full join's key

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.left.fields if self.kind in _LEFT_ONLY else self.left.fields + self.right.fields

    @property
    def key(self) -> tuple[str, ...]:
        if self.kind in (*_LEFT_ONLY, AS_OF, AS_OF_LEFT):
            return self.left.key
        return self.left.key + ((self.marker,) if self.marker else ()) + self.right.key

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    @lazy
    def conjuncts(self) -> tuple[exp.Expr, ...]:
        return tuple(conjuncts(self.condition)) if self.condition is not None else ()

    @property
    def as_of(self) -> exp.Expr | None:
        """The right side's part of the inequality of an as-of join, None without one that compares the sides."""
        left, right = _names(self.left), _names(self.right)
        found = [part for part in self.conjuncts if isinstance(part, exp.GT | exp.GTE | exp.LT | exp.LTE)]
        if len(found) != 1:
            return None
        sides = (found[0].this.unnest(), found[0].expression.unnest())
        return next((other for one, other in (sides, sides[::-1]) if _uses(one, left) and _uses(other, right)), None)

    @lazy
    def pairs(self) -> tuple[tuple[exp.Expr, exp.Expr, bool], ...]:
        """The equalities of the condition as (of the left, of the right, whether NULL equals NULL)."""
        left, right = _names(self.left), _names(self.right)
        found = []
        for part in self.conjuncts:
            if not isinstance(part, exp.EQ | exp.NullSafeEQ):
                continue
            sides = (part.this.unnest(), part.expression.unnest())
            for one, other in (sides, sides[::-1]):
                if _uses(one, left) and _uses(other, right):
                    found.append((one, other, isinstance(part, exp.NullSafeEQ)))
                    break
        return tuple(found)


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
    """An aggregate. With a `function` of MERGEABLE it is over one field (count of None counts rows) and mergeable.

    Any other one is `expression`, an aggregate call over the input's fields, computed again for each touched group.
    """

    name: str
    function: str
    argument: str | None
    type: Type
    expression: exp.Expr | None = None

    @property
    def counts(self) -> bool:
        """Whether the result is 0 over no rows; for all others it is NULL."""
        return self.function in ("count", "approxdistinct", "regrcount")

    @property
    def is_linear(self) -> bool:
        """Whether a row can be taken back without looking at the others."""
        if self.expression is not None:
            return False
        return self.function == "count" or (self.function == "sum" and not self.type.is_float)


@dataclass(frozen=True)
class Aggregate(_Unary):
    """One row a group. Without keys there is always exactly one row, also over no input.

    Its fields are its state: the group keys, `_count` (rows of the group) and the calls. A projection above computes
    SQL's avg(x), or sum(x) of no values, from these.
    """

    keys: tuple[str, ...]
    calls: tuple[Call, ...]

    @lazy
    def fields(self) -> tuple[Field, ...]:
        types = {field.name: field.type for field in self.input.fields}
        return tuple(Field(name, types[name]) for name in self.keys) + tuple(
            Field(call.name, call.type) for call in self.calls
        )

    @property
    def key(self) -> tuple[str, ...]:
        return self.keys

    @property
    def is_mergeable(self) -> bool:
        """Whether results over parts of the input can be merged."""
        return all(call.expression is None for call in self.calls)


@dataclass(frozen=True)
class TopN(_SameRows):
    """The first rows of each partition in an order; ties are broken by the stream key.

    Its state are the first `offset + limit` rows. `limit` None means all rows, without state. With a `place` (only
    without an offset) the rows have that field too, their number from 1.
    """

    partition: tuple[str, ...]
    order: tuple[Order, ...]
    limit: int | None
    offset: int = 0
    place: Field | None = None

    @lazy
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields if self.place is None else (*self.input.fields, self.place)

    @property
    def full_order(self) -> tuple[Order, ...]:
        named = {order.name for order in self.order} | set(self.partition)
        return self.order + tuple(Order(name) for name in dict.fromkeys(self.key) if name not in named)


@dataclass(frozen=True)
class WindowCall:
    """A window function's call over fields; `expression` is without its OVER, `frame` the frame as written."""

    name: str
    expression: exp.Expr
    type: Type
    order: tuple[Order, ...]
    frame: exp.WindowSpec | None

    @property
    def is_positional(self) -> bool:
        """Whether its result depends on the order among equal rows, which is that of the stream key."""
        inner = self.expression.this if isinstance(self.expression, exp.IgnoreNulls) else self.expression
        by_position = isinstance(inner, exp.RowNumber | exp.Lag | exp.Lead | exp.Ntile)
        return by_position or (self.frame is not None and self.frame.text("kind").upper() == "ROWS")


@dataclass(frozen=True)
class OverWindow(_Unary):
    """Adds window functions to each row; all of them are over the same partitions."""

    partition: tuple[str, ...]
    calls: tuple[WindowCall, ...]

    @lazy
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields + tuple(Field(call.name, call.type) for call in self.calls)

    @property
    def key(self) -> tuple[str, ...]:
        return self.input.key


# RisingWave's codes of changes: a row is gained or lost, and an update has the row after it and the row before.
INSERTED, DELETED, UPDATED, REPLACED = 1, 2, 3, 4


@dataclass(frozen=True)
class ChangeLog(_Unary):
    """The changes of its input's rows, each a row that stays: with the code of the change, and the time of its epoch.

    The rows that are there at first have been inserted at the time 0. A row of the input has one change of a code in an
    epoch.
    """

    code: Field
    time: Field

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.input.fields, self.code, self.time)

    @property
    def key(self) -> tuple[str, ...]:
        return (*self.input.key, self.code.name, self.time.name)


@dataclass(frozen=True)
class Memo(_SameRows):
    """The rows of a change log, or of a temporal join whose left side loses rows.

    All are its state, since none can be computed again.
    """

    @property
    def join(self) -> Join:
        assert isinstance(self.input, Join)
        return self.input

    @property
    def partition(self) -> tuple[str, ...]:
        """The key of the left rows, with which their results come and go; of a change log's rows, their own."""
        return self.input.key if isinstance(self.input, ChangeLog) else self.join.left.key


Stateful = Aggregate | TopN | Memo
Node = Scan | Values | Filter | Project | Unnest | Join | UnionAll | Aggregate | TopN | OverWindow | ChangeLog | Memo


def with_inputs(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The same node over other inputs."""
    match node:
        case Scan() | Values():
            return node
        case Join():
            return replace(node, left=inputs[0], right=inputs[1])
        case UnionAll():
            return replace(node, branches=inputs)
        case _:
            return replace(node, input=inputs[0])


def transform(node: Node, function: Callable[[Node], Node]) -> Node:
    """Apply a function to every node, inputs first."""
    return function(with_inputs(node, tuple(transform(child, function) for child in node.inputs)))


def walk(node: Node) -> Iterator[Node]:
    """Every node, inputs first."""
    for child in node.inputs:
        yield from walk(child)
    yield node


def expressions(node: Node) -> tuple[exp.Expr, ...]:
    """Return the scalar and aggregate expressions of a node itself."""
    match node:
        case Values(rows=rows):
            return tuple(value for row in rows for value in row)
        case Filter(predicate=predicate):
            return (predicate,)
        case Project(items=items):
            return tuple(item.expression for item in items)
        case Unnest(array=array):
            return (array,)
        case Join(condition=condition):
            return () if condition is None else (condition,)
        case Aggregate(calls=calls):
            return tuple(call.expression for call in calls if call.expression is not None)
        case OverWindow(calls=calls):
            return tuple(call.expression for call in calls)
    return ()


def keeps_state(node: Node) -> TypeGuard[Stateful]:
    """Return whether rows of a node are stored between epochs."""
    return isinstance(node, Aggregate | Memo) or (isinstance(node, TopN) and node.limit is not None)


def changes_by_row(node: Node) -> bool:
    """Return whether a change of a node has as many rows as its inputs' changes or fewer, as DuckDB estimates."""
    return all(isinstance(part, Scan | Values | Filter | Project | UnionAll | Unnest) for part in walk(node))


def has_one_row(node: Node) -> bool:
    """Whether a node always has exactly one row."""
    match node:
        case Aggregate(keys=keys):
            return not keys
        case Project(input=below):
            return has_one_row(below)
    return False


def conjuncts(predicate: exp.Expr) -> list[exp.Expr]:
    """Return the parts of a predicate that AND connects."""
    predicate = predicate.unnest()
    return list(predicate.flatten()) if isinstance(predicate, exp.And) else [predicate]


def count_rows_call() -> Call:
    return Call(COUNT, "count", None, BIGINT)


def branch_item(number: int) -> Item:
    return Item(BRANCH, exp.Literal.number(number), INTEGER)


def _names(node: Node) -> set[str]:
    return {field.name for field in node.fields}


def _uses(expression: exp.Expr, names: set[str]) -> bool:
    """Whether an expression reads at least one field, and none but these."""
    used = {reference.name for reference in expression.find_all(exp.Column)}
    return bool(used) and used <= names
