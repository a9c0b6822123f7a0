"""FROM: tables, subqueries, CTEs, VALUES, functions that return rows, and the joins between them."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Relation
from sparkwave.catalog.types import BIGINT, BOOLEAN, INTEGER, NUMERIC, QUOTIENT, Type
from sparkwave.planner.bind.binder import check_functions, retype, type_of, untold
from sparkwave.planner.bind.table_references import is_join
from sparkwave.planner.build.builder import (
    Builder,
    added,
    common_type,
    picked,
    prefixed,
    refuse,
    renamed,
    scalar,
    type_or_null,
    typed,
    typed_column,
    written,
)
from sparkwave.planner.build.correlation import outer_columns
from sparkwave.planner.build.time_windows import EVENT_TIME, is_temporal
from sparkwave.planner.functions.operators import type_of_series
from sparkwave.planner.functions.result_types import array_type, rows_of_elements
from sparkwave.planner.functions.typed import data_type
from sparkwave.planner.parse.set_returning import series_array
from sparkwave.planner.parse.trees import is_comma, position_of
from sparkwave.planner.plan.join_types import ANTI, AS_OF, AS_OF_LEFT, FULL, LEFT, SEMI, TEMPORAL, TEMPORAL_LEFT
from sparkwave.planner.plan.nodes import Field, Filter, Item, Join, Node, Project, Scan, Unnest, Values, conjuncts
from sparkwave.planner.since import TYPED_SERIES, is_since

_NESTED_LOOP_HINT = (
    "Add an equality between the two sides to the condition. "
    "Only inner joins may do without: for other kinds every change would have to look at all rows."
)


def build_from(builder: Builder, select: exp.Select) -> Node:
    """Return the rows of a FROM clause; one row without columns when there is no FROM."""
    source = select.args.get("from_")
    if source is None:
        return one_row(builder)
    first, *others = _split_at_commas(select.args.get("joins") or [])
    node = _joined(builder, _source(builder, source.this, None), first)
    for comma, *joins in others:
        if any(join.side.upper() in ("RIGHT", "FULL") for join in joins):  # such a join cannot refer to earlier items
            node = Join(node, _joined(builder, _source(builder, comma.this, None), joins), None)
        else:
            node = _joined(builder, node, [comma, *joins])
    return node


def _split_at_commas(joins: list[exp.Join]) -> list[list[exp.Join]]:
    """Return the joins of each item in FROM; a comma is the first join of the item after it."""
    items: list[list[exp.Join]] = [[]]
    for join in joins:
        if is_comma(join):
            items.append([])
        items[-1].append(join)
    return items


def _joined(builder: Builder, node: Node, joins: list[exp.Join]) -> Node:
    for join in joins:
        node = _join(builder, node, join)
    return node


def one_row(builder: Builder) -> Values:
    return Values(((),), (), builder.fresh("row"))


def _source(builder: Builder, source: exp.Expr, left: Node | None) -> Node:
    """Return a source with the joins in its parentheses, or before the ON of its enclosing join.

    `left` is the part of FROM before the source. A function in FROM may refer to it, and then the result contains it.
    """
    joins = source.args.get("joins") or []
    return _joined(builder, _single(builder, source, None if joins else left), joins)


def _single(builder: Builder, source: exp.Expr, left: Node | None) -> Node:
    match source:
        case exp.Table() if isinstance(source.this, exp.Func):
            return _rows_of(builder, source, source.this, left)
        case exp.Unnest():
            return _rows_of(builder, source, source, left)
        case exp.Lateral() if isinstance(source.this, exp.Func | exp.Unnest):
            return _rows_of(builder, source, source.this, left)
        case exp.Table() if source.name in builder.made:
            return builder.again(builder.made[source.name])
        case exp.Table() if source.name in builder.tables:
            return _scan(builder, source)
        case exp.Table() if source.name in builder.ctes:
            cte = builder.ctes[source.name]
            return aliased(builder.query(builder, cte.this, False), source, cte.args.get("alias"))
        case exp.Subquery() if is_join(source):
            return _source(builder, source.this, None)
        case exp.Subquery() | exp.Lateral(this=exp.Subquery()):
            return aliased(builder.query(builder, source.this, False), source)
        case exp.Values():
            return prefixed(values(builder, source), source.alias)
    raise refuse(f"reading from {written(source)}", source)


def reads_rows_before(source: exp.Expr, left: Node) -> bool:
    """Return whether a source in FROM is a subquery that reads columns of the rows before it."""
    if isinstance(source, exp.Lateral):
        source = source.this
    return isinstance(source, exp.Subquery) and bool(outer_columns(source).keys() & {f.name for f in left.fields})


def _scan(builder: Builder, source: exp.Table) -> Scan:
    relation: Relation = builder.tables[source.name]
    visible = [c.name for c in relation.visible]
    hidden = [k for k in relation.key if k not in visible]
    return Scan(f"i{next(builder.scans)}", relation, source.alias, (*visible, *hidden))


def aliased(node: Node, source: exp.Expr, inner: exp.TableAlias | None = None) -> Project:
    """Return the outputs of a query under its alias, with the names of a column list."""
    names = [f.name for f in node.fields]
    for alias in (inner, source.args.get("alias")):
        given = [identifier.name for identifier in alias.columns] if alias is not None else []
        names[: len(given)] = given
    return prefixed(renamed(node, names, [f.type for f in node.fields]), source.alias_or_name)


def values(builder: Builder, source: exp.Values) -> Node:
    """Return VALUES, with the column names of its alias or column1, column2, …"""
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in source.expressions]
    if len({len(row) for row in rows}) != 1:
        raise Error("VALUES lists must all be the same length", errors.SYNTAX_ERROR, position=position_of(source))
    alias = source.args.get("alias")
    given = [identifier.name for identifier in alias.columns] if alias is not None else []
    names = given + [f"column{number + 1}" for number in range(len(given), len(rows[0]))]
    types = [common_type([type_or_null(row[place]) for row in rows], source) for place in range(len(names))]
    number = builder.fresh("row")
    fields = tuple(Field(name, type_) for name, type_ in zip(names, types, strict=True))
    constants = Values(tuple(tuple(scalar(value) for value in row) for row in rows), fields, number)
    return picked(constants, fields)


def _rows_of(builder: Builder, source: exp.Expr, function: exp.Expr, left: Node | None) -> Node:
    """Return `unnest(..)` or `generate_series(..)` in FROM, joined to the part before it.

    Raises Error 42883 for an unknown function, 0A000 for any other one.
    """
    if left is not None:
        _type_unknown(function, left)
    arrays = arrays_of(function)
    if not arrays:
        check_functions(function)
        raise refuse(f"reading from {written(function)}", source)
    below = left if left is not None else one_row(builder)
    return rows_beside(builder, below, source, arrays, [source.alias] * len(arrays), function.args.get("offset"))


def _type_unknown(function: exp.Expr, left: Node) -> None:
    """Give the columns of a LATERAL subquery that a function reads their types, in place; sqlglot tells none."""
    unknown = {f"{column.table}.{column.name}" for column in function.find_all(exp.Column) if untold(column)}
    retype(function, {field.name: field.type for field in left.fields if field.name in unknown})


def rows_beside(
    builder: Builder,
    below: Node,
    source: exp.Expr,
    arrays: list[exp.Expr],
    names: list[str],
    offset: exp.Expr | None = None,
) -> Unnest | Project:
    """Return each row with the elements of arrays computed from it, side by side, as rows of the source.

    The elements have `names` where the source's alias gives none; `offset` names their position.
    """
    alias = source.args.get("alias")
    given = [identifier.name for identifier in alias.columns] if alias is not None else []
    table = source.alias
    names = [*given[: len(arrays)], *names[len(given) :]]
    if (twice := next((name for name in names if names.count(name) > 1), None)) is not None:
        raise Error(f'column "{twice}" specified more than once', errors.DUPLICATE_COLUMN, position=position_of(source))
    position = f"{table}.{offset.name}" if isinstance(offset, exp.Identifier) else f"{table}._position"
    columns = [Field(f"{table}.{name}", element_type(array)) for name, array in zip(names, arrays, strict=True)]
    return elements_beside(builder, below, [scalar(array) for array in arrays], columns, position)


def elements_beside(
    builder: Builder, below: Node, arrays: list[exp.Expr], columns: list[Field], position: str
) -> Unnest | Project:
    """Return each row with the elements of arrays over its fields, which become the columns."""
    if len(arrays) == 1:
        return Unnest(below, arrays[0], columns[0], position)
    return _side_by_side(builder, below, arrays, columns, position)


def _side_by_side(
    builder: Builder, below: Node, arrays: list[exp.Expr], columns: list[Field], position: str
) -> Project:
    """Return the elements of several arrays side by side, as many rows as the longest array has elements.

    One array of rows is made of them, whose elements are taken apart.
    """
    call = exp.Anonymous(this="zip_arrays", expressions=list(arrays))
    zipped = typed(call, rows_of_elements(tuple(map(type_of, arrays))))
    row = Field(builder.fresh("row"), element_type(zipped))
    rows = Unnest(below, zipped, row, position)

    def part(place: int) -> exp.Expr:
        return exp.Dot(this=typed_column(row.name, row.type), expression=exp.to_identifier(f"f{place}"))

    items = (Item(field.name, typed(part(n), field.type), field.type) for n, field in enumerate(columns, start=1))
    kept = picked(rows, (field for field in rows.fields if field != row))
    return replace(kept, items=(*kept.items, *items))


def arrays_of(function: exp.Expr) -> list[exp.Expr]:
    """Return the arrays whose elements a set-returning function returns; none for any other function."""
    match function:
        case exp.Unnest():
            return [_with_numerics(array) for array in function.expressions]
        case exp.Explode():
            return [function.this]
        case exp.GenerateSeries() | exp.ExplodingGenerateSeries():
            return [_with_numerics(series_array(function))]
    return []


def _with_numerics(array: exp.Expr) -> exp.Expr:
    """Return the array of a series of numerics, which the engines have none of; any other array as it is."""
    if not _is_of_numerics(array):
        return array
    step = array.args.get("step") or typed(exp.Literal.number(1), INTEGER)
    ends = (array.args["start"], array.args["end"], step)
    call = exp.Anonymous(this="series_of_numerics", expressions=[part.copy() for part in ends])
    return typed(call, array_type(QUOTIENT))


def _is_of_numerics(array: exp.Expr) -> bool:
    parts = [array.args.get(key) for key in ("start", "end", "step")] if isinstance(array, exp.GenerateSeries) else []
    return any(isinstance(part, exp.Expr) and type_of(part).name == NUMERIC.name for part in parts)


def element_type(array: exp.Expr) -> Type:
    """Return the type of an array's or a series' elements."""
    if _is_of_numerics(array):
        return QUOTIENT
    if isinstance(array, exp.GenerateSeries):
        if is_since(TYPED_SERIES) and (typed_ := type_of_series(array, type_of)) is not None:
            return typed_
        found = type_of(array.args["start"])
        return BIGINT if found.name == "bigint" or type_of(array.args["end"]).name == "bigint" else found
    return type_of(array).element


def _join(builder: Builder, left: Node, join: exp.Join) -> Node:
    side, kind, method = join.side.upper(), join.kind.upper(), join.method.upper()
    if method not in ("", "ASOF") or kind not in ("", "INNER", "OUTER", "CROSS"):
        raise refuse(" ".join(word for word in (method, side, kind, "JOIN") if word), join)
    if reads_rows_before(join.this, left):
        return builder.lateral(builder, left, join.this, join)
    right = _source(builder, join.this, left)
    on = join.args.get("on")
    condition = scalar(on) if on is not None else None
    if _rows_above(right) is left:
        if side:
            return _outer_rows(right, side, condition, join)
        return right if condition is None or condition == exp.true() else Filter(right, condition)
    if is_temporal(join.this):
        return _temporal(left, right, condition, TEMPORAL_LEFT if side == "LEFT" else TEMPORAL, join)
    if condition is not None and any(part.meta.get(EVENT_TIME) for part in conjuncts(condition)):
        return _as_of_event(left, right, condition, AS_OF_LEFT if side == "LEFT" else AS_OF, join)
    if method:
        return _as_of(left, right, condition, AS_OF_LEFT if side == "LEFT" else AS_OF, join)
    if condition == exp.true():
        condition = None
    if side == "RIGHT":
        return picked(outer_join(right, left, condition, LEFT, join), (*left.fields, *right.fields))
    if side in ("LEFT", "FULL"):
        return outer_join(left, right, condition, LEFT if side == "LEFT" else FULL, join)
    return Join(left, right, condition)


def _rows_above(right: Node) -> Node | None:
    """Return the node to which the rows of a set-returning function in FROM are joined already."""
    rows = right.input if isinstance(right, Project) else right
    return rows.input if isinstance(rows, Unnest) else None


def _outer_rows(right: Node, side: str, condition: exp.Expr | None, join: exp.Join) -> Node:
    """Return the rows of a function beside the rows before it, of which those without any are kept."""
    rows = right.input if isinstance(right, Project) else right
    assert isinstance(rows, Unnest)
    is_series = isinstance(rows.array, exp.GenerateSeries)
    type_ = array_type(element_type(rows.array)) if is_series else type_of(rows.array)
    if side != "LEFT" or condition != exp.true() or not type_.dimensions:
        raise refuse(f"{side} JOIN of a set-returning function", join)
    none = typed(exp.Array(expressions=[exp.cast(exp.null(), data_type(type_.element))]), type_)
    has_any = exp.GT(this=exp.func("cardinality", rows.array.copy()), expression=exp.Literal.number(0))
    rows = replace(rows, array=typed(exp.Case().when(has_any, rows.array).else_(none), type_))
    function = join.this if isinstance(join.this, exp.Unnest) else join.this.this
    if function.args.get("offset"):
        return _with_numbers(right, rows, has_any)
    return replace(right, input=rows) if isinstance(right, Project) else rows


def _with_numbers(right: Node, rows: Unnest, has_any: exp.Expr) -> Node:
    """Return such rows with their numbers, of which the row in place of none has none."""
    number, key = rows.position, f"{rows.position}._position"
    rows = replace(rows, position=key)
    node: Node = rows
    if isinstance(right, Project):
        items = (Item(key, typed_column(key, BIGINT), BIGINT) if item.name == number else item for item in right.items)
        node = replace(right, input=rows, items=tuple(items))
    value = exp.Case().when(has_any.copy(), typed_column(key, BIGINT))
    return added(node, [Item(number, typed(value, BIGINT), BIGINT)])


def outer_join(left: Node, right: Node, condition: exp.Expr | None, kind: str, place: exp.Expr) -> Join:
    """Return a join that is maintained by its keys. Raises Error 0A000 without an equality between the sides."""
    join = Join(left, right, condition, kind)
    if not join.pairs:
        words = {LEFT: "a LEFT JOIN", FULL: "a FULL JOIN", SEMI: "EXISTS or IN", ANTI: "NOT EXISTS or NOT IN"}[kind]
        raise refuse(f"{words} without an equality (streaming nested-loop join)", place, _NESTED_LOOP_HINT)
    return join


def _as_of(left: Node, right: Node, condition: exp.Expr | None, kind: str, place: exp.Expr) -> Node:
    """Return an as-of join by RisingWave's rules: its condition has equalities and one inequality, and nothing else."""
    join = Join(left, right, condition, kind)
    if place.args.get("side", "").upper() not in ("", "LEFT"):
        raise refuse(f"ASOF {place.args['side'].upper()} JOIN", place)
    if not join.pairs:
        raise refuse("ASOF JOIN without an equality between the sides", place)
    if join.as_of is None or len(join.conjuncts) != len(join.pairs) + 1:
        raise refuse(
            "ASOF JOIN with another condition than equalities and one inequality between the sides",
            place,
            "Write other conditions in WHERE, or in a subquery in FROM.",
        )
    return join


