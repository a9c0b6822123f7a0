"""Replaces functions in FROM that DuckDB or sqlglot reads otherwise than PostgreSQL by equivalent queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types

from sparkwave.catalog.types import BIGINT, INTEGER, NUMERIC, SMALLINT, Type
from sparkwave.planner.bind.output_names import FUNCTION_NODES, output_name
from sparkwave.planner.functions.operators import METADATA, as_call
from sparkwave.planner.functions.result_types import Known
from sparkwave.planner.functions.scalar_functions import duckdb_call, of_each
from sparkwave.planner.functions.typed import data_type, type_of_part
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.parameter_runs import parameter_numbers
from sparkwave.planner.parse.set_returning import ORDINALITY, ROW_FUNCTIONS, put_into_from, series_array

# The name of an element in expressions over it; lambdas in these have other names.
_ROW = "_row"


def expand_unnests(tree: exp.Expr) -> exp.Expr:
    """Replace `unnest(a, b)` in FROM by the arrays' elements side by side, as many rows as the longest has.

    Changes the tree.
    """
    for unnest in list(tree.find_all(exp.Unnest)):
        if len(unnest.expressions) > 1 and isinstance(unnest.parent, exp.From | exp.Join | exp.Lateral):
            _replace(unnest, _side_by_side(unnest))
    return tree


def expand_around_rows(tree: exp.Expr) -> exp.Expr:
    """Replace `f(unnest(a))` and `unnest(f(unnest(a)))` in a select list by the rows of one array. Changes the tree.

    `f(generate_series(a, b))` is replaced, too. DuckDB knows the type of an element only within the array, and takes no
    rows of rows.
    """
    if tree.find(exp.Explode, exp.ExplodingGenerateSeries) is None:
        return tree
    for select in tree.find_all(exp.Select):
        _put_series_into_from(select)
    for item in [item for select in tree.find_all(exp.Select) for item in select.selects]:
        value = item.unalias()
        series = _of_query(value, exp.ExplodingGenerateSeries)
        if _has_sets_outside(value, [*_rows_in(value), *series]):
            continue
        if series and value is not series[0]:
            if len(series) == 1 and not _rows_in(value):
                _expand_around_series(item, series[0])
            continue
        for rows in reversed(_rows_in(value)):
            within = _rows_in(rows.this)
            if len(within) == 1:
                array = _taken(within[0])
                rows.set("this", duckdb_call("flatten", of_each(array, rows.this.copy(), _ROW)))
        found = _rows_in(value)
        if len(found) == 1 and found[0] is not value:
            name, array = output_name(item), _taken(found[0])
            made = exp.Explode(this=of_each(array, value.copy(), _ROW))
            value.replace(made if isinstance(item, exp.Alias) else exp.alias_(made, name, quoted=True))
    return tree


_ROWS_OF_ITS_OWN = ("from_", "joins", "laterals", "group", "having", "distinct", "windows")


def _put_series_into_from(select: exp.Select) -> None:
    """Let a series of constants be the FROM of a query without one.

    There DuckDB makes its rows one after the other; in a select list all at once, in memory that it does not count.
    """
    sets = [
        part
        for item in select.selects
        for part in item.find_all(*ROW_FUNCTIONS)
        if part.find_ancestor(exp.Query) is select
    ]
    if len(sets) != 1 or any(select.args.get(key) for key in _ROWS_OF_ITS_OWN) or not is_of_integers(sets[0]):
        return
    if sets[0].find(exp.Column, exp.Query, exp.Parameter):
        return
    if any(part.find(exp.AggFunc, exp.Window) for part in select.selects):
        return
    for item in select.selects:
        if not isinstance(item, exp.Alias):
            item.replace(exp.alias_(item.copy(), output_name(item), quoted=True))
    series = next(part for item in select.selects for part in _of_query(item, exp.ExplodingGenerateSeries))
    number = exp.column("generate_series", table="generate_series")
    number.type = data_type(INTEGER)
    series.replace(number)
    select.set("from_", exp.From(this=exp.Table(this=series)))


def _expand_around_series(item: exp.Expr, series: exp.Expr) -> None:
    name, value = output_name(item), item.unalias()
    arguments = {key: part.copy() for key, part in series.args.items() if isinstance(part, exp.Expr)}
    numerics = with_numeric_series(exp.ExplodingGenerateSeries(**arguments))
    array = numerics.this if isinstance(numerics, exp.Explode) else exp.GenerateSeries(**arguments)
    number = exp.column(_ROW)
    series.replace(bigint_as_integer(number) if is_of_integers(series) else number)
    made = exp.Explode(this=of_each(array, value.copy(), _ROW))
    value.replace(made if isinstance(item, exp.Alias) else exp.alias_(made, name, quoted=True))


def is_of_integers(series: exp.Expr) -> bool:
    """Return whether a series is of integers, without tables: PostgreSQL's is of integer then, DuckDB's of bigint."""
    if not isinstance(series, exp.ExplodingGenerateSeries):
        return False
    return all(type_ in (SMALLINT, INTEGER) for type_ in _types(series))


def with_numeric_series(series: exp.Expr) -> exp.Expr:
    """Return the rows of a series of numerics, which DuckDB has none of; any other function as it is."""
    if not isinstance(series, exp.ExplodingGenerateSeries):
        return series
    types = _types(series)
    if not any(type_ is not None and type_.name == NUMERIC.name and not type_.dimensions for type_ in types):
        return series
    step = series.args.get("step") or exp.Literal.number(1)
    ends = [series.args["start"], series.args["end"], step]
    return exp.Explode(this=exp.Anonymous(this="series_of_numerics", expressions=ends))


def lateral_series(function: exp.Expr) -> exp.Expr:
    """Return the rows of a series behind LATERAL, where DuckDB takes no query; any other function as it is."""
    rows = with_numeric_series(function)
    if rows is not function:
        return exp.Unnest(expressions=[rows.this])
    if not is_of_integers(function):
        return function
    array = series_array(function)
    array.type = data_type(Type(BIGINT.name, dimensions=1))
    return exp.Unnest(expressions=[exp.cast(array, "int[]", copy=False)])


def _types(series: exp.Expr) -> list[Known]:
    """Return the types of a series' arguments as far as they are known without tables."""
    known = annotate_types(series.copy(), expression_metadata=METADATA, dialect="postgres")
    return [type_of_part(part) or part.meta.get(_OF_PARAMETER) for part in known.iter_expressions()]


