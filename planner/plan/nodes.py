"""Relational nodes of a view's plan: frozen, compared by value, with derived fields and stream key.

A field has one flat name in the whole plan: a scan's are `alias.column`, a projection's are its output names.
Scalar expressions are sqlglot trees whose columns are such names; they are never changed in place.

What is known of an operator stands with it; `Operator` has what is true of one that says nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, TypeGuard

from sqlglot import exp

from sparkwave.catalog.lazy import lazy
from sparkwave.catalog.model import Relation
from sparkwave.catalog.types import BIGINT, INTEGER, Type
from sparkwave.planner.plan.join_types import (
    AS_OF,
    AS_OF_LEFT,
    DYNAMIC,
    FULL,
    INNER,
    JOIN_TYPES,
    LEFT_ONLY,
    SEMI,
    TEMPORAL,
    TEMPORAL_LEFT,
    Rule,
)

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
    """Return a reference to a field by its flat name."""
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(table) if table else None)


_MAP = "none: one row at a time is enough"


class Operator:
    """The facts about an operator. Each operator defines its own `inputs`, `fields` and `key`."""

    # The operator in the user's words.
    words: ClassVar[str]
    # Whether it takes one row at a time, wherever the row is. Then it needs no exchange.
    is_map: ClassVar[bool] = False

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    @property
    def rule(self) -> Rule:
        raise NotImplementedError

    @property
    def expressions(self) -> tuple[exp.Expr, ...]:
        """The scalar and aggregate expressions of the operator itself."""
        return ()

    @property
    def grows(self) -> bool:
        """Whether no row ever leaves. Then RisingWave's operators keep less, and a sink is append-only."""
        return False

    @property
    def present(self) -> frozenset[str]:
        """The fields that are never NULL, so that `=` can compare them.

        `IS NOT DISTINCT FROM` reads every row group; with `=` DuckDB compares statistics first and skips row groups.
        """
        return frozenset()

    @property
    def linear_inputs(self) -> tuple[Node, ...]:
        """The inputs whose rows may come in parts, the results of which add up."""
        return ()


@dataclass(frozen=True)
class _Unary(Operator):
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
class _Map(_Unary):
    """Takes one row at a time."""

    is_map: ClassVar[bool] = True

    @property
    def grows(self) -> bool:
        return self.input.grows

    @property
    def linear_inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True)
class Scan(Operator):
    """Rows of a relation. `input` names this occurrence: a relation scanned twice has two inputs.

    `columns` are read from the upstream, its whole key among them. `sent_on` are those of them that become fields;
    None, until `outputs.limit_outputs` sets it, means all.
    """

    input: str
    relation: Relation
    alias: str
    columns: tuple[str, ...]
    sent_on: tuple[str, ...] | None = None

    words: ClassVar[str] = "a scan"
    is_map: ClassVar[bool] = True

    @property
    def rule(self) -> Rule:
        return Rule(
            "the rows that the table gained (+1) and lost (-1) since the last epoch",
            "none: the lake has the table at both snapshots",
        )

    @property
    def grows(self) -> bool:
        return self.relation.append_only

    @lazy
    def present(self) -> frozenset[str]:
        names = {column.name for column in self.relation.columns if column.not_null}
        # A view's key may be a group key that is NULL; a table's key is never NULL.
        names |= set(self.relation.key) if self.relation.is_table else set()
        return frozenset(f"{self.alias}.{name}" for name in self.output if name in names)

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
class Values(Operator):
    """Constant rows, numbered from 1 in the field `number` when there are several."""

    rows: tuple[tuple[exp.Expr, ...], ...]
    columns: tuple[Field, ...]
    number: str

    words: ClassVar[str] = "VALUES"

    @property
    def rule(self) -> Rule:
        return Rule("constants never change", "none: they are in the plan")

    @property
    def expressions(self) -> tuple[exp.Expr, ...]:
        return tuple(value for row in self.rows for value in row)

    @property
    def grows(self) -> bool:
        return True

    @property
    def present(self) -> frozenset[str]:
        return frozenset({self.number})

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.columns, Field(self.number, INTEGER))

    @property
    def key(self) -> tuple[str, ...]:
        return (self.number,) if len(self.rows) > 1 else ()


