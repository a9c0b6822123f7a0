"""SQL functions whose body is a query: a call becomes a subquery, with the arguments in the places of the parameters.

As in PostgreSQL, a name in the body means a column of its FROM before it means a parameter. Names in an argument keep
the meaning that they have outside: no source in the body has the name of a source that an argument refers to, and the
columns in it are qualified where the body might have a column of the same name.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Catalog, Function
from sparkwave.planner.bind.merged_columns import ColumnsOf, columns_in
from sparkwave.planner.bind.scopes import Scope, find_read
from sparkwave.planner.build.time_windows import windowed_table
from sparkwave.planner.functions.aggregates import aggregate_calls
from sparkwave.planner.functions.typed import data_type
from sparkwave.planner.parse.from_items import from_items
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.set_returning import put_into_from
from sparkwave.planner.parse.trees import alias_of, is_cte, name_of, position_of

# Columns of functions in FROM that have names of their own.
_OF_FUNCTIONS = frozenset({"key", "value", "ordinality", "window_start", "window_end"})


def is_source(call: exp.Expr) -> bool:
    """Return whether a call is an item of FROM."""
    return call.arg_key == "this" and isinstance(call.parent, exp.Table | exp.Lateral)


def with_parameters(query: exp.Query, function: Function, catalog: Catalog) -> exp.Query:
    """Return a function's query, changed in place, with its tables' schemas, and parameters in place of their names.

    Raises Error 42703 or 42P02 for unknown names, 0A000 for TUMBLE and HOP.
    """
    scope = Scope(function.database, (function.schema,))
    columns_of = columns_in(catalog, scope)
    numbers = {name: number for number, (name, _) in enumerate(function.arguments, start=1) if name}
    for column in list(query.find_all(exp.Column)):
        number = numbers.get(folded(column.this)) if isinstance(column.this, exp.Identifier) else None
        if number is None or column.args.get("db") is not None:
            continue
        table = column.args.get("table")
        sources = list(_in_reach(column))
        if table is not None:
            is_column = folded(table) != function.name or any(alias_of(each) == function.name for each in sources)
        else:
            is_column = _is_output(column) or any(_may_have(each, folded(column.this), columns_of) for each in sources)
        if not is_column:
            column.replace(exp.Parameter(this=exp.Literal.number(number)))
    for parameter in query.find_all(exp.Parameter):
        if not 1 <= int(parameter.name) <= len(function.arguments):
            raise Error(f"there is no parameter ${parameter.name}", errors.UNDEFINED_PARAMETER)
    for table in list(query.find_all(exp.Table)):
        if windowed_table(table) is not None:
            raise Error("TUMBLE and HOP in a SQL function are not supported", errors.FEATURE_NOT_SUPPORTED)
        if isinstance(table.this, exp.Identifier) and not is_cte(table):
            relation = find_read(catalog, scope, name_of(table))
            if relation is not None and not relation.is_temporary:
                if table.args.get("alias") is None:
                    table.set("alias", exp.TableAlias(this=table.this.copy()))
                table.set("db", exp.to_identifier(relation.schema, quoted=True))
    return query


def place_arguments(query: exp.Query, function: Function, call: exp.Anonymous, outside: ColumnsOf) -> None:
    """Put a call's arguments, with the declared types, into a query `with_parameters`. `outside` knows the call's FROM.

    Raises Error 0A000 for an argument whose names would have another meaning within the query.
    """
    arguments = [_settled(argument, query, call, outside) for argument in call.expressions]
    named = {column.table.lower() for argument in arguments for column in argument.find_all(exp.Column)}
    _rename_sources(query, named, f"_{function.name}_{function.id}")
    for place in list(query.find_all(exp.Parameter)):
        _, type_ = function.arguments[int(place.name) - 1]
        place.replace(exp.Paren(this=exp.cast(arguments[int(place.name) - 1].copy(), data_type(type_))))


def first_value(query: exp.Query) -> exp.Subquery:
    """Return the first row's value of a query of one column."""
    if not _has_one_row(query):
        query = query.limit(1, copy=False)
    return query.subquery(copy=False)