_OF_PARAMETER = "type of parameter"


def with_series_of_parameters(tree: exp.Expr, parameters: Sequence[Type]) -> None:
    """Let the parameters among the arguments of series have their types, in place."""
    for series in tree.find_all(exp.ExplodingGenerateSeries):
        for part in series.iter_expressions():
            for number in parameter_numbers(part):
                part.meta[_OF_PARAMETER] = parameters[number - 1]


def bigint_as_integer(node: exp.Expr) -> exp.Expr:
    """Return a cast to integer of a node that DuckDB makes a bigint; a node of unknown type would be read as text."""
    node.type = data_type(BIGINT)
    return exp.cast(node, exp.DType.INT, copy=False)


def _has_sets_outside(value: exp.Expr, rows: list[exp.Expr]) -> bool:
    """Return whether an expression has an aggregate, window function or query that is not an argument of `rows`."""
    return any(
        not any(around is each for around in _around(part, value) for each in rows)
        for part in value.find_all(exp.AggFunc, exp.Window, exp.Query)
    )


def _around(part: exp.Expr, value: exp.Expr) -> Iterator[exp.Expr]:
    """Return the nodes of an expression around a part of it."""
    node: exp.Expr | None = part
    while node is not value and node is not None:
        node = node.parent
        if node is not None:
            yield node