@dataclass(frozen=True)
class Filter(_Map, _SameRows):
    """The rows for which the predicate is true (not false, not NULL). It may compare with the epoch's `now()`."""

    predicate: exp.Expr

    words: ClassVar[str] = "a filter"

    @property
    def rule(self) -> Rule:
        if self.reads_now:
            return Rule(
                "the changes that satisfy the predicate at the epoch's time; and the old rows whose answer differs "
                "between the last epoch's time and this one's",
                "none: which rows time has moved is found by the predicate's bounds in the input",
            )
        return Rule("the changes that satisfy the predicate, with their weights", _MAP)

    @property
    def expressions(self) -> tuple[exp.Expr, ...]:
        return (self.predicate,)

    @lazy
    def reads_now(self) -> bool:
        """Whether time alone changes its rows."""
        return reads_now(self.predicate)

    @property
    def grows(self) -> bool:
        return self.input.grows and not self.reads_now

    @lazy
    def present(self) -> frozenset[str]:
        return self.input.present | _compared(self.predicate)


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
class Project(_Map):
    """Computes its items for each row. Its key is that of its input, under the names by which the items pass it on."""

    items: tuple[Item, ...]

    words: ClassVar[str] = "a projection"

    @property
    def rule(self) -> Rule:
        return Rule("the same expressions over the changes, with their weights", _MAP)

    @property
    def expressions(self) -> tuple[exp.Expr, ...]:
        return tuple(item.expression for item in self.items)

    @lazy
    def present(self) -> frozenset[str]:
        below = self.input.present
        return frozenset(i.name for i in self.items if i.source in below or isinstance(i.expression, exp.Literal))

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

    def source_of(self, name: str) -> str | None:
        """Return the input field that an output passes on unchanged; None if it is computed, or none of the outputs."""
        return next((item.source for item in self.items if item.name == name), None)

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(self.passed_on.get(name, name) for name in self.input.key)


@dataclass(frozen=True)
class Unnest(_Map):
    """One row for each element of an array, with the element and its position (from 1); none for an empty array."""

    array: exp.Expr
    element: Field
    position: str

    words: ClassVar[str] = "unnest"

    @property
    def rule(self) -> Rule:
        return Rule("a change for each element of the array of a changed row, with its weight", _MAP)

    @property
    def expressions(self) -> tuple[exp.Expr, ...]:
        return (self.array,)

    @property
    def present(self) -> frozenset[str]:
        return self.input.present | {self.position}

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.input.fields, self.element, Field(self.position, BIGINT))

    @property
    def key(self) -> tuple[str, ...]:
        return (*self.input.key, self.position)


