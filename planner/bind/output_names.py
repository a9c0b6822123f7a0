"""The names PostgreSQL gives output columns (FigureColname in src/backend/parser/parse_target.c)."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from sparkwave.catalog.modifiers import TO_MODIFIER
from sparkwave.planner.functions.scalar_functions import AS_NUMERIC, NEAREST
from sparkwave.planner.parse.constant_marks import is_constant
from sparkwave.planner.parse.type_text import user_type

NO_NAME = "?column?"
# The name of an unnamed output in sqlglot's qualify, before its number.
UNNAMED = "_col_"

# Nodes that sqlglot makes of functions and keywords that PostgreSQL has under these names.
FUNCTION_NODES: dict[type[exp.Expr], str] = {
    exp.CurrentVersion: "version",
    exp.CurrentDatabase: "current_database",
    exp.CurrentCatalog: "current_catalog",
    exp.CurrentSchema: "current_schema",
    exp.CurrentSchemas: "current_schemas",
    exp.CurrentUser: "current_user",
    exp.SessionUser: "session_user",
}

# Names of types in pg_type that differ from SQL's; a cast of a constant gets this name.
_INTERNAL_TYPE_NAMES: dict[str, str] = {
    "int": "int4",
    "integer": "int4",
    "bigint": "int8",
    "smallint": "int2",
    "real": "float4",
    "double precision": "float8",
    "decimal": "numeric",
    "boolean": "bool",
    "character varying": "varchar",
}
# Functions of Sparkwave that replace a function.
_OURS = {"_avg": "avg"}
# Functions that no user writes, around what has the name.
_HIDDEN = frozenset({AS_NUMERIC, TO_MODIFIER, *NEAREST.values()})
# Operators of which sqlglot makes functions. In definitions, stored ones included, they have these functions' names.
_OPERATORS = (
    exp.Pow, exp.StartsWith, exp.JSONBDeleteAtPath, exp.RegexpLike, exp.RegexpILike, exp.JSONBContains,
    exp.JSONBContainsTopKey, exp.JSONBContainsAnyTopKeys, exp.JSONBContainsAllTopKeys, exp.ArrayContainsAll,
    exp.ArrayContainedBy, exp.ArrayOverlaps, exp.BitwiseXor, exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract,
    exp.JSONBExtractScalar, exp.Sqrt, exp.Cbrt, exp.Abs,
)  # fmt: skip
_TRIMS = {"LEADING": "ltrim", "TRAILING": "rtrim"}


def output_name(item: exp.Expr) -> str:
    """Return the name of a SELECT item: its alias, else the column, function or type in it, else `?column?`."""
    value = item.unalias()
    while isinstance(value, exp.Paren | exp.Cast) and not is_constant(value):
        value = value.this
    if is_constant(value) and not _is_named(item):
        return NO_NAME if value is item.unnest() else _weak_name(item) or NO_NAME
    is_operator = isinstance(value, _OPERATORS) and "name" not in value.meta
    name = _weak_name(item) if is_operator and not _is_named(item) else _derived_name(item)
    return name or NO_NAME


def without_written_names(query: exp.Expr) -> None:
    """Give the unnamed outputs of a query, in place, the names that they had before `since.WRITTEN_NAMES`."""
    for call in query.find_all(exp.Variance):
        call.meta.pop("name", None)


def name_outputs(query: exp.Expr, name: Callable[[exp.Expr], str | None] = output_name) -> None:
    """Name the unnamed outputs of a query, in place; outputs without a `name` stay unnamed."""
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    if isinstance(query, exp.Select):
        query.set("expressions", [_named(item, name(item)) for item in query.selects])


def named_for_view(query: exp.Query) -> exp.Query:
    """Return the query with the names of its outputs as columns of a view; operators and constants get none."""
    query = query.copy()
    name_outputs(query, _derived_name)
    return query


def name_selects(query: exp.Expr) -> None:
    """Name all unnamed outputs of all SELECTs in a query, in place; outputs without a unique name get a number."""
    for select in list(query.find_all(exp.Select)):
        names = [item.alias_or_name if _is_named(item) else _derived_name(item) for item in select.selects]
        own = (name if names.count(name) == 1 else None for name in names)
        named = enumerate(zip(select.selects, own, strict=True))
        select.set("expressions", [_named(item, name or _free(number, names)) for number, (item, name) in named])


def name_subqueries(query: exp.Expr) -> None:
    """Name the unnamed subqueries among the outputs of all sorted SELECTs in a query, in place, by numbers."""
    for select in list(query.find_all(exp.Select)):
        if select.args.get("order") is None:
            continue
        names: list[str | None] = [item.alias_or_name for item in select.selects]
        for number, item in enumerate(select.selects):
            if isinstance(item, exp.Subquery) and not _is_named(item):
                # `exp.alias_` would give it the name of a table, which `qualify` takes for no output.
                alias = exp.Alias(alias=exp.to_identifier(_free(number, names), quoted=True))
                item.replace(alias)
                alias.set("this", item)


def _free(number: int, names: list[str | None]) -> str:
    """Return the name of an output without one, which no other output has by chance."""
    name = f"{UNNAMED}{number}"
    while name in names:
        name += "0"
    return name


def _named(item: exp.Expr, name: str | None) -> exp.Expr:
    return item if name is None or _is_named(item) else exp.alias_(item, name, quoted=True, copy=False)


def _is_named(item: exp.Expr) -> bool:
    return isinstance(item, exp.Alias | exp.Column | exp.Star | exp.Aliases)


def _derived_name(item: exp.Expr) -> str | None:
    return _strong_name(item) or _weak_name(item)


def type_name(to: exp.Expr) -> str:
    """Return a type as written, in lower case, without schema and quotes; a user's type by its own name."""
    element = to.expressions[0] if to.args.get("this") == exp.DType.ARRAY else to
    if (found := user_type(element)) is not None and found.named is not None:
        return found.named.name
    if element.args.get("this") == exp.DType.UNION:
        return "json"
    return to.sql(dialect="postgres").lower().replace('"', "").rpartition(".")[2]