def _of_query(value: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    """Return the nodes of a kind in an expression that are not in a query within it, outer ones first."""
    query = value.find_ancestor(exp.Query)
    return [part for part in value.find_all(kind) if part.find_ancestor(exp.Query) is query]


def _rows_in(value: exp.Expr) -> list[exp.Expr]:
    """Return the set-returning functions of arrays in an expression, outer ones first."""
    return _of_query(value, exp.Explode)


def _taken(rows: exp.Expr) -> exp.Expr:
    """Return the array of a set-returning function, whose place in the expression becomes that of an element."""
    array, element = rows.this, exp.column(_ROW)
    element.type = rows.type
    rows.replace(element)
    return array


def _side_by_side(unnest: exp.Unnest) -> exp.Select:
    arrays = unnest.expressions
    items: list[exp.Expr] = [exp.alias_(exp.Explode(this=array.copy()), "unnest", quoted=True) for array in arrays]
    if unnest.args.get("offset"):
        lengths = [exp.Anonymous(this="len", expressions=[array.copy()]) for array in arrays]
        longest = exp.Anonymous(this="greatest", expressions=[exp.Literal.number(0), *lengths])
        numbers = exp.Anonymous(this="generate_series", expressions=[exp.Literal.number(1), longest])
        items.append(exp.alias_(exp.Explode(this=numbers), ORDINALITY, quoted=True))
    return exp.select(*items)


def expand_series(tree: exp.Expr) -> exp.Expr:
    """Replace `generate_series(..)` in FROM by a query with its column, for type inference. Changes the tree."""
    for found in list(tree.find_all(exp.ExplodingGenerateSeries, exp.Anonymous)):
        source, series = found.parent, _range_as_series(found)
        if series is None or not isinstance(source, exp.Table | exp.Lateral):
            continue
        alias = source.args.get("alias")
        name = alias.name if alias is not None and not alias.columns and alias.name else output_name(found)
        items: list[exp.Expr] = [exp.alias_(series.copy(), name, quoted=True)]
        if source.args.get("ordinality"):
            items.append(exp.alias_(exp.cast(exp.null(), "bigint"), ORDINALITY, quoted=True))
        query = exp.select(*items)
        is_typed = all(isinstance(part, exp.Cast) for part in series.iter_expressions() if part.find(exp.Column))
        if not is_typed:  # sqlglot finds the columns' tables only if the query is LATERAL, but not its type
            own = alias.copy() if alias is not None else exp.TableAlias(this=exp.to_identifier(name))
            put_into_from(source, exp.Lateral(this=exp.Subquery(this=query), alias=own))
        else:
            _replace(source, query)
    return tree


def _range_as_series(function: exp.Expr) -> exp.Expr | None:
    """Return a series, also that of DuckDB's `range(a, b)`, which has the same types; None for other functions."""
    if isinstance(function, exp.ExplodingGenerateSeries):
        return function
    if function.name.lower() != "range" or not 1 < len(function.expressions) < 4:
        return None
    return exp.ExplodingGenerateSeries(**dict(zip(("start", "end", "step"), function.expressions, strict=False)))


def is_single_value(function: exp.Expr) -> bool:
    """Return whether a function in FROM is one for select lists, with a single value."""
    is_system = isinstance(function, exp.Anonymous) and function.name.lower() in _OF_SYSTEM
    return is_system or as_call(function) is not None or isinstance(function, _OF_SESSION)


# Functions of the system with a single value.
_OF_SYSTEM = frozenset(
    {
        "current_schemas", "current_setting", "format_type", "has_database_privilege", "has_schema_privilege",
        "has_table_privilege", "obj_description", "pg_backend_pid", "pg_cancel_backend", "pg_conf_load_time",
        "pg_get_constraintdef", "pg_get_indexdef", "pg_get_serial_sequence", "pg_get_userbyid", "pg_get_viewdef",
        "pg_postmaster_start_time", "pg_sleep",
        "pg_table_is_visible", "pg_terminate_backend", "set_config", "to_regclass", "to_regtype", "version",
    }
)  # fmt: skip
_OF_SESSION = (*FUNCTION_NODES, exp.CurrentTimestamp, exp.CurrentDate)


def expand_calls(tree: exp.Expr) -> exp.Expr:
    """Replace `upper('x')` in FROM by a query of its value, in a column with the alias' name. Changes the tree."""
    for source in list(tree.find_all(exp.Table)):
        function, alias = source.this, source.args.get("alias")
        if is_single_value(function) and not source.args.get("ordinality"):
            name = folded(alias.this) if alias is not None and not alias.columns else output_name(function)
            _replace(source, exp.select(exp.alias_(function.copy(), name, quoted=True)))
    return tree


def _replace(source: exp.Expr, query: exp.Select) -> None:
    """Replace a function by a query, with its alias and column names."""
    alias = source.args.get("alias")
    named = alias.copy() if alias is not None else None
    offset = source.args.get("offset")
    if isinstance(offset, exp.Identifier) and named is not None:  # sqlglot takes it from the column list
        named.append("columns", offset.copy())
    if named is None and not isinstance(source.parent, exp.Lateral):
        named = exp.TableAlias(this=exp.to_identifier(query.selects[0].alias))
    subquery = exp.Subquery(this=query, alias=named)
    put_into_from(source, subquery)
