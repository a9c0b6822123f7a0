"""Rewrites PostgreSQL's catalog queries for DuckDB over the system views (`catalog/system/system_views.py`).

`rewrite` also serves users' queries: `version()`, `'t'::regclass`, LIKE's escape and the like work in any of them.
There is one rule a node type, applied from the leaves up; pure renamings are a table in pg_names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from sqlglot import exp

from sparkwave.catalog.names import is_temporary_schema
from sparkwave.planner.batch.parameters import parameter_number
from sparkwave.planner.batch.pg_casts import (
    array_items,
    is_reg_type,
    is_text,
    rewrite_cast,
    rewrite_comparison,
    rewrite_like,
    rewrite_operator,
    rounded_time,
    shown_name,
)
from sparkwave.planner.batch.pg_names import (
    FUNCTIONS,
    HIDDEN_COLUMNS,
    KEYWORDS,
    NOT_SETTINGS,
    RENAMED,
    SCHEMAS,
    TAKE_PATH,
    TAKE_REGCLASS,
    TAKE_USER,
    VECTOR_COLUMNS,
    Context,
    IsSystem,
    call,
    strings,
)
from sparkwave.planner.batch.row_functions import bigint_as_integer, is_of_integers, lateral_series, with_numeric_series
from sparkwave.planner.bind.output_names import FUNCTION_NODES, output_name
from sparkwave.planner.functions.operators import as_call
from sparkwave.planner.functions.scalar_functions import ours
from sparkwave.planner.parse import parameter_runs
from sparkwave.planner.parse.parameter_runs import PARAMETER_MARK
from sparkwave.planner.parse.tokens import blank, end_of_comment

_VERSION = "PostgreSQL {}-RisingWave-3.0.0 (Sparkwave)"


def rewrite(
    tree: exp.Expr, is_system: IsSystem, session: Mapping[str, str], path: tuple[str, ...] = ("public",)
) -> exp.Expr:
    """Return the tree (of sqlglot's `postgres` dialect) with PostgreSQL's catalog in DuckDB's terms; user tables stay.

    `is_system(schema, name)` tells system relations and, for the schema "pgf", Sparkwave's functions. `session` has
    "database", "user" and settings by name, `path` the schemas in which names are looked up. The result is a new tree,
    to be written in dialect `duckdb`; columns keep the names that PostgreSQL would give them.
    """
    root = tree.copy()
    nodes = list(root.walk())
    ctes = frozenset(n.alias.lower() for n in nodes if isinstance(n, exp.CTE))
    context = Context(is_system, session, path, ctes)
    items = [item for node in nodes if isinstance(node, exp.Select) for item in node.expressions]
    names = [(item.parent, item.index, output_name(item)) for item in items if not _has_name(item)]
    # The walk is breadth first from the root, so its reverse has leaves first.
    for node in reversed(nodes):
        rule = _RULES.get(type(node))
        parent, key, index = node.parent, node.arg_key, node.index
        new = rule(node, context) if rule else None
        if new is None or new is node:
            continue
        if parent is None:
            root = new
        else:
            # Not node.replace: the rule may have put the node inside the new one.
            parent.set(key or "this", new, index)
    for select, place, name in names:
        item = select.expressions[place]
        # User tables lack columns such as `xmin`: under their own names DuckDB reports that.
        if not (isinstance(item, exp.Column) and item.name.lower() == name.lower()):
            select.set("expressions", exp.alias_(item, name, quoted=True), place)
    return _with_vectors_as_text(root)


def _with_vectors_as_text(root: exp.Expr) -> exp.Expr:
    """Return the query with int2vector and oidvector outputs in clients' form: numbers between spaces, not an array."""
    for item in root.expressions if isinstance(root, exp.Select) else ():
        column = item.unalias()
        if isinstance(column, exp.Column) and column.name in VECTOR_COLUMNS and _is_system_query(root):
            text = exp.Anonymous(this="array_to_string", expressions=[column.copy(), exp.Literal.string(" ")])
            item.replace(exp.alias_(text, item.alias_or_name, quoted=True))
    return root


def _has_name(item: exp.Expr) -> bool:
    """Return whether a SELECT item keeps its name through the rules."""
    if isinstance(item, exp.Column):
        return item.name.lower() not in KEYWORDS | HIDDEN_COLUMNS
    return isinstance(item, exp.Alias | exp.Aliases) or item.is_star


def named_object(parameter: exp.Parameter) -> int | None:
    """Return the number of a parameter that is the name of an object, such as `$1::regclass`."""
    place = parameter.parent
    while isinstance(place, exp.Paren):
        place = place.parent
    return parameter_number(parameter) if isinstance(place, exp.Cast) and is_reg_type(place.to) else None


def prepare_text(sql: str) -> str:
    """Return the text with syntax that sqlglot misreads in another form of the same length, so that positions are kept.

    sqlglot takes `$1,$` in `$1,$2` for the start of a dollar quote, and the first three characters of `||/*` for an
    operator. Long lists of parameters become one parameter (`planner.parse.parameter_runs`).
    """
    if "$" not in sql and "|/*" not in sql:
        return sql
    parts, end = list[str](), 0
    while (found := _MISREAD.search(sql, end)) is not None:
        start = found.start()
        parts.append(sql[end:start])
        if found[0] != _COMMENT:
            end = found.end()
            parts.append(_readable(found))
            continue
        end = end_of_comment(sql, start)
        comment = sql[start:end]
        parts.append(blank(comment) if sql[start - 1 : start] == "|" else comment)
    return "".join([*parts, sql[end:]])


def _readable(match: re.Match[str]) -> str:
    if parameter_runs.is_long(match):
        return parameter_runs.collapsed(match)
    if match["parameter"]:
        # After these an @ would be part of an operator: `a<@1`.
        follows = match.string[max(match.start() - 1, 0) : match.start()]
        return (PARAMETER_MARK if follows in ("<", "@", "?") else "@") + match["parameter"]
    return match[0]


_COMMENT = "/*"
_MISREAD = re.compile(
    r"""\b[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n\r]*|/\*"""
    r"""|\$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?\$(?P=tag)\$|\$(?P<parameter>\d+)|""" + parameter_runs.PATTERN,
    re.IGNORECASE | re.DOTALL,
)


# Relations.


def _table(table: exp.Table, context: Context) -> exp.Expr | None:
    if isinstance(table.this, exp.Func):
        return _table_function(table, context)
    schema = context.system_schema(table)
    if schema is None:
        return None
    alias = table.args.get("alias")
    if table.name.lower() == "pg_settings":
        function = exp.Anonymous(this="pg_settings", expressions=[_settings(context)])
        alias = alias or exp.TableAlias(this=exp.to_identifier("pg_settings"))
        schema_name, database = exp.to_identifier(FUNCTIONS), exp.to_identifier("memory")
        return exp.Table(this=function, db=schema_name, catalog=database, alias=alias)
    table.set("this", exp.to_identifier(table.name.lower(), quoted=True))
    table.set("db", exp.to_identifier(SCHEMAS[schema]))
    table.set("catalog", exp.to_identifier("memory"))
    return table


def _table_function(table: exp.Table, context: Context) -> exp.Expr | None:
    """Rewrite a function in FROM. PostgreSQL names the column of one with single values after the table's alias."""
    name = table.this.name.lower() if isinstance(table.this, exp.Anonymous) else ""
    alias = table.args.get("alias")
    if (rows := with_numeric_series(table.this)) is not table.this:
        alias = alias or exp.TableAlias(this=exp.to_identifier("generate_series"))
        table.set("this", rows)
        table.set("alias", alias)
    if table.db.lower() in SCHEMAS:
        table.set("db", None)
    if context.is_function(name):
        table.set("db", exp.to_identifier(FUNCTIONS))
        table.set("catalog", exp.to_identifier("memory"))
        if table.args.get("ordinality"):
            bare = table.copy()
            bare.set("ordinality", None)
            bare.set("alias", None)
            query = exp.select("*", "row_number() OVER () AS ordinality").from_(bare)
            return exp.Subquery(this=query, alias=alias)
    elif isinstance(table.this, exp.Explode | exp.ExplodingGenerateSeries):
        _name_column(alias)
    if is_of_integers(table.this) and not table.args.get("ordinality"):
        name = "generate_series"
        rows = exp.Table(this=exp.Anonymous(this=name, expressions=list(table.this.iter_expressions())))
        query = exp.select(exp.alias_(exp.cast(exp.column(name), exp.DType.INT), name)).from_(rows)
        return exp.Subquery(this=query, alias=alias or exp.TableAlias(this=exp.to_identifier(name)))
    return table


def _lateral_function(lateral: exp.Lateral, context: Context) -> exp.Expr:
    lateral.set("this", lateral_series(lateral.this))
    if isinstance(lateral.this, exp.Unnest | exp.Explode | exp.ExplodingGenerateSeries):
        _name_column(lateral.args.get("alias"))
    return lateral


def _name_column(alias: exp.Expr | None) -> None:
    """Let the alias of a function in FROM name its column, too, unless the alias names columns."""
    if isinstance(alias, exp.TableAlias) and alias.this is not None and not alias.columns:
        alias.set("columns", [alias.this.copy()])


def _series(node: exp.ExplodingGenerateSeries, context: Context) -> exp.Expr | None:
    """Rewrite `generate_series(..)` in a select list."""
    if isinstance(node.parent, exp.Table | exp.Lateral):
        return None
    of_numerics = with_numeric_series(node)
    if of_numerics is not node:
        return of_numerics  # which has the same checks
    of_integers = is_of_integers(node)
    _check_series(node, context)
    return bigint_as_integer(node) if of_integers else node


def _check_series(series: exp.Expr, context: Context) -> None:
    """Let a series in a select list, or the array of one, raise for a step of zero: DuckDB gives no rows for it.

    A series so long that its array would take the server's memory raises, too.
    """
    parts = list(series.iter_expressions())
    if not any(part.is_string for part in parts):
        series.set("end", ours("_series_end", *(part.copy() for part in parts)))
    step = written = series.args.get("step")
    while isinstance(written, exp.Neg | exp.Cast | exp.Interval | exp.Paren):
        written = written.this
    is_plain = isinstance(written, exp.Literal) and re.search("[1-9]", written.name) is not None
    if step is not None and not is_plain and parameter_number(step) is None:
        series.set("step", ours("_step", step))


def _offset(node: exp.Offset, context: Context) -> exp.Expr | None:
    """Check the number of rows, unless it is written: DuckDB's error does not tell OFFSET from LIMIT."""
    rows = node.expression
    if not isinstance(rows, exp.Literal):
        node.set("expression", ours("_offset", rows))
    return None


def _grouping(node: exp.Grouping, context: Context) -> exp.Expr:
    """Return the number as an integer: DuckDB's is a bigint."""
    return bigint_as_integer(node)


def _unnest(node: exp.Unnest, context: Context) -> exp.Expr | None:
    alias = node.args.get("alias")
    if alias is None or alias.columns or node.args.get("offset"):
        return None
    alias.set("columns", [alias.this.copy()])
    return node


def _fold(identifier: exp.Identifier, context: Context) -> None:
    """Fold a name like PostgreSQL, because DuckDB would show it as written."""
    if not identifier.quoted:
        identifier.set("this", identifier.name.lower())


def _group(group: exp.Group, context: Context) -> None:
    """Rewrite GROUP BY of an output name that several relations also have.

    RisingWave takes the output column (dbt needs it).
    """
    select = group.parent
    if not isinstance(select, exp.Select) or not select.args.get("joins") or not _reads_system(group, context):
        return
    aliases = [item.alias if isinstance(item, exp.Alias) else None for item in select.expressions]
    for item in group.expressions:
        if isinstance(item, exp.Column) and not item.table and item.name in aliases:
            item.replace(exp.Literal.number(aliases.index(item.name) + 1))


def _column(column: exp.Column, context: Context) -> exp.Expr | None:
    name = column.name.lower()
    if name in KEYWORDS and not column.table and not column.this.quoted:
        return exp.Literal.string(context.session.get("user", "root"))
    if column.db.lower() in SCHEMAS:
        column.set("db", None)
        column.set("catalog", None)
        return column
    if name in HIDDEN_COLUMNS and _reads_system(column, context):
        return exp.cast(exp.Literal.number(0), "UINTEGER", dialect="duckdb")
    return None


def _reads_system(node: exp.Expr, context: Context) -> bool:
    """Return whether the SELECT around a node reads only system relations, even after their rules have run."""
    select = node.find_ancestor(exp.Select)
    tables = list(select.find_all(exp.Table)) if select else []
    return bool(tables) and all(t.catalog == "memory" or context.system_schema(t) for t in tables)


def _is_system_query(query: exp.Expr) -> bool:
    """Return whether a rewritten query reads only system relations."""
    return all(table.catalog == "memory" for table in query.find_all(exp.Table))


def _coalesce(node: exp.Coalesce, context: Context) -> exp.Expr | None:
    """Rewrite '{}' as the default of a missing array in the catalogs."""
    for item in node.expressions:
        if array_items(item) == [] and _reads_system(node, context):
            item.replace(exp.Array(expressions=[]))
    return None


# Functions.


def _settings(context: Context) -> exp.Expr:
    """Return the session's settings as a DuckDB map."""
    both = (list(context.settings), list(context.settings.values()))
    lists = [exp.cast(strings(values), "VARCHAR[]", dialect="duckdb") for values in both]
    return exp.Map(keys=lists[0], values=lists[1])


def _current_setting(context: Context, args: list[exp.Expr]) -> exp.Expr:
    name = args[0]
    if name.is_string and name.name.lower() not in NOT_SETTINGS:
        value = context.session.get(name.name.lower())
        if value is not None:
            return exp.Literal.string(value)
    return call("current_setting", _settings(context), *args)


def _current_schemas(context: Context, args: list[exp.Expr]) -> exp.Expr:
    if args and isinstance(args[0].unnest(), exp.Null):
        return exp.cast(exp.null(), "VARCHAR[]", dialect="duckdb")
    implicit = not args or args[0] == exp.true()
    return strings(context.search_path if implicit else _explicit(context))


def _current_schema(context: Context, args: list[exp.Expr]) -> exp.Expr:
    path = _explicit(context)
    return exp.Literal.string(path[0]) if path else exp.cast(exp.null(), "VARCHAR", dialect="duckdb")


def _explicit(context: Context) -> list[str]:
    """Return the search path without the schema of temporary tables, which is always searched and never created in."""
    return [schema for schema in context.path if not is_temporary_schema(schema)]


def _signal(name: str, context: Context, args: list[exp.Expr]) -> exp.Expr:
    return call(name, exp.Literal.string(context.session.get("user", "root")), args[0])


_SESSION_FUNCTIONS: dict[str, Callable[[Context, list[exp.Expr]], exp.Expr]] = {
    "version": lambda context, args: exp.Literal.string(
        _VERSION.format(context.session.get("server_version", "13.14.0"))
    ),
    "current_database": lambda context, args: exp.Literal.string(context.session.get("database", "dev")),
    "current_catalog": lambda context, args: exp.Literal.string(context.session.get("database", "dev")),
    "current_schema": _current_schema,
    "current_schemas": _current_schemas,
    "current_user": lambda context, args: exp.Literal.string(context.session.get("user", "root")),
    "session_user": lambda context, args: exp.Literal.string(context.session.get("session_user", "root")),
    # A second argument is the time to wait.
    "pg_cancel_backend": lambda context, args: _signal("pg_cancel_backend", context, args),
    "pg_terminate_backend": lambda context, args: _signal("pg_terminate_backend", context, args),
    "current_setting": _current_setting,
    # The server carries it out: see `set_config_calls`.
    "set_config": lambda context, args: args[1],
}


def _function(node: exp.Func, context: Context) -> exp.Expr | None:
    if node.name.lower() == "array_subscripts" and node.expressions[0].name.lower() in VECTOR_COLUMNS:
        return call("vector_subscripts", *node.expressions)
    if isinstance(node.parent, exp.Table) or as_call(node) is not None:
        return None
    name = FUNCTION_NODES.get(type(node)) or node.name.lower()
    args = list(node.expressions) if isinstance(node, exp.Anonymous) else list(node.iter_expressions())
    if name in _SESSION_FUNCTIONS:
        return _SESSION_FUNCTIONS[name](context, args)
    if name in RENAMED:
        return exp.Anonymous(this=RENAMED[name], expressions=args)
    if not context.is_function(name):
        return None
    if name in TAKE_REGCLASS and args and is_text(args[0].unnest()):
        args[0] = call("regclass_in", args[0], strings(context.search_path))
    if len(args) == TAKE_USER.get(name, 0) - 1:
        args.insert(0, exp.Literal.string(context.session.get("user", "root")))
    if name in TAKE_PATH:
        args.append(strings(context.search_path))
    return shown_name(node, name, call(name, *args), context)


def set_config_calls(tree: exp.Expr) -> tuple[tuple[str, str, bool], ...]:
    """Return (setting, value, is local) of each `set_config` of constants, for the server to carry out."""
    found = (_set_config(node) for node in tree.find_all(exp.Anonymous))
    return tuple(call for call in found if call is not None)


def _set_config(node: exp.Expr) -> tuple[str, str, bool] | None:
    """Return the setting of a `set_config` call; None for anything else."""
    if not (isinstance(node, exp.Anonymous) and node.name.lower() == "set_config" and len(node.expressions) == 3):
        return None
    name, value, is_local = node.expressions
    return (name.name, value.name, is_local == exp.true()) if name.is_string and value.is_string else None


def with_settings(tree: exp.Expr) -> exp.Expr:
    """Return the tree, changed in place, where `current_setting` sees an earlier `set_config` of its select list."""
    for select in list(tree.find_all(exp.Select)):
        known: dict[str, str] = {}
        for node in [node for item in select.expressions for node in item.walk(bfs=False)]:
            call = _set_config(node)
            if call is not None:
                known[call[0].lower()] = call[1]
            elif isinstance(node, exp.Anonymous) and node.name.lower() == "current_setting" and node.expressions:
                name = node.expressions[0].name.lower() if node.expressions[0].is_string else ""
                if name in known:
                    node.replace(exp.Literal.string(known[name]))
    return tree


def _dot(node: exp.Dot, context: Context) -> exp.Expr | None:
    """Rewrite `pg_catalog.f(..)` as `f(..)`, whose own rule has run."""
    is_system = isinstance(node.this, exp.Identifier | exp.Column) and node.this.name.lower() in SCHEMAS
    return node.expression if is_system and not isinstance(node.expression, exp.Identifier) else None


def _bracket(node: exp.Bracket, context: Context) -> exp.Expr | None:
    if node.this.name.lower() not in VECTOR_COLUMNS:
        return None
    [item] = node.expressions[:1]
    if isinstance(item, exp.Slice):
        return call("vector_slice", node.this, item.this or exp.null(), item.expression or exp.null())
    return call("vector_element", node.this, *node.expressions)


def _now(node: exp.Expr, context: Context) -> exp.Expr | None:
    """Return the keyword as a call, because DuckDB takes the keyword for an output of the same name."""
    now = rounded_time(exp.Anonymous(this="now"), node.args.get("this"))
    kind = _MOMENTS.get(type(node))
    # DuckDB casts a timestamp to a time, but not a timestamp with time zone.
    now = exp.cast(now, "timestamp") if kind == "time" else now
    return exp.cast(now, kind) if kind else now


_MOMENTS: dict[type[exp.Expr], str] = {
    exp.CurrentDate: "date",
    exp.CurrentTime: "time",
    exp.Localtime: "time",
    exp.Localtimestamp: "timestamp",
}


def _without_collation(node: exp.Collate, context: object) -> exp.Expr:
    """Return the operand; the collation has been checked (`bind.collations`)."""
    operand: exp.Expr = node.this
    return operand


_RULES: dict[type[exp.Expr], Callable[..., exp.Expr | None]] = {
    **dict.fromkeys((exp.CurrentTimestamp, *_MOMENTS), _now),
    exp.Identifier: _fold,
    exp.Table: _table,
    exp.Group: _group,
    exp.Unnest: _unnest,
    exp.ExplodingGenerateSeries: _series,
    exp.GenerateSeries: _check_series,
    exp.Offset: _offset,
    exp.Lateral: _lateral_function,
    exp.Grouping: _grouping,
    exp.Column: _column,
    exp.Anonymous: _function,
    **dict.fromkeys(FUNCTION_NODES, _function),
    exp.Dot: _dot,
    exp.Bracket: _bracket,
    exp.Coalesce: _coalesce,
    exp.Cast: rewrite_cast,
    exp.TryCast: rewrite_cast,
    exp.EQ: rewrite_comparison,
    exp.NEQ: rewrite_comparison,
    exp.Like: rewrite_like,
    exp.ILike: rewrite_like,
    exp.Operator: rewrite_operator,
    exp.Collate: _without_collation,
}