def _strong_name(item: exp.Expr | None) -> str | None:
    """Return the name of a column, function or the like in an expression, which has precedence over that of a type."""
    match item:
        case exp.Alias() | exp.Column():
            return item.output_name
        case exp.Anonymous() if item.name in _HIDDEN:
            return _strong_name(item.expressions[0])
        case exp.Paren() | exp.Collate() | exp.Bracket() | exp.Cast() | exp.Filter() | exp.Window() | exp.WithinGroup():
            return _strong_name(item.this)
        case exp.Case():
            return item.meta.get("name") or _strong_name(item.args.get("default"))
        case exp.Dot():
            last = item.expression
            return last.name if isinstance(last, exp.Identifier) else _strong_name(last)
        case exp.Subquery(this=exp.Select() as query):
            return output_name(query.expressions[0])
        case exp.Array() | exp.Exists():
            return item.key
        case exp.AtTimeZone():
            return "timezone"
        case exp.Trim():
            return _TRIMS.get(str(item.args.get("position")), "btrim")
        case exp.Mod():  # the operator has no name
            return item.meta.get("name")
        case exp.Func() if not isinstance(item, exp.Connector):
            return item.meta.get("name") or _function_name(item)
    return None


def _function_name(item: exp.Expr) -> str | None:
    if isinstance(item, exp.Anonymous):
        return _OURS.get(item.name, item.name.lower())
    written = re.match(r"(\w+)(?:\(|$)", item.sql(dialect="postgres"))
    return FUNCTION_NODES.get(type(item)) or (written[1].lower() if written else None)


def _weak_name(item: exp.Expr) -> str | None:
    match item:
        case exp.Paren() | exp.Collate() | exp.Bracket():
            return _weak_name(item.this)
        case exp.Anonymous() if item.name == TO_MODIFIER:
            return _weak_name(item.expressions[0])
        case exp.Cast():
            name = re.sub(r"\(.*\)|\[\]", "", type_name(item.to))
            return _INTERNAL_TYPE_NAMES.get(name, name)
        case exp.Interval():
            return "interval"
        case exp.Case():
            return "case"
    return None
