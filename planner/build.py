"""Bound syntax to nodes. What has no incremental rule is refused here, by name and place."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from catalog import errors
from catalog.errors import Error
from catalog.model import Relation
from catalog.types import BIGINT, BOOLEAN, DOUBLE, NUMERIC, Type
from planner.bind import BoundQuery, data_type, type_of
from planner.nodes import (
    Aggregate,
    Call,
    Filter,
    Item,
    Join,
    Node,
    Project,
    Scan,
    UnionAll,
    column,
    count_rows_call,
)
from planner.trees import position_of

_HINT = (
    "Views can filter, project, join (inner), UNION ALL and aggregate with count, sum, avg, min and max, "
    "over tables and other views."
)


@dataclass
class _Builder:
    tables: dict[str, Relation]
    scans: int = 0
    ctes: dict[str, exp.Query] = field(default_factory=dict)


def build(bound: BoundQuery) -> Project:
    """The plan of a query; its root is a Project whose items are the output columns. Raises Error 0A000."""
    node = _build_query(_Builder(bound.tables), bound.tree)
    return (
        node
        if isinstance(node, Project)
        else _rename(node, [f.name for f in node.fields], [f.type for f in node.fields])
    )


def _written(node: exp.Expr) -> str:
    return node.sql(dialect="postgres").replace('"', "")


def _refuse(what: str, node: exp.Expr) -> Error:
    return Error(
        f"{what} is not supported in a materialized view",
        errors.FEATURE_NOT_SUPPORTED,
        hint=_HINT,
        position=position_of(node),
    )


def _build_query(builder: _Builder, query: exp.Expr, positional: bool = False) -> Node:
    """`positional` gives the outputs numbers for names: only their order counts."""
    for cte in query.args["with_"].expressions if query.args.get("with_") else ():
        if query.args["with_"].recursive:
            raise Error("RECURSIVE CTE is not supported", errors.FEATURE_NOT_SUPPORTED)
        builder.ctes[cte.alias] = cte.this
    match query:
        case exp.Subquery():
            return _build_query(builder, query.this, positional)
        case exp.Select():
            return _build_select(builder, query, positional)
        case exp.Union():
            return _build_union(builder, query)
    raise _refuse(type(query).__name__.upper(), query)


def _build_union(builder: _Builder, union: exp.Union) -> Node:
    if union.args.get("distinct"):
        raise _refuse("UNION without ALL", union)
    _refuse_clauses(union, ("limit", "offset"))
    left, right = _build_query(builder, union.left), _build_query(builder, union.right, positional=True)
    branches = [
        branch for side in (left, right) for branch in (side.branches if isinstance(side, UnionAll) else (side,))
    ]
    first = branches[0]
    aligned = []
    for branch in branches:
        if len(branch.fields) != len(first.fields):
            raise Error("each UNION query must have the same number of columns", errors.SYNTAX_ERROR)
        aligned.append(_rename(branch, [f.name for f in first.fields], [f.type for f in first.fields]))
    return UnionAll(tuple(aligned), len(first.fields))


def _rename(node: Node, names: list[str], types: list[Type]) -> Project:
    """A projection that gives the fields other names, and casts where the type differs."""
    items = []
    for source, name, type_ in zip(node.fields, names, types, strict=True):
        expression: exp.Expr = column(source.name)
        if source.type != type_:
            expression.type = data_type(source.type)
            expression = exp.cast(expression, data_type(type_))
        items.append(Item(name, expression, type_))
    return Project(node, tuple(items))


_PARTS: dict[type[exp.Expr], str] = {
    exp.Window: "a window function",
    exp.Exists: "EXISTS",
    exp.In: "IN with a subquery",
    exp.Explode: "a set-returning function",
    exp.Unnest: "unnest",
}

_UNSUPPORTED_CLAUSES = {
    "distinct": "DISTINCT",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "windows": "WINDOW",
    "qualify": "QUALIFY",
    "laterals": "LATERAL",
    "locks": "FOR UPDATE",
}


def _refuse_clauses(query: exp.Expr, clauses: tuple[str, ...]) -> None:
    for clause in clauses:
        if query.args.get(clause):
            raise _refuse(_UNSUPPORTED_CLAUSES[clause], query)


def _build_select(builder: _Builder, select: exp.Select, positional: bool) -> Node:
    _refuse_clauses(select, tuple(_UNSUPPORTED_CLAUSES))
    for part in select.find_all(*_PARTS):
        if part.parent_select is select and not (isinstance(part, exp.In) and not part.args.get("query")):
            raise _refuse(next(name for kind, name in _PARTS.items() if isinstance(part, kind)), part)
    for subquery in select.find_all(exp.Subquery):
        if subquery.parent_select is select and not isinstance(subquery.parent, exp.From | exp.Join):
            raise _refuse("a subquery in an expression", subquery)
    source = select.args.get("from_")
    if source is None:
        raise _refuse("SELECT without FROM", select)
    node = _build_source(builder, source.this)
    for join in select.args.get("joins") or ():
        node = _build_join(builder, node, join)
    if where := select.args.get("where"):
        node = Filter(node, _scalar(where.this))
    if select.args.get("group") or any(_aggregates(item) for item in select.selects):
        return _build_aggregate(node, select, positional)
    if having := select.args.get("having"):
        raise _refuse("HAVING without GROUP BY", having)
    return Project(node, _outputs(select, {}, positional))


def _build_source(builder: _Builder, source: exp.Expr) -> Node:
    if isinstance(source, exp.Table) and source.name in builder.tables and not isinstance(source.this, exp.Func):
        builder.scans += 1
        relation = builder.tables[source.name]
        columns = [c.name for c in relation.visible] + [k for k in relation.key if not _is_visible(relation, k)]
        return Scan(f"i{builder.scans - 1}", relation, source.alias, tuple(columns))
    if isinstance(source, exp.Table) and source.name in builder.ctes:
        return _under_alias(_build_query(builder, builder.ctes[source.name]), source.alias)
    if isinstance(source, exp.Subquery) and not source.args.get("pivots"):
        return _under_alias(_build_query(builder, source.this), source.alias)
    raise _refuse(f"reading from {_written(source)}", source)


def _is_visible(relation: Relation, name: str) -> bool:
    return any(c.name == name for c in relation.visible)


def _under_alias(node: Node, alias: str) -> Project:
    return _rename(node, [f"{alias}.{f.name}" for f in node.fields], [f.type for f in node.fields])


def _build_join(builder: _Builder, left: Node, join: exp.Join) -> Node:
    side, kind, method = join.side.upper(), join.kind.upper(), join.method.upper()
    if side or method or kind not in ("", "INNER", "CROSS"):
        raise _refuse(" ".join(word for word in (method, side, kind, "JOIN") if word), join)
    condition = join.args.get("on")
    return Join(left, _build_source(builder, join.this), _scalar(condition) if condition is not None else None)


def _scalar(node: exp.Expr) -> exp.Expr:
    """An expression over flat field names."""

    def flatten(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column):
            return part
        flat = column(f"{part.table}.{part.name}")
        flat.type = part.type
        return flat

    return node.copy().transform(flatten)


def _outputs(select: exp.Select, replacements: dict[str, exp.Expr], positional: bool) -> tuple[Item, ...]:
    """The items of a SELECT list. Raises Error 42701 when two have one name."""
    items: list[Item] = []
    for number, selected in enumerate(select.selects):
        expression = selected.this if isinstance(selected, exp.Alias) else selected
        name = f"_{number}" if positional else selected.alias_or_name
        if any(item.name == name for item in items):
            raise Error(
                f'column "{name}" specified more than once', errors.DUPLICATE_COLUMN, position=position_of(selected)
            )
        items.append(Item(name, _replace(_scalar(expression), replacements), type_of(expression)))
    return tuple(items)


def _replace(node: exp.Expr, replacements: dict[str, exp.Expr]) -> exp.Expr:
    """Swap whole sub-expressions, known by their SQL text."""

    def swap(part: exp.Expr) -> exp.Expr:
        found = replacements.get(_text(part))
        return found.copy() if found is not None else part

    return node.transform(swap) if replacements else node


def _text(node: exp.Expr) -> str:
    return node.sql(dialect="postgres")


def _aggregates(node: exp.Expr) -> list[exp.Expr]:
    """Aggregate calls, each with its FILTER clause if it has one."""
    calls: list[exp.Expr] = []
    for call in node.find_all(exp.AggFunc):
        calls.append(call.parent if isinstance(call.parent, exp.Filter) else call)
    return calls


def _build_aggregate(node: Node, select: exp.Select, positional: bool) -> Node:
    """Project the keys and arguments, aggregate them, compute what was asked from the state."""
    group = select.args.get("group")
    for clause in ("grouping_sets", "cube", "rollup", "all"):
        if group is not None and group.args.get(clause):
            raise _refuse(clause.replace("_", " ").upper(), group)
    keys = list(group.expressions if group is not None else ())
    having = select.args.get("having")
    calls = [call for part in [*select.selects, *([having] if having else [])] for call in _aggregates(part)]

    inputs: dict[str, Item] = {}
    replacements: dict[str, exp.Expr] = {}
    for key in keys:
        scalar = _scalar(key)
        name = scalar.name if isinstance(scalar, exp.Column) else _text(scalar)
        inputs.setdefault(name, Item(name, scalar, type_of(key)))
        replacements[_text(scalar)] = column(name)
    key_names = tuple(dict.fromkeys(inputs))
    state: dict[str, Call] = {}
    for call in calls:
        replacements[_text(_scalar(call))] = _state_of(call, inputs, state)
    aggregate: Node = Aggregate(Project(node, tuple(inputs.values())), key_names, (count_rows_call(), *state.values()))
    if having:
        aggregate = Filter(aggregate, _replace(_scalar(having.this), replacements))
    project = Project(aggregate, _outputs(select, replacements, positional))
    _check_grouped(project, select)
    return project


def _check_grouped(project: Project, select: exp.Select) -> None:
    available = {f.name for f in project.input.fields}
    for item, source in zip(project.items, select.selects, strict=True):
        for reference in item.expression.find_all(exp.Column):
            if reference.name not in available:
                raise Error(
                    f'column "{reference.name}" must appear in the GROUP BY clause or be used in an aggregate function',
                    errors.GROUPING_ERROR,
                    position=position_of(source),
                )


def _state_of(call: exp.Expr, inputs: dict[str, Item], state: dict[str, Call]) -> exp.Expr:
    """Add the calls an aggregate is computed from, and its argument; the expression that computes it."""
    condition = None
    if isinstance(call, exp.Filter):
        condition = _scalar(call.expression.this)
        call = call.this
    if isinstance(call.this, exp.Distinct) or isinstance(call, exp.CountIf):
        raise _refuse(f"{_written(call)}", call)
    if isinstance(call, exp.Count) and isinstance(call.this, exp.Star):
        if condition is None:
            return column("_count")
        return column(_add(state, "count", _argument(inputs, exp.true(), BOOLEAN, condition), BIGINT))
    if call.expressions or not isinstance(call, exp.Count | exp.Sum | exp.Avg | exp.Min | exp.Max):
        raise _refuse(f"the aggregate {_written(call)}", call)
    type_ = type_of(call.this)
    argument = _argument(inputs, _scalar(call.this), type_, condition)
    match call:
        case exp.Min() | exp.Max():
            return column(_add(state, type(call).__name__.lower(), argument, type_))
        case exp.Count():
            return column(_add(state, "count", argument, BIGINT))
    if not type_.is_numeric:
        raise Error(
            f"function {_written(call)} does not exist for type {type_}",
            errors.UNDEFINED_FUNCTION,
            position=position_of(call),
        )
    count = column(_add(state, "count", argument, BIGINT))
    total = column(_add(state, "sum", argument, sum_type(type_)))
    if isinstance(call, exp.Avg):
        value: exp.Expr = exp.Div(
            this=exp.cast(total, data_type(DOUBLE)), expression=exp.cast(count.copy(), data_type(DOUBLE))
        )
    else:
        value = total
    return exp.Case().when(exp.GT(this=count, expression=exp.Literal.number(0)), value)


def sum_type(type_: Type) -> Type:
    """PostgreSQL's type of sum(x) (documentation, table "General-Purpose Aggregate Functions")."""
    match type_.name:
        case "smallint" | "integer":
            return BIGINT
        case "bigint":
            return Type("numeric", 38, 0)
        case "numeric":
            return Type("numeric", 38, NUMERIC.scale or type_.scale if type_.precision is not None else 10)
    return type_


def _argument(inputs: dict[str, Item], expression: exp.Expr, type_: Type, condition: exp.Expr | None) -> str:
    if condition is not None:
        expression = exp.Case().when(condition, expression)
    name = expression.name if isinstance(expression, exp.Column) else _text(expression)
    inputs.setdefault(name, Item(name, expression, type_))
    return name


def _add(state: dict[str, Call], function: str, argument: str, type_: Type) -> str:
    name = f"_{function}({argument})"
    state.setdefault(name, Call(name, function, argument, type_))
    return name
