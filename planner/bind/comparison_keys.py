"""Compares, sorts and groups jsonb by its meaning, as PostgreSQL does, where DuckDB compares texts.

A value that is compared or sorted becomes `jsonb_key(value)`, a text in the order of documents. A value that is
grouped, and may be an output, becomes `jsonb_canonical(value)`, a document whose equals have the same text. Intervals
that are grouped become `justify_interval(value)`, also those in arrays, rows and maps: of a group of '30 days' and
'1 month' any may be the key, and a view has to have the same one after any changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from sqlglot import exp

from sparkwave.catalog.model import Relation
from sparkwave.catalog.types import INTERVAL, JSONB, Type
from sparkwave.planner.functions.json_checks import COMPARISONS
from sparkwave.planner.functions.justified import holds_intervals
from sparkwave.planner.functions.typed import data_type, type_of_part
from sparkwave.planner.parse.constant_runs import ConstantRun
from sparkwave.planner.parse.constant_runs import expanded as with_each_constant
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.parameter_runs import ParameterRun
from sparkwave.planner.parse.parameter_runs import expanded as with_each_parameter
from sparkwave.planner.parse.set_returning import ROW_FUNCTIONS
from sparkwave.planner.parse.trees import selects_of

KEY, KEYS, CANONICAL = "jsonb_key", "jsonb_keys_of_each", "jsonb_canonical"
Typed = Callable[[list[exp.Expr]], Sequence[exp.Expr | None]]

_OUTPUTS = ("expressions", "having", "qualify", "order", "group", "distinct")


def _canonical(type_: Type | None) -> str | None:
    """Return the function whose value is the same for equal values of a type; None if equal values are the same."""
    if type_ == JSONB:
        return CANONICAL
    if type_ is None or not holds_intervals(type_):
        return None
    return "justify_interval" if type_ == INTERVAL else "justify_intervals"


def may_need_keys(tree: exp.Expr, read: Iterable[Relation]) -> bool:
    """Return whether a tree, or a relation that it reads, may have values that are compared by keys."""
    if any(_canonical(column.type) for relation in read for column in relation.visible):
        return True
    kinds = (exp.DType.JSON, exp.DType.JSONB, exp.DType.INTERVAL)
    return any(
        node.this in kinds if isinstance(node, exp.DataType) else "json" in node.name.lower()
        for node in tree.find_all(exp.DataType, exp.Anonymous)
    )


def compare_by_keys(tree: exp.Expr, typed: Typed) -> bool:
    """Compare, sort and group the jsonb of a tree, changed in place, and group its intervals.

    Returns whether the tree holds any.

    `typed` gives the typed counterparts of some nodes, None where there is none.
    """
    compared, sorts, grouped = list(_compared(tree)), list(_sorts(tree)), list(_grouped(tree))
    aggregated = list(_aggregated(tree))
    values = [*(part for parts in compared for part in parts), *(value for _, value in (*sorts, *grouped)), *aggregated]
    nodes = list({id(value): value for value in values}.values())
    if not nodes:
        return False
    known = {id(node): part for node, part in zip(nodes, typed(nodes), strict=True) if part is not None}
    types = {number: type_of_part(part) for number, part in known.items()}
    found = {number for number, type_ in types.items() if type_ == JSONB}
    for parts in compared:
        if any(id(part) in found for part in parts):
            for part in _each(_of_nullif(parts[0].parent) or parts):
                _compare(part)
    for place, value in sorts:
        if id(value) in found:
            _sort(place, value)
    for value in aggregated:
        if id(value) in found:
            _wrap(value, CANONICAL)
    has_keys = False
    for select, value in grouped:
        if (function := _canonical(types.get(id(value)))) is not None:
            _group(select, value, function)
            has_keys = True
        elif value is select and id(value) in known:
            _group_star(select, known[id(select)])
    return bool(found) or has_keys


def _compared(tree: exp.Expr) -> Iterator[Sequence[exp.Expr]]:
    """Yield the values that are compared with each other, or among themselves."""
    for node in tree.walk():
        if isinstance(node, COMPARISONS) and not isinstance(node.parent, exp.Update | exp.OnConflict):
            yield from _operands(node)
        elif isinstance(node, exp.Case) and node.this is not None:
            yield [node.this, *(branch.this for branch in node.args["ifs"])]
        elif isinstance(node, exp.Window):
            yield from ([part] for part in node.args.get("partition_by") or ())
        elif isinstance(node, exp.Distinct) and isinstance(node.args.get("on"), exp.Tuple):
            yield from ([part] for part in node.args["on"].expressions)


def _operands(node: exp.Expr) -> Iterator[list[exp.Expr]]:
    """Yield the values that a comparison compares, by their places in rows.

    The values of a query are its outputs. Rows in lists, and queries with `*`, are compared as they are.
    """
    sides = [_values(part, in_query=node.args.get("query") is not None) for part in node.iter_expressions()]
    widths = {len(side) for side in sides}
    if len(widths) == 1:
        for place in range(widths.pop()):
            yield [value for side in sides for value in side[place]]


def _of_nullif(node: exp.Expr | None) -> Sequence[exp.Expr]:
    """Let NULLIF be a CASE whose value is not the key that is compared. Returns what is compared; nothing of another
    node."""
    if not isinstance(node, exp.Nullif):
        return ()
    value, other = node.this, node.expression
    compared = exp.EQ(this=value.copy(), expression=other)
    is_text = value.unnest().is_string or isinstance(value.unnest(), exp.Parameter | exp.Placeholder)
    kept = exp.cast(value, data_type(JSONB), copy=False) if is_text else value
    case = exp.Case(ifs=[exp.If(this=compared, true=exp.Null())], default=kept)
    is_output = isinstance(node.parent, exp.Select) and node.arg_key == "expressions"
    node.replace(exp.alias_(case, "nullif", quoted=True, copy=False) if is_output else case)
    return compared.this, compared.expression


def _values(part: exp.Expr, in_query: bool) -> list[list[exp.Expr]]:
    """Return the values of an operand at each place of its rows; none where they are not known."""
    if isinstance(part, exp.Tuple):
        return [[value] for value in part.expressions] if in_query else []
    inner = part.this.unnest() if isinstance(part, exp.Any | exp.All) else part.unnest()
    if not isinstance(inner, exp.Query):
        return [[part]]
    rows = [[item.unalias() for item in select.expressions] for select in selects_of(inner)]
    is_known = not any(isinstance(item, exp.Star) or item.is_star for row in rows for item in row)
    return [list(values) for values in zip(*rows, strict=False)] if is_known else []


def _each(parts: Sequence[exp.Expr]) -> Sequence[exp.Expr]:
    """Return the values, each of a long list as a node of its own."""
    place = next((part.parent for part in parts if isinstance(part, ConstantRun | ParameterRun)), None)
    if place is None:
        return parts
    with_each_constant(with_each_parameter(place))
    return list(place.iter_expressions())


def _aggregated(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the values of DISTINCT and WITHIN GROUP in aggregates, and of an ORDER BY that has to have the same one."""
    for distinct in tree.find_all(exp.Distinct):
        if not isinstance(distinct.parent, exp.Query):
            yield from distinct.expressions
            if isinstance(distinct.parent, exp.Order):
                yield from (ordered.this for ordered in distinct.parent.expressions)
    for group in tree.find_all(exp.WithinGroup):
        yield from (ordered.this for ordered in group.expression.expressions)


