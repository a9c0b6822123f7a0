"""The shared parts of the building step: its state, expressions over flat names, and refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Relation
from sparkwave.catalog.types import QUOTIENT, Type
from sparkwave.planner.bind.binder import data_type, type_of
from sparkwave.planner.functions.result_types import common, keeps_digits
from sparkwave.planner.functions.structs import same_names
from sparkwave.planner.parse.trees import Sparkwave, position_of
from sparkwave.planner.plan.nodes import Field, Item, Node, Project, Scan, column, transform


@dataclass
class Builder:
    """The names in reach and the numbers used so far. `query(tree, positional)` builds a query inside this one.

    With `positional` the outputs are named by number, because only their order counts. `groups(select, rows, keys)`
    builds the aggregate of a correlated subquery: its groups by these keys, and its outputs over them. `lateral(left,
    source, join)` joins a subquery in FROM that may read the rows before it. `made` are sources that are built already.
    """

    tables: dict[str, Relation]
    query: Callable[[Builder, exp.Expr, bool], Node]
    groups: Callable[[Builder, exp.Select, Node, list[exp.Expr]], tuple[Node, list[exp.Expr]]]
    lateral: Callable[[Builder, Node, exp.Expr, exp.Join], Node]
    ctes: dict[str, exp.CTE] = field(default_factory=dict)
    made: dict[str, Node] = field(default_factory=dict)
    scans: Iterator[int] = field(default_factory=count)
    names: Iterator[int] = field(default_factory=count)

    def again(self, node: Node) -> Node:
        """Return the same rows from scans of their own, because a plan shares no scans."""
        return transform(node, lambda n: replace(n, input=f"i{next(self.scans)}") if isinstance(n, Scan) else n)

    def fresh(self, stem: str) -> str:
        """Return a new field or alias name."""
        return f"_{stem}{next(self.names)}"


def written(node: exp.Expr) -> str:
    """Return an expression as the user would write it."""
    return node.sql(dialect="postgres").replace('"', "")


def refuse(what: str, node: exp.Expr, hint: str | None = None) -> Error:
    """Return the error for syntax without an incremental rule, with its position."""
    return Error(
        f"{what} is not supported in a materialized view",
        errors.FEATURE_NOT_SUPPORTED,
        hint=hint,
        position=position_of(node),
    )


def constant_of(clause: exp.Expr | None) -> int | None:
    """Return the constant of LIMIT or OFFSET."""
    if clause is None:
        return None
    count = clause.args.get("count") if isinstance(clause, exp.Fetch) else clause.expression
    if count is None:
        return 1
    if isinstance(count, exp.Null):
        return None
    bare = count.unnest()
    if not (isinstance(bare, exp.Literal) and bare.is_int):
        raise refuse("a LIMIT or OFFSET that is not a constant", clause)
    return int(bare.name)


def scalar(node: exp.Expr) -> exp.Expr:
    """Return an expression over flat field names."""

    def flatten(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column) or not part.table:
            return part
        flat = column(f"{part.table}.{part.name}")
        flat.type = part.type
        return flat

    return node.copy().transform(flatten)


def text(node: exp.Expr) -> str:
    """Return the text that identifies equal expressions."""
    return node.sql(dialect=Sparkwave)


def replaced(node: exp.Expr, replacements: dict[str, exp.Expr]) -> exp.Expr:
    """Replace whole sub-expressions, identified by their SQL text."""

    def swap(part: exp.Expr) -> exp.Expr:
        found = replacements.get(text(part))
        return found.copy() if found is not None else part

    return node.transform(swap) if replacements else node


def typed(node: exp.Expr, type_: Type) -> exp.Expr:
    """Set the type of a node and return it."""
    node.type = data_type(type_)
    return node


def typed_column(name: str, type_: Type) -> exp.Column:
    """Return a reference to a field, with its type."""
    reference = column(name)
    reference.type = data_type(type_)
    return reference


def typed_output(source: str, name: str, type_: Type) -> exp.Column:
    """Return a reference to the output of a source in FROM, with its type."""
    reference = exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(source, quoted=True))
    reference.type = data_type(type_)
    return reference


def names_of(node: Node) -> set[str]:
    return {f.name for f in node.fields}


def columns_in(node: exp.Expr) -> set[str]:
    """Return the names of the fields that an expression over flat names reads."""
    return {reference.name for reference in node.find_all(exp.Column)}


def added(node: Node, items: list[Item]) -> Node:
    """Return the node with computed fields after its own."""
    if not items:
        return node
    own = tuple(Item(f.name, column(f.name), f.type) for f in node.fields)
    return Project(node, own + tuple(items))


def picked(node: Node, fields: Iterable[Field]) -> Project:
    """Return a projection to some of the node's fields."""
    return Project(node, tuple(Item(f.name, typed_column(f.name, f.type), f.type) for f in fields))


def renamed(node: Node, names: list[str], types: list[Type]) -> Project:
    """Return a projection that renames the fields, and casts where the type differs."""
    items = []
    for source, name, type_ in zip(node.fields, names, types, strict=True):
        expression: exp.Expr = typed_column(source.name, source.type)
        if source.type != type_:
            expression = exp.cast(expression, data_type(type_))
        items.append(Item(name, expression, type_))
    return Project(node, tuple(items))


def prefixed(node: Node, alias: str) -> Project:
    """Return a projection that puts the outputs of a query under an alias."""
    return renamed(node, [f"{alias}.{f.name}" for f in node.fields], [f.type for f in node.fields])


_WIDTH = ("smallint", "integer", "bigint", "numeric", "real", "double precision")


def common_type(types: list[Type | None], node: exp.Expr) -> Type:
    """Return the common type of values of these types (PostgreSQL documentation 10.5); None is an untyped NULL.

    Raises Error 42804 when there is none.
    """
    known = [type_ for type_ in types if type_ is not None]
    if not known:
        return Type("character varying")
    if all(type_ == known[0] for type_ in known):
        return known[0]
    if all(type_.is_numeric for type_ in known):
        together = common(tuple(known)) if keeps_digits() or QUOTIENT in known else None
        if together is not None:
            return together
        widest = max(known, key=lambda type_: _WIDTH.index(type_.name))
        same = [type_ for type_ in known if type_.name == widest.name]
        return widest if all(type_ == widest for type_ in same) else Type(widest.name)
    if all(type_.is_text for type_ in known):
        return Type("character varying")
    moments = {"date", "timestamp without time zone", "timestamp with time zone"}
    if all(type_.name in moments and not type_.dimensions for type_ in known):
        return max(known, key=lambda type_: len(type_.name))
    if any(type_.fields for type_ in known):
        found = common(tuple(known))
        if found is not None and all(same_names(type_, found) for type_ in known):
            return found
    elif len({(type_.name, type_.dimensions) for type_ in known}) == 1:
        found = common(tuple(known)) if keeps_digits() else None
        return found or Type(known[0].name, dimensions=known[0].dimensions)
    other = next(type_ for type_ in known if type_ != known[0])
    raise Error(
        f"types {known[0].without_digits} and {other.without_digits} cannot be matched",
        errors.DATATYPE_MISMATCH,
        position=position_of(node),
    )


def type_or_null(node: exp.Expr) -> Type | None:
    """Return the type of an expression; None for a bare NULL."""
    return None if isinstance(node.unnest(), exp.Null) else type_of(node)
