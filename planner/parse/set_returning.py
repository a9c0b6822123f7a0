"""Replaces set-returning functions by `unnest` of arrays from Sparkwave's own functions.

So both batch queries and views read them, in the select list and in FROM.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from sparkwave.planner.functions.argument_counts import takes
from sparkwave.planner.parse.identifiers import folded


@dataclass(frozen=True)
class _Rows:
    """`arrays` are the functions that make an array of each column, `columns` their names in FROM.

    A column without a name gets the function's name, or its alias. `is_named` functions take the call's name as an
    argument. `of` is a function of the call's arguments whose result the arrays are made of.
    """

    arrays: tuple[str, ...]
    columns: tuple[str, ...] = ()
    is_named: bool = False
    of: str | None = None


def _of_documents(type_: str) -> dict[str, _Rows]:
    return {
        f"{type_}_array_elements": _Rows((f"{type_}_elements",), ("value",)),
        f"{type_}_array_elements_text": _Rows((f"{type_}_element_texts",), ("value",)),
        f"{type_}_object_keys": _Rows((f"{type_}_keys",), is_named=True),
        f"{type_}_each": _Rows((f"{type_}_keys", f"{type_}_values"), ("key", "value"), is_named=True),
        f"{type_}_each_text": _Rows((f"{type_}_keys", f"{type_}_value_texts"), ("key", "value"), is_named=True),
    }


SET_RETURNING = {
    **_of_documents("jsonb"),
    **_of_documents("json"),
    "string_to_table": _Rows(("string_to_array",)),
    "regexp_split_to_table": _Rows(("regexp_split_to_array",)),
    "regexp_matches": _Rows(("regexp_all_matches",)),
    "generate_subscripts": _Rows(("array_subscripts",)),
    "jsonb_path_query": _Rows(("jsonb_elements",), of="jsonb_path_query_array"),
}
ORDINALITY = "ordinality"
# sqlglot's nodes of the functions whose rows are elements.
ROW_FUNCTIONS = (exp.Unnest, exp.Explode, exp.GenerateSeries, exp.ExplodingGenerateSeries)
# The name of the function that a call of Sparkwave's own stands for, and its arguments in the client's text.
WRITTEN, GIVEN = "written", "given"
# The type of an argument before them, which is none of a call of Sparkwave's own.
BEFORE = "before"
# Marks the calls of unnest itself.
WRITTEN_UNNEST = "unnest"


def makes_rows(part: exp.Expr, select: exp.Select) -> bool:
    """Return whether a part of a SELECT has a set-returning function of this SELECT: several rows of one, or none."""
    return any(call.parent_select is select for call in part.find_all(*ROW_FUNCTIONS))


def with_unnests(tree: exp.Expr) -> exp.Expr:
    """Return the tree, changed in place, with UNNEST for calls that return sets.

    In a select list, a function that returns a key and a value gives rows of the two.
    """
    for unnest in tree.find_all(exp.Unnest, exp.Explode):
        unnest.meta[WRITTEN_UNNEST] = True
        alias = unnest.args.get("alias")
        if unnest.args.get("offset") and len(unnest.expressions) == 1 and alias is not None and not alias.columns:
            alias.set("columns", [alias.this.copy()])  # which DuckDB would name unnest
    for call in list(tree.find_all(exp.Anonymous)):
        rows = SET_RETURNING.get(call.name.lower())
        if call.name.lower() == "range" and isinstance(call.parent, exp.Table | exp.Lateral):
            _name_column(call.parent.args.get("alias"))
        if rows is None or not takes(call.name.lower(), len(call.expressions)):
            continue
        if call.arg_key == "this" and isinstance(call.parent, exp.Table | exp.Lateral):
            _in_from(call.parent, call, rows)
        else:
            arrays = _arrays(call, rows)
            made = exp.Explode(this=arrays[0] if len(arrays) == 1 else _pairs(call, arrays))
            made.meta["name"] = call.name.lower()
            call.replace(made)
    for table in list(tree.find_all(exp.Table)):
        if table.args.get("rows_from"):
            _beside_each_other(table)
    return tree


def _name_column(alias: exp.TableAlias | None) -> None:
    """Let the alias of a function with one column name this column."""
    if alias is not None and alias.this is not None and not alias.columns:
        alias.set("columns", [alias.this.copy()])


def _beside_each_other(table: exp.Table) -> None:
    """Put the elements of several arrays, side by side, in place of `ROWS FROM (f(), g())`.

    A function of something else than arrays stays, and is refused.
    """
    arrays: list[exp.Expr] = []
    names: list[exp.Expr] = []
    for part in table.args["rows_from"]:
        own, columns = _arrays_of_part(part)
        if not own:
            return
        arrays += own
        names += columns
    alias = table.args.get("alias")
    given = list(alias.columns) if alias is not None else []
    name = alias.this if alias is not None and alias.this is not None else names[0]
    offset: exp.Expr | bool = False
    if table.args.get("ordinality"):
        offset = given.pop() if len(given) > len(arrays) else exp.to_identifier(ORDINALITY)
    if len(arrays) == 1 and alias is not None:
        names = [name]
    named = exp.TableAlias(this=name.copy(), columns=[*given, *(each.copy() for each in names[len(given) :])])
    unnest = exp.Unnest(expressions=arrays, offset=offset, alias=named)
    unnest.meta[WRITTEN_UNNEST] = True
    put_into_from(table, unnest)


def _arrays_of_part(part: exp.Expr) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """Return the arrays of a function in ROWS FROM, and the names of its columns; none for any other function."""
    function = part.this if isinstance(part, exp.Table) else part
    if isinstance(function, exp.ExplodingGenerateSeries):
        return [series_array(function)], [exp.to_identifier("generate_series")]
    if isinstance(function, exp.Explode):
        arrays = [function.this, *function.expressions]
    elif isinstance(function, exp.Unnest) and not function.args.get("offset"):
        arrays = function.expressions
    else:
        return [], []
    alias = part.args.get("alias")
    columns = list(alias.columns) if alias is not None else []
    return arrays, columns or [exp.to_identifier("unnest") for _ in arrays]


def _pairs(call: exp.Anonymous, arrays: list[exp.Expr]) -> exp.Expr:
    """Return the array of the rows of a key and a value."""
    made = exp.Anonymous(this="zip_pairs", expressions=arrays)
    made.meta.update({**call.meta, WRITTEN: made.name})
    return made


def _arrays(call: exp.Anonymous, rows: _Rows) -> list[exp.Expr]:
    arguments = [*call.expressions, *([exp.Literal.string(call.name.lower())] if rows.is_named else [])]
    as_written = {**call.meta, WRITTEN: call.name.lower(), GIVEN: len(call.expressions)}
    if rows.of is not None:
        inner = exp.Anonymous(this=rows.of, expressions=[part.copy() for part in arguments])
        inner.meta.update(as_written)
        return [exp.Anonymous(this=name, expressions=[inner.copy()]) for name in rows.arrays]
    made: list[exp.Expr] = [
        exp.Anonymous(this=name, expressions=[part.copy() for part in arguments]) for name in rows.arrays
    ]
    for array in made:
        array.meta.update(as_written)
    return made


def _in_from(source: exp.Expr, call: exp.Anonymous, rows: _Rows) -> None:
    function, alias = call.name.lower(), source.args.get("alias")
    table = alias.this if alias is not None and alias.this is not None else exp.to_identifier(function)
    given = list(alias.columns) if alias is not None else []
    offset: exp.Expr | bool = False
    if source.args.get("ordinality"):
        offset = given.pop() if len(given) > len(rows.arrays) else exp.to_identifier(ORDINALITY)
    own = rows.columns or (folded(table),)
    if rows.columns and len(own) == 1 and not given and alias is not None and _names(source, table.name, own[0]):
        own = (folded(table),)
    columns = given + [exp.to_identifier(name, quoted=True) for name in own[len(given) :]]
    named = exp.TableAlias(this=table.copy(), columns=columns)
    unnest = exp.Unnest(expressions=_arrays(call, rows), offset=offset)
    if isinstance(source, exp.Lateral):
        source.set("this", unnest)
        source.set("alias", named)
        source.set("ordinality", None)
        return
    unnest.set("alias", named)
    put_into_from(source, unnest)


def series_array(series: exp.Expr) -> exp.Expr:
    """Return the array of the numbers or times of a series."""
    arguments = {key: value for key, value in series.args.items() if key != "is_end_exclusive"}
    return exp.GenerateSeries(**arguments)


def with_numbered_series(tree: exp.Expr, array_of: Callable[[exp.Expr], exp.Expr | None] = series_array) -> None:
    """Let `generate_series(a, b) WITH ORDINALITY` in FROM be the elements of an array, which have numbers, in place.

    A series stays for which there is no array.
    """
    for source in list(tree.find_all(exp.Table, exp.Lateral)):
        if not source.args.get("ordinality") or not isinstance(source.this, exp.ExplodingGenerateSeries):
            continue
        if (array := array_of(source.this)) is None:
            continue
        alias = source.args.get("alias")
        name = alias.this if alias is not None and alias.this is not None else exp.to_identifier("generate_series")
        given = list(alias.columns) if alias is not None else []
        number = given.pop() if len(given) > 1 else exp.to_identifier(ORDINALITY)
        named = exp.TableAlias(this=name.copy(), columns=given or [name.copy()])
        unnest = exp.Unnest(expressions=[array], offset=number)
        if isinstance(source, exp.Lateral):
            source.set("this", unnest)
            source.set("alias", named)
            source.set("ordinality", None)
        else:
            unnest.set("alias", named)
            put_into_from(source, unnest)


def put_into_from(source: exp.Expr, made: exp.Expr) -> None:
    """Replace a source by another one, which gets its joins."""
    for argument in ("joins", "laterals"):
        if source.args.get(argument):
            made.set(argument, source.args[argument])
    source.replace(made)


def _names(source: exp.Expr, alias: str, column: str) -> bool:
    """Return whether the query uses the alias as a value: `item ->> 'x'`, with `FROM … AS item`.

    Then the alias is the column's name, also where the query has `item.value`.
    """
    select = source.find_ancestor(exp.Select)
    found = list(select.find_all(exp.Column)) if select is not None else []
    if not any(c.name.lower() == alias.lower() and not c.table for c in found):
        return False
    for reference in found:
        if reference.table.lower() == alias.lower() and reference.name.lower() == column:
            reference.set("this", exp.to_identifier(alias))
    return True
