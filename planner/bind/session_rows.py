"""Session frames beside a join or groups: the rows or groups become a subquery, and the frames are over its columns.

So `planner.build.session_frames`, which numbers the sessions of the rows of one source, has such a source.
"""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.bind.merged_columns import ColumnsOf, columns_of_from, columns_of_item
from sparkwave.planner.bind.output_names import output_name
from sparkwave.planner.build.session_frames import has_sessions, windows_of_sessions
from sparkwave.planner.build.time_windows import is_window, windowed_table
from sparkwave.planner.functions.aggregates import AROUND, aggregate_calls
from sparkwave.planner.parse.from_items import from_items
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.named_windows import expand_named_windows
from sparkwave.planner.parse.set_returning import ROW_FUNCTIONS, makes_rows
from sparkwave.planner.parse.trees import alias_of, position_of

_ROWS = "_rows"
# The clauses that are evaluated before window functions, and those after.
_BEFORE = ("from_", "joins", "laterals", "where", "group", "having")
_AFTER = ("expressions", "distinct", "order")


def with_session_rows(tree: exp.Expr, columns_of: ColumnsOf) -> exp.Expr:
    """Return the tree, changed in place.

    Raises Error 0A000 for a `*` beside a session frame whose columns cannot be told.
    """
    if not has_sessions(tree):
        return tree
    for select in list(expand_named_windows(tree).find_all(exp.Select)):
        if windows_of_sessions(select) and (_is_joined(select) or _is_grouped(select)):
            _separate(select, columns_of)
    return tree


def _is_joined(select: exp.Select) -> bool:
    return any(select.args.get(name) for name in ("joins", "laterals")) or any(
        source.args.get("joins") for source in from_items(select)
    )


def _is_grouped(select: exp.Select) -> bool:
    has_clause = select.args.get("group") is not None or select.args.get("having") is not None
    return has_clause or any(aggregate_calls(part) for part in select.expressions)


def _separate(select: exp.Select, columns_of: ColumnsOf) -> None:
    """Let a query read what its windows are over from a subquery, as columns of it."""
    if not _is_grouped(select):
        _expand_stars(select, columns_of)
    select.set("expressions", [_named(item) for item in select.expressions])
    _resolve_keys(select, columns_of)
    names: dict[exp.Expr, str] = {}
    outputs = {folded(item.args["alias"]) for item in select.expressions if isinstance(item, exp.Alias)}
    for clause in _AFTER:
        value = select.args.get(clause)
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, exp.Expr):
                _read_columns(part, select, names, outputs)
    listed = [exp.Alias(this=part.copy(), alias=exp.to_identifier(name, quoted=True)) for part, name in names.items()]
    rows = exp.select(*listed) if listed else exp.select(exp.alias_(exp.Literal.number(1), "_row", quoted=True))
    for clause in _BEFORE:
        rows.set(clause, select.args.get(clause))
        select.set(clause, None)
    alias = exp.TableAlias(this=exp.to_identifier(_ROWS, quoted=True))
    select.set("from_", exp.From(this=exp.Subquery(this=rows, alias=alias)))


def _named(item: exp.Expr) -> exp.Expr:
    """Return an output with its name, which a subquery has itself (sqlglot)."""
    if isinstance(item, exp.Alias | exp.Aliases) or item.is_star:
        return item
    name = exp.to_identifier(item.alias or output_name(item), quoted=True)
    item.set("alias", None)
    return exp.Alias(this=item, alias=name)


def _read_columns(part: exp.Expr, select: exp.Select, names: dict[exp.Expr, str], outputs: set[str]) -> None:
    """Replace the largest parts that are computed before the windows by columns, and add these to the names."""
    if isinstance(part, exp.Ordered) and part.parent is not None and part.parent.parent is select:
        key = part.this
        if isinstance(key, exp.Column) and not key.table and folded(key.this) in outputs:
            return
    if _is_before_windows(part, select) and _needs_rows(part):
        name = names.setdefault(part.copy(), f"_column{len(names)}")
        column = exp.column(exp.to_identifier(name, quoted=True), exp.to_identifier(_ROWS, quoted=True))
        column.meta.update(part.meta)
        part.replace(column)
        return
    for child in list(part.iter_expressions()):
        _read_columns(child, select, names, outputs)


def _is_before_windows(node: exp.Expr, select: exp.Select) -> bool:
    """Return whether a part is a value computed before the windows: it neither is a window's call nor has one."""
    outer, parent = node, node.parent
    while isinstance(parent, AROUND) and outer.arg_key == "this":
        outer, parent = parent, parent.parent
    if isinstance(parent, exp.Window) and outer.arg_key == "this":
        return False
    if any(window.parent_select is select for window in node.find_all(exp.Window)):
        return False
    if isinstance(node, exp.If) and node.arg_key == "ifs":
        return False
    if makes_rows(node, select):
        return False
    return isinstance(node, exp.Condition | exp.Subquery | exp.AtTimeZone) or node in aggregate_calls(node)