def put_rows(call: exp.Expr, query: exp.Query, function: Function) -> None:
    """Put a query, with the types and names of the function's columns, in the place of its call in FROM.

    Raises Error 0A000 for WITH ORDINALITY.
    """
    source = call.parent
    assert source is not None
    if source.args.get("ordinality"):
        raise without_ordinality(function, call)
    name, columns = names_in_from(source, function)
    rows = with_types(query, function).subquery(copy=False)
    named = exp.TableAlias(this=name.copy(), columns=[column.copy() for column in columns])
    is_lateral = isinstance(source, exp.Lateral) or any(call.find_all(exp.Column))
    made: exp.Expr = exp.Lateral(this=rows, alias=named) if is_lateral else rows
    made.set("alias", named)
    if isinstance(source.parent, exp.From):
        made = rows
        rows.set("alias", named)
    put_into_from(source, made)


def names_in_from(source: exp.Expr, function: Function) -> tuple[exp.Identifier, list[exp.Identifier]]:
    """Return the name of a function's rows in FROM and those of its columns: the alias's, and then its own."""
    alias = source.args.get("alias")
    name = alias.this if alias is not None and alias.this is not None else exp.to_identifier(function.name, quoted=True)
    given = list(alias.columns) if alias is not None else []
    own = [column or name.name for column in function.columns or ("",)]
    return name, given + [exp.to_identifier(column, quoted=True) for column in own[len(given) :]]


def without_ordinality(function: Function, call: exp.Expr) -> Error:
    message = f"WITH ORDINALITY of {function.name} is not supported"
    return Error(message, errors.FEATURE_NOT_SUPPORTED, position=position_of(call))


def with_types(query: exp.Query, function: Function) -> exp.Select:
    """Return a query whose columns have the declared types."""
    if gives_rows(query, function):
        return _of_fields(query, function)
    names = [f"c{place}" for place in range(1, len(function.outputs) + 1)]
    items = [
        exp.alias_(exp.cast(exp.column(name, "rows", quoted=True), data_type(type_)), name, quoted=True)
        for name, (_, type_) in zip(names, function.outputs, strict=True)
    ]
    columns = [exp.to_identifier(name, quoted=True) for name in names]
    alias = exp.TableAlias(this=exp.to_identifier("rows", quoted=True), columns=columns)
    rows = query.subquery(copy=False)
    rows.set("alias", alias)
    return exp.select(*items).from_(rows)


def gives_rows(query: exp.Query, function: Function) -> bool:
    """Return whether a query has one column, a row with the columns of a function of several."""
    return len(function.outputs) > 1 and len(query.selects) == 1 and not query.is_star


def _of_fields(query: exp.Query, function: Function) -> exp.Select:
    """Return the fields of the rows in a query's one column, as columns with the declared types."""
    name = exp.to_identifier("row", quoted=True)
    rows = query.subquery(copy=False)
    rows.set("alias", exp.TableAlias(this=exp.to_identifier("rows", quoted=True), columns=[name]))
    typed = exp.select(exp.alias_(exp.cast(exp.column(name, "rows"), data_type(function.result)), name)).from_(rows)
    items = [
        exp.alias_(
            exp.Dot(
                this=exp.paren(exp.column(name.copy(), "typed", quoted=True)),
                expression=exp.to_identifier(field, quoted=True),
            ),
            f"c{place}",
            quoted=True,
        )
        for place, (field, _) in enumerate(function.outputs, start=1)
    ]
    return exp.select(*items).from_(typed.subquery("typed"))


def _has_one_row(query: exp.Query) -> bool:
    """Return whether a query has at most one row in any case."""
    if not isinstance(query, exp.Select) or query.args.get("group") is not None:
        return False
    rows = (
        query.find(exp.Unnest, exp.Explode, exp.ExplodingGenerateSeries) if query.args.get("from_") is None else query
    )
    return rows is None or any(aggregate_calls(item) for item in query.selects)


