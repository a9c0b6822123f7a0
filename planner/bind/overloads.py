"""Chooses a function among those of one name and number of arguments, by the types of a call's arguments.

The rules are PostgreSQL's (documentation 10.3). Text and varchar are one type here, and digits tell no functions apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Catalog, Function
from sparkwave.catalog.types import Type
from sparkwave.planner.batch.pg_names import IMPLICIT_SCHEMAS
from sparkwave.planner.batch.typer import Columns, NameTables, Typer, name_apart, type_of_value
from sparkwave.planner.bind.python_functions import whole_call
from sparkwave.planner.bind.scopes import Scope, find_read
from sparkwave.planner.functions.result_types import NUMBERS, Known
from sparkwave.planner.functions.typed import data_type, with_written_numerics
from sparkwave.planner.functions.written_json import with_json
from sparkwave.planner.parse.trees import is_cte, name_of, position_of

# A call's node with all that belongs to it, the call, and the functions that it may mean.
Call = tuple[exp.Expr, exp.Anonymous, Sequence[Function]]

_MOMENTS = ("date", "timestamp without time zone", "timestamp with time zone")
_PREFERRED = {"double precision", "character varying", "timestamp with time zone", "boolean", "interval"}
_CATEGORIES = {
    **dict.fromkeys(NUMBERS, "number"), "character varying": "text", **dict.fromkeys(_MOMENTS, "moment"),
    "time without time zone": "moment", "boolean": "boolean", "interval": "interval",
}  # fmt: skip
_TEXT = "text"


def key_of(types: Iterable[Type]) -> tuple[Type, ...]:
    """Return the types by which functions of one name are told apart."""
    return tuple(map(_plain, types))


def resolved(
    tree: exp.Expr, calls: Sequence[Call], catalog: Catalog, scope: Scope
) -> Iterator[tuple[exp.Expr, Function]]:
    """Yield the calls of a tree, inner ones first, each with its function.

    Raises Error 42883 where no function takes the arguments, 42725 where several do, or a type is not known.
    """
    copied = tree.copy()
    twins = {id(node): twin for node, twin in zip(tree.walk(), copied.walk(), strict=True)}
    holder = copied if isinstance(copied, exp.Query | exp.DML) else exp.select(copied, copy=False)
    for parameter in list(holder.find_all(exp.Parameter)):
        number = int(parameter.name) if parameter.name.isdecimal() else 0
        type_ = scope.parameters[number - 1] if 0 < number <= len(scope.parameters) else None
        if type_ is not None:
            parameter.replace(_value_of(type_))
    with_json(with_written_numerics(holder))
    typed = Typer(_naming(catalog, scope))
    for node, call, functions in calls:
        function, twin = functions[0], twins[id(call)]
        assert isinstance(twin, exp.Anonymous)
        if len(functions) > 1:
            places = typed(holder, twin.expressions)
            types = [_type(argument, place) for argument, place in zip(twin.expressions, places, strict=True)]
            function = _chosen(functions, types, call)
        yield node, function
        if not isinstance(twin.parent, exp.Table | exp.Lateral):
            whole_call(twins[id(node)], function).replace(_value_of(function.result))


def _value_of(type_: Type) -> exp.Expr:
    return exp.Paren(this=exp.cast(exp.null(), data_type(type_)))


_UNTYPED = (exp.Null, exp.Parameter)


def _type(argument: exp.Expr, place: exp.Expr | None) -> Known:
    """Return the type of an argument, None for a text or NULL without one. Raises Error 42725 where it is not known."""
    bare = argument.unnest()
    if isinstance(bare, _UNTYPED) or bare.is_string:
        return None
    found = type_of_value(place) if place is not None else None
    if found is None:
        message = "the type of an argument is not known, by which a function would be chosen"
        raise Error(message, errors.AMBIGUOUS_FUNCTION, hint="Cast the argument.", position=position_of(argument))
    return _plain(found)


def _naming(catalog: Catalog, scope: Scope) -> NameTables:
    """Return what names the tables of a tree for a `Typer`."""

    def name_tables(tree: exp.Expr, tables: dict[str, Columns]) -> None:
        for table in list(tree.find_all(exp.Table)):
            if not isinstance(table.this, exp.Identifier) or is_cte(table):
                continue
            name = name_of(table)
            relation = find_read(catalog, scope, name)
            if relation is not None:
                columns: Columns = {column.name: column.type for column in relation.visible}
            else:
                schemas = (name.schema,) if name.schema else (*IMPLICIT_SCHEMAS, *scope.path)
                columns = next(filter(None, (catalog.system_columns(schema, name.name) for schema in schemas)), {})
            name_apart(table, columns, tables)

    return name_tables


def _chosen(functions: Sequence[Function], types: Sequence[Known], call: exp.Anonymous) -> Function:
    wanted = {function.id: key_of(type_ for _, type_ in function.arguments) for function in functions}
    left = [each for each in functions if all(map(_takes, wanted[each.id], types))]
    if not left:
        message = f"function {_written(functions[0], types)} does not exist"
        raise Error(message, errors.UNDEFINED_FUNCTION, hint=errors.NO_FUNCTION, position=position_of(call))
    known = [(place, type_) for place, type_ in enumerate(types) if type_ is not None]
    left = _best(left, lambda each: sum(wanted[each.id][place] == type_ for place, type_ in known))
    left = _best(left, lambda each: sum(_is_near(wanted[each.id][place], type_) for place, type_ in known))
    left = _of_categories(left, wanted, [place for place, type_ in enumerate(types) if type_ is None])
    if len(left) > 1 and len(known) < len(types) and len({type_ for _, type_ in known}) == 1:
        one = known[0][1]
        left = [each for each in left if all(_takes(other, one) for other in wanted[each.id])] or left
    if len(left) > 1:
        raise Error(
            f"function {_written(functions[0], types)} is not unique",
            errors.AMBIGUOUS_FUNCTION,
            hint="Could not choose a best candidate function. You might need to add explicit type casts.",
            position=position_of(call),
        )
    return left[0]


def _written(function: Function, types: Sequence[Known]) -> str:
    return f"{function.name}({', '.join('unknown' if type_ is None else str(type_) for type_ in types)})"


def _best(functions: list[Function], rank: Callable[[Function], int]) -> list[Function]:
    most = max(map(rank, functions))
    return [each for each in functions if rank(each) == most]


def _of_categories(
    functions: list[Function], wanted: Mapping[int, tuple[Type, ...]], places: Sequence[int]
) -> list[Function]:
    """Return the functions whose types at the places of untyped arguments are texts, or else of one category each.

    Of a category's types only the preferred one is left, if any function has it. All are returned where this leaves
    none, and where the types at a place are of several categories without texts.
    """
    left = functions
    for place in places:
        types = {each.id: wanted[each.id][place] for each in functions}
        categories = set(map(_category, types.values()))
        if len(categories) > 1 and _TEXT not in categories:
            return functions
        category = _TEXT if _TEXT in categories else next(iter(categories))
        of_it = {id_: type_ for id_, type_ in types.items() if _category(type_) == category}
        has_preferred = any(map(_is_preferred, of_it.values()))
        left = [each for each in left if each.id in of_it and (_is_preferred(of_it[each.id]) or not has_preferred)]
    return left or functions


def _plain(type_: Type) -> Type:
    plain = type_.without_digits
    return replace(plain, name="character varying") if plain.name == "text" else plain


def _takes(wanted: Type, given: Known) -> bool:
    """Return whether a value is cast to a type without being told to."""
    if given is None or wanted == given:
        return True
    if wanted.dimensions != given.dimensions:
        return False
    for ladder in (NUMBERS, _MOMENTS, ("time without time zone", "interval")):
        if wanted.name in ladder and given.name in ladder:
            return ladder.index(given.name) < ladder.index(wanted.name)
    return False


def _is_near(wanted: Type, given: Known) -> bool:
    """Return whether a type is that of the value, or the preferred one of its category."""
    return wanted == given or (given is not None and _is_preferred(wanted) and _category(wanted) == _category(given))


def _is_preferred(type_: Type) -> bool:
    return not type_.dimensions and type_.name in _PREFERRED


def _category(type_: Type) -> str:
    if type_.dimensions:
        return "array"
    if type_.fields:
        return "struct"
    return _CATEGORIES.get(type_.name, type_.name)