def _needs_rows(node: exp.Expr) -> bool:
    return node.find(exp.Column, exp.Query) is not None or bool(aggregate_calls(node))


def _expand_stars(select: exp.Select, columns_of: ColumnsOf) -> None:
    """Replace each `*` by the columns that it stands for."""
    items: list[exp.Expr] = []
    _name_windows(select)
    for item in select.expressions:
        if not item.is_star:
            items.append(item)
            continue
        columns = None if _has_exceptions(item) else _columns_of_star(item, select, _with_calls(columns_of))
        if columns is None:
            message = f"{item.sql(dialect='postgres')} beside a session frame is not supported here"
            hint = "Write the columns."
            raise Error(message, errors.FEATURE_NOT_SUPPORTED, hint=hint, position=position_of(item))
        items += [column.copy() for column in columns]
    select.set("expressions", items)


def _has_exceptions(item: exp.Expr) -> bool:
    star = item.this if isinstance(item, exp.Column) else item
    return any(star.args.values())


def _columns_of_star(item: exp.Expr, select: exp.Select, columns_of: ColumnsOf) -> list[exp.Column] | None:
    if isinstance(item, exp.Column):
        table = folded(item.args["table"])
        source = next((each for each in from_items(select) if alias_of(each) == table), None)
        return columns_of_item(source, columns_of) if source is not None else None
    first = select.args.get("from_")
    return columns_of_from(first.this, select.args.get("joins") or [], columns_of) if first is not None else None


def _with_calls(columns_of: ColumnsOf) -> ColumnsOf:
    """Return a function like `columns_of` that also names the columns of time windows, VALUES and calls in FROM."""

    def found(source: exp.Expr) -> list[str] | None:
        alias = source.args.get("alias")
        given = [folded(each) for each in alias.columns] if isinstance(alias, exp.TableAlias) else []
        if is_window(source):
            table = windowed_table(source)
            own = columns_of(table) if table is not None else None
            return [*own, "window_start", "window_end"] if own is not None else None
        call = source.this if isinstance(source, exp.Table | exp.Lateral) else source
        if isinstance(call, exp.Values):
            return given or None
        if isinstance(call, ROW_FUNCTIONS) and alias is not None:
            names = given or [alias_of(source)]
            return [*names, "ordinality"] if call.args.get("offset") is True and len(names) == 1 else names
        return columns_of(source)

    return found


def _name_windows(select: exp.Select) -> None:
    """Name the time windows in FROM after their tables, as columns of `*` are read by the names of sources."""
    for source in from_items(select):
        table = windowed_table(source) if not source.args.get("alias") else None
        if table is not None:
            source.set("alias", exp.TableAlias(this=table.this.copy()))


def _resolve_keys(select: exp.Select, columns_of: ColumnsOf) -> None:
    """Write the expressions of outputs that GROUP BY has by position or name, as the subquery has other outputs.

    A name in GROUP BY is that of a column, if there is one (PostgreSQL: findTargetlistEntrySQL92).
    """
    group = select.args.get("group")
    if group is None:
        return
    first = select.args.get("from_")
    found = columns_of_from(first.this, select.args.get("joins") or [], _with_calls(columns_of)) if first else []
    columns = {column.name for column in found or ()}
    values = {folded(item.args["alias"]): item.this for item in select.expressions if isinstance(item, exp.Alias)}
    for key in _keys(group):
        bare = key.unnest()
        if isinstance(bare, exp.Literal) and bare.is_int:
            place = int(bare.name)
            if not 0 < place <= len(select.expressions):
                message = f"GROUP BY position {place} is not in select list"
                raise Error(message, errors.INVALID_COLUMN_REFERENCE, position=position_of(bare))
            key.replace(select.expressions[place - 1].unalias().copy())
        elif isinstance(bare, exp.Column) and not bare.table and folded(bare.this) not in columns:
            value = values.get(folded(bare.this))
            if value is not None:
                key.replace(value.copy())


def _keys(group: exp.Group) -> list[exp.Expr]:
    """Return the keys of GROUP BY, those of its grouping sets included."""
    found: list[exp.Expr] = []

    def visit(part: exp.Expr) -> None:
        if isinstance(part, exp.Cube | exp.Rollup | exp.GroupingSets | exp.Tuple):
            for each in part.expressions:
                visit(each)
        else:
            found.append(part)

    for part in group.expressions:
        visit(part)
    return found