# Names.


def _in_reach(column: exp.Column) -> Iterator[exp.Expr]:
    """Yield the sources of the queries around a column."""
    select = column.find_ancestor(exp.Select)
    while select is not None:
        yield from sources_of(select)
        select = select.find_ancestor(exp.Select)


def sources_of(select: exp.Select) -> Iterator[exp.Expr]:
    """Yield the sources in the FROM of a query."""
    items = [*from_items(select), *(select.args.get("laterals") or ())]
    while items:
        item = items.pop(0)
        items += [join.this for join in item.args.get("joins") or ()]
        if isinstance(item, exp.Subquery) and not isinstance(item.this, exp.Query):
            items.append(item.this)
        else:
            yield item


def _is_output(column: exp.Column) -> bool:
    """Return whether ORDER BY names an output."""
    select = column.find_ancestor(exp.Select)
    if select is None or not isinstance(column.parent, exp.Ordered):
        return False
    return any(isinstance(item, exp.Alias) and item.alias == column.name for item in select.selects)


def _may_have(source: exp.Expr, name: str, columns_of: ColumnsOf) -> bool:
    """Return whether a source may have a column of a name."""
    alias = source.args.get("alias")
    if isinstance(alias, exp.TableAlias) and any(folded(column) == name for column in alias.columns):
        return True
    columns = columns_of(source)
    if columns is not None:
        return name in columns
    function = source.this if isinstance(source, exp.Table | exp.Lateral) else source
    if isinstance(function, exp.Func) and not isinstance(function, exp.Subquery):
        return name in _OF_FUNCTIONS or name in (alias_of(source), function.name.lower(), function.sql_name().lower())
    return True


def _settled(argument: exp.Expr, query: exp.Query, call: exp.Anonymous, outside: ColumnsOf) -> exp.Expr:
    """Return an argument whose columns mean within the query what they mean outside."""
    argument = argument.copy()
    own = [source for select in query.find_all(exp.Select) for source in sources_of(select)]
    if own and argument.find(exp.Query):
        raise _refused("a subquery", call)
    for column in list(argument.find_all(exp.Column)):
        if column.table or not own:
            continue
        name = folded(column.this)
        holder = _holder(name, call, outside)
        if holder:
            column.set("table", exp.to_identifier(holder, quoted=True))
        elif any(_may_have(source, name, outside) for source in own):
            raise _refused(f"the column {name} without its table", call)
    return argument


def _refused(what: str, call: exp.Anonymous) -> Error:
    return Error(
        f"{what} is not supported as an argument of a function whose body is a query",
        errors.FEATURE_NOT_SUPPORTED,
        position=position_of(call),
    )


def _holder(name: str, call: exp.Anonymous, columns_of: ColumnsOf) -> str | None:
    """Return the source around a call that has a column of a name; None where it cannot be told."""
    select = call.find_ancestor(exp.Select)
    item = call.parent if is_source(call) else None
    while select is not None:
        sources = [source for source in sources_of(select) if source is not item]
        holders = [source for source in sources if _may_have(source, name, columns_of)]
        if holders:
            return alias_of(holders[0]) or None if len(holders) == 1 else None
        select = select.find_ancestor(exp.Select)
    return None


def _rename_sources(query: exp.Query, taken: set[str], prefix: str) -> None:
    """Give the sources of a query other names than those taken."""
    for select in list(query.find_all(exp.Select)):
        for source in sources_of(select):
            name = alias_of(source)
            if name.lower() not in taken:
                continue
            alias = source.args.get("alias")
            if not isinstance(alias, exp.TableAlias):
                continue
            alias.set("this", exp.to_identifier(f"{prefix}_{name}", quoted=True))
    for column in query.find_all(exp.Column):
        table = column.args.get("table")
        if table is not None and folded(table).lower() in taken:
            column.set("table", exp.to_identifier(f"{prefix}_{folded(table)}", quoted=True))