def _as_of_event(left: Node, right: Node, condition: exp.Expr, kind: str, place: exp.Expr) -> Node:
    """Return a temporal join by event time: of the right side's rows up to the time the last, by its watermark column.

    Its rows are final where both watermarks have passed the time (`planner.build.window_close`).
    """
    watermark = right.relation.watermark if isinstance(right, Scan) else None
    if not isinstance(right, Scan) or watermark is None:
        raise refuse("a temporal join by event time with something else than a table with a WATERMARK", place)
    parts = conjuncts(condition)
    [mark] = [part for part in parts if part.meta.get(EVENT_TIME)]
    time = next(field for field in right.fields if field.name == f"{right.alias}.{watermark.column}")
    is_before = typed(exp.GTE(this=mark.this, expression=typed_column(time.name, time.type)), BOOLEAN)
    is_before.meta[EVENT_TIME] = True
    others = [part.copy() for part in parts if part is not mark]
    return _as_of(left, right, exp.and_(*others, is_before, copy=False), kind, place)


def _temporal(left: Node, right: Node, condition: exp.Expr | None, kind: str, place: exp.Expr) -> Node:
    """Return a temporal join."""
    join = Join(left, right, None if condition == exp.true() else condition, kind)
    side = place.args.get("side", "").upper()
    if side not in ("", "LEFT"):
        raise refuse(f"a temporal {side} JOIN", place)
    if not isinstance(right, Scan):
        raise refuse("a temporal join with something else than a table or view", place)
    return join