def _sorts(tree: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """Yield each key of ORDER BY and its value: another node where the name or the number of an output stands for it.

    DuckDB sorts the rows of a set operation by its columns alone.
    """
    for node in tree.find_all(exp.Ordered):
        order = node.parent
        query = order.parent if order is not None else None
        is_apart = isinstance(query, exp.SetOperation | exp.WithinGroup)
        if not is_apart and not (order is not None and isinstance(order.this, exp.Distinct)):
            output = _output(query, node.this) if isinstance(query, exp.Select) else None
            yield node.this, node.this if output is None else output.unalias()


def _output(select: exp.Select, name: exp.Expr) -> exp.Expr | None:
    """Return the item of a select list that a bare name or a number stands for."""
    if isinstance(name, exp.Literal) and not name.is_string and name.name.isdigit():
        place = int(name.name) - 1
        return select.expressions[place] if 0 <= place < len(select.expressions) else None
    if not isinstance(name, exp.Column) or name.table:
        return None
    named = (item for item in select.expressions if isinstance(item, exp.Alias))
    return next((item for item in named if folded(item.args["alias"]) == folded(name.this)), None)


def _grouped(tree: exp.Expr) -> Iterator[tuple[exp.Select, exp.Expr]]:
    """Yield each value that is grouped with equal ones, and its query: keys, outputs of DISTINCT and of set operations.

    UNION ALL compares nothing. A query with `*` is a value itself.
    """
    for node in tree.walk():
        if isinstance(node, exp.SetOperation) and (node.args.get("distinct") or not isinstance(node, exp.Union)):
            for select in selects_of(node):
                yield from _outputs(select)
        if not isinstance(node, exp.Select):
            continue
        group, distinct = node.args.get("group"), node.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is None:
            yield from _outputs(node)
        for key in group.find_all(exp.Column, exp.Func, exp.Binary, exp.Literal) if group is not None else ():
            if isinstance(key.parent, exp.Group | exp.Tuple | exp.Paren | exp.Cube | exp.Rollup | exp.GroupingSets):
                output = _output(node, key)
                yield node, key if output is None else output.unalias()


def _outputs(select: exp.Select) -> Iterator[tuple[exp.Select, exp.Expr]]:
    yield from ((select, select if isinstance(item, exp.Star) else item.unalias()) for item in select.expressions)


def _group(select: exp.Select, value: exp.Expr, function: str) -> None:
    """Let a query have the canonical form of a value wherever its outputs and keys have the value."""
    value = value.copy()
    parts = (part for name in _OUTPUTS for part in _listed(select.args.get(name)))
    for node in [node for part in parts for node in part.walk() if _is_same(node, value)]:
        if not _names_output(select, node) and not (
            isinstance(node.parent, exp.Anonymous) and node.parent.name == function
        ):
            _wrap(node, function)


def _names_output(select: exp.Select, node: exp.Expr) -> bool:
    """Return whether a key of ORDER BY is the bare name of an output, which has the canonical form already."""
    is_bare = isinstance(node, exp.Column) and not node.table and isinstance(node.parent, exp.Ordered)
    return is_bare and any(item.alias_or_name == node.name for item in select.expressions)


def _group_star(select: exp.Select, typed: exp.Expr) -> None:
    """Let `*` have the canonical form of columns whose names no other output has."""
    items = typed.selects if isinstance(typed, exp.Select) else []
    names = [item.alias_or_name for item in items]
    functions = [_canonical(type_of_part(item.unalias())) for item in items]
    found = [
        exp.alias_(_call(function, exp.column(name, quoted=True)), name, quoted=True)
        for function, name in zip(functions, names, strict=True)
        if function is not None and names.count(name) == 1
    ]
    star = select.find(exp.Star)
    if found and star is not None and star.parent is select:
        star.set("replace", found)


def _listed(part: exp.Expr | list[exp.Expr] | None) -> list[exp.Expr]:
    return part if isinstance(part, list) else [part] if isinstance(part, exp.Expr) else []


def _is_same(node: exp.Expr, value: exp.Expr) -> bool:
    if isinstance(node, exp.Column) and isinstance(value, exp.Column):
        is_one = not node.table or not value.table or folded(node.args["table"]) == folded(value.args["table"])
        return is_one and folded(node.this) == folded(value.this)
    return node == value


def _sort(place: exp.Expr, value: exp.Expr) -> None:
    """Sort by the key of a value. A set-returning output is named, since a copy would be another call."""
    if place is value or (isinstance(place, exp.Column) and value.find(*ROW_FUNCTIONS) is not None):
        _wrap(place, KEY)
    else:
        place.replace(_call(KEY, value.copy()))


def _compare(part: exp.Expr) -> None:
    """Compare by the key of a value, or the keys of an array; a text without a type is a document."""
    if isinstance(part, exp.Any | exp.All):
        _compare_as(part.this, KEYS, Type(JSONB.name, dimensions=1))
    else:
        _compare_as(part, KEY, JSONB)


def _compare_as(value: exp.Expr, name: str, type_: Type) -> None:
    if isinstance(value.unnest(), exp.Parameter | exp.Placeholder) or value.unnest().is_string:
        value.replace(_call(name, exp.cast(value.copy(), data_type(type_))))
    elif not isinstance(value, exp.Null):
        _wrap(value, name)


def _wrap(node: exp.Expr, name: str) -> None:
    """Put a value into a call, in its place; an output keeps its name."""
    call, parent = _call(name), node.parent
    is_output = isinstance(node, exp.Column) and isinstance(parent, exp.Select) and node.arg_key == "expressions"
    node.replace(exp.alias_(call, node.name, quoted=True, copy=False) if is_output else call)
    call.append("expressions", node)


def _call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=list(arguments))