@dataclass(frozen=True)
class Join(Operator):
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
    def words(self) -> str:  # type: ignore[override]
        return JOIN_TYPES[self.kind].words

    @property
    def rule(self) -> Rule:
        return JOIN_TYPES[self.kind].rule

    @property
    def expressions(self) -> tuple[exp.Expr, ...]:
        return () if self.condition is None else (self.condition,)

    @property
    def is_temporal(self) -> bool:
        return self.kind in (TEMPORAL, TEMPORAL_LEFT)

    @property
    def grows(self) -> bool:
        return JOIN_TYPES[self.kind].grows and all(side.grows for side in self.linear_inputs)

    @lazy
    def present(self) -> frozenset[str]:
        left, right = self.left.present, self.right.present
        met = _compared(self.condition) if self.condition is not None else frozenset()
        if self.kind in (INNER, TEMPORAL, AS_OF):
            return left | right | met
        if self.kind in (SEMI, DYNAMIC):
            return left | (met & {field.name for field in self.left.fields})
        return frozenset() if self.kind == FULL else left

    @property
    def linear_inputs(self) -> tuple[Node, ...]:
        return self.inputs if self.kind == INNER else () if self.kind == FULL else (self.left,)

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.left.fields if self.kind in LEFT_ONLY else self.left.fields + self.right.fields

    @property
    def key(self) -> tuple[str, ...]:
        if self.kind in (*LEFT_ONLY, AS_OF, AS_OF_LEFT):
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
class UnionAll(Operator):
    """All rows of its inputs, whose fields have equal names and types.

    `width` counts the fields the query asked for; keys come after. `branch_key` is how a row is told from those of
    the other inputs; empty until `rules.carry_keys` adds it.
    """

    branches: tuple[Node, ...]
    width: int
    branch_key: tuple[str, ...] = ()

    words: ClassVar[str] = "UNION ALL"
    is_map: ClassVar[bool] = True

    @property
    def rule(self) -> Rule:
        return Rule("the changes of all inputs", "none: the branch number and keys tell whose row it is")

    @property
    def grows(self) -> bool:
        return all(branch.grows for branch in self.branches)

    @lazy
    def present(self) -> frozenset[str]:
        return frozenset.intersection(*(branch.present for branch in self.branches))

    @property
    def linear_inputs(self) -> tuple[Node, ...]:
        return self.branches

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

    words: ClassVar[str] = "an aggregation"

    @property
    def rule(self) -> Rule:
        return Rule(
            "for the groups touched: minus the stored row, plus the merged one",
            "a row for each group: counts and sums add up, min and max compare; "
            "only what cannot is computed again from the input, for the groups that need it",
        )

    @property
    def expressions(self) -> tuple[exp.Expr, ...]:
        return tuple(call.expression for call in self.calls if call.expression is not None)

    @lazy
    def present(self) -> frozenset[str]:
        return (self.input.present & set(self.keys)) | {c.name for c in self.calls if c.function == "count"}

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

    @property
    def words(self) -> str:  # type: ignore[override]
        return "ORDER BY … LIMIT" if self.order else "LIMIT"

    @property
    def rule(self) -> Rule:
        if self.limit is None:
            return Rule(
                "for the partitions touched: minus the old first rows, plus the new ones, of all rows of the partition",
                "none: without a limit every row is needed again, and the input has them",
            )
        return Rule(
            "for the partitions touched: minus the stored first rows, plus the first of them and the changes; "
            "a partition that lost one of them is read again",
            "the first offset + limit rows of each partition: what is behind them cannot show until one is lost",
        )

    @property
    def present(self) -> frozenset[str]:
        return self.input.present

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

    words: ClassVar[str] = "a window function"

    @property
    def rule(self) -> Rule:
        return Rule(
            "for the partitions touched: minus the old rows, plus the new ones",
            "none: the partition's rows are read from the input when one of them changes",
        )

    @property
    def expressions(self) -> tuple[exp.Expr, ...]:
        return tuple(call.expression for call in self.calls)

    @property
    def present(self) -> frozenset[str]:
        return self.input.present

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

    words: ClassVar[str] = "a change log"

    @property
    def rule(self) -> Rule:
        return Rule("each change of a row as a row that stays, with its code and the epoch's time", _MAP)

    @property
    def grows(self) -> bool:
        return True

    @property
    def present(self) -> frozenset[str]:
        return self.input.present | {self.code.name, self.time.name}

    @property
    def linear_inputs(self) -> tuple[Node, ...]:
        return (self.input,)

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

    words: ClassVar[str] = "a temporal join"

    @property
    def rule(self) -> Rule:
        if isinstance(self.input, ChangeLog):
            return Rule("the rows that the log gains", "all rows: a change that is over cannot be seen again")
        return Rule(
            "for the left rows that change: minus their stored results, plus those of arriving rows",
            "all rows: what was joined once cannot be joined again as it was then",
        )

    @property
    def grows(self) -> bool:
        return isinstance(self.input, ChangeLog)

    @property
    def present(self) -> frozenset[str]:
        return self.input.present

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


def equal_in_files(node: Node) -> frozenset[str]:
    """Return the fields that `=` can compare with rows of files: those `present` whose type is read as it is stored."""
    return node.present & {field.name for field in node.fields if field.type.is_read_as_stored}


def with_inputs(node: Node, inputs: tuple[Node, ...]) -> Node:
    """Return the same node over other inputs."""
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
    """Yield every node, inputs first."""
    for child in node.inputs:
        yield from walk(child)
    yield node


def keeps_state(node: Node) -> TypeGuard[Stateful]:
    """Return whether rows of a node are stored between epochs."""
    return isinstance(node, Aggregate | Memo) or (isinstance(node, TopN) and node.limit is not None)


def changes_by_row(node: Node) -> bool:
    """Return whether a change of a node has as many rows as its inputs' changes or fewer, as DuckDB estimates."""
    return all(part.is_map or isinstance(part, Values) for part in walk(node))


def has_one_row(node: Node) -> bool:
    """Return whether a node always has exactly one row."""
    match node:
        case Aggregate(keys=keys):
            return not keys
        case Project(input=below):
            return has_one_row(below)
    return False


def reads_now(expression: exp.Expr) -> bool:
    return expression.find(exp.CurrentTimestamp) is not None


def _compared(predicate: exp.Expr) -> frozenset[str]:
    """Return the fields that a true condition has compared, because a comparison with NULL is not true."""
    found = set()
    for part in conjuncts(predicate):
        if isinstance(part, exp.EQ | exp.GT | exp.GTE | exp.LT | exp.LTE | exp.NEQ):
            found |= {side.name for side in (part.this, part.expression) if isinstance(side, exp.Column)}
    return frozenset(found)


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
    """Return whether an expression reads at least one field, and none but these."""
    used = {reference.name for reference in expression.find_all(exp.Column)}
    return bool(used) and used <= names
