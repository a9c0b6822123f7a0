"""Rules of pg_compat for casts and operators."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.names import literal
from sparkwave.catalog.types import BYTEA
from sparkwave.planner.batch.pg_names import (
    ARRAY_COLUMNS,
    OID_TYPES,
    REG_TYPES,
    REGPROC_COLUMNS,
    TYPES,
    Context,
    call,
    strings,
)
from sparkwave.planner.bind.output_names import type_name
from sparkwave.planner.parse.constant_runs import LONG, runs
from sparkwave.planner.parse.text_values import BLANKS, array_texts, decode_text
from sparkwave.planner.parse.trees import position_of
from sparkwave.planner.parse.type_text import ENGINES_OWN

_OPERATORS: dict[str, Callable[[exp.Expr, exp.Expr], exp.Expr]] = {
    "~": lambda left, right: exp.RegexpLike(this=left, expression=right),
    "!~": lambda left, right: exp.Not(this=exp.RegexpLike(this=left, expression=right)),
    "~*": lambda left, right: exp.RegexpILike(this=left, expression=right),
    "!~*": lambda left, right: exp.Not(this=exp.RegexpILike(this=left, expression=right)),
    "~~": lambda left, right: escaped(exp.Like(this=left, expression=right)),
    "!~~": lambda left, right: exp.Not(this=escaped(exp.Like(this=left, expression=right))),
    "~~*": lambda left, right: escaped(exp.ILike(this=left, expression=right)),
    "=": lambda left, right: exp.EQ(this=left, expression=right),
    "<>": lambda left, right: exp.NEQ(this=left, expression=right),
    "<": lambda left, right: exp.LT(this=left, expression=right),
    ">": lambda left, right: exp.GT(this=left, expression=right),
    "<=": lambda left, right: exp.LTE(this=left, expression=right),
    ">=": lambda left, right: exp.GTE(this=left, expression=right),
    "+": lambda left, right: exp.Add(this=left, expression=right),
    "-": lambda left, right: exp.Sub(this=left, expression=right),
    "||": lambda left, right: exp.DPipe(this=left, expression=right),
}


_GIVE_NAMES = frozenset(f"{stem}_out" for stem in REG_TYPES.values())


def is_reg_type(to: exp.Expr) -> bool:
    """Return whether a cast is to a type of objects' names, such as regclass."""
    return type_name(to) in REG_TYPES


def rewrite_cast(node: exp.Cast, context: Context) -> exp.Expr | None:
    """Return a cast that has PostgreSQL's result in DuckDB; None for a cast that stays as it is.

    Raises Error 42704 for a type that only DuckDB has.
    """
    name = type_name(node.to)
    element = name.removesuffix("[]")
    if name in REG_TYPES:
        return _reg_cast(node, REG_TYPES[name], context)
    if name in OID_TYPES and _is_regproc(node.this):
        return call("regproc_in", node.this, strings(context.search_path))
    if isinstance(node.this, exp.Dot) and node.this.name in _GIVE_NAMES and node.to.is_type(*exp.DataType.TEXT_TYPES):
        return node.this
    if name in OID_TYPES and isinstance(node.this, exp.Anonymous) and node.this.name.lower() == "pg_typeof":
        return call("regtype_in", node.this)
    if (unknown := element.partition("(")[0]) in ENGINES_OWN:
        position = position_of(node.to) or position_of(node.this)
        raise Error(f'type "{unknown}" does not exist', errors.UNDEFINED_OBJECT, position=position)
    items = nested_items(node.this) if element != name else None
    if items is not None:
        node.set("this", array_of(items))
        if element.rstrip("[]") == "bytea":
            _read_bytes(node.this)
        element = element.rstrip("[]")
        name = max(name, element + "[]" * depth(items), key=len)
    if element not in TYPES:
        if items is not None and name != type_name(node.to):
            node.set("to", exp.DataType.build(name, dialect="postgres"))
        return node if items is not None else None
    node.set("to", exp.DataType.build(TYPES[element] + name[len(element) :], dialect="duckdb"))
    return node


def _read_bytes(array: exp.Expr) -> None:
    """Read the texts of an array as PostgreSQL's bytes. Raises Error 22P02."""
    for item in list(array.find_all(exp.Literal)):
        value = decode_text(item.name, BYTEA)
        assert isinstance(value, bytes)
        item.replace(exp.Anonymous(this="from_hex", expressions=[exp.Literal.string(value.hex())]))


# PostgreSQL's types that differ in DuckDB, or that DuckDB looks up elsewhere.
_FINEST = 6  # the most digits of a second


def rounded_time(moment: exp.Expr, precision: exp.Expr | None) -> exp.Expr:
    """Return a timestamp rounded to a number of digits of its seconds; unchanged for None.

    Raises Error 42601 for anything but a number.
    """
    if precision is None:
        return moment
    if not isinstance(precision, exp.Literal) or not precision.name.isdecimal():
        raise Error("the precision of a time is a number", errors.SYNTAX_ERROR, position=position_of(precision))
    step = 10 ** max(_FINEST - int(precision.name), 0)
    if step == 1:
        return moment
    unit, half = (exp.Interval(this=exp.Literal.string(f"{us} microseconds")) for us in (step, step // 2))
    return exp.Anonymous(this="time_bucket", expressions=[unit, exp.Add(this=moment, expression=half)])


def _reg_cast(node: exp.Cast, stem: str, context: Context) -> exp.Expr:
    value = node.this.unnest()
    if is_text(value) or _is_regproc(value):
        value = call(f"{stem}_in", value, *_path_of(stem, context, _FOUND_BY_PATH))
    return _shown(node, value, stem, context)


# Stems of objects that are looked up in the schemas of the path.
_FOUND_BY_PATH = ("regclass", "regproc", "regprocedure")


def _path_of(stem: str, context: Context, stems: tuple[str, ...] = ("regclass",)) -> list[exp.Expr]:
    return [strings(context.search_path)] if stem in stems else []


def _shown(node: exp.Expr, value: exp.Expr, stem: str, context: Context) -> exp.Expr:
    """Return the OID that is the value of a node, or the name of its object where the node's context shows it."""
    return value if _wants_oid(node, context) else call(f"{stem}_out", value, *_path_of(stem, context))


def shown_name(node: exp.Expr, name: str, value: exp.Expr, context: Context) -> exp.Expr:
    """Return the value of a function of the system; of those that find an object, such as to_regclass, its name."""
    stem = name.removeprefix("to_")
    return _shown(node, value, REG_TYPES[stem], context) if stem != name and stem in REG_TYPES else value


def _wants_oid(node: exp.Expr, context: Context) -> bool:
    """Return whether the context of a reg* value compares it or takes an OID; elsewhere it is shown as a name."""
    parent = node.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    if isinstance(parent, exp.Cast):
        return type_name(parent.to) in OID_TYPES
    if isinstance(parent, exp.Anonymous):
        return context.is_function(parent.name.lower()) and not parent.name.lower().startswith("quote_")
    return isinstance(parent, exp.Predicate | exp.Tuple | exp.Any)


_GIVE_TEXT = _GIVE_NAMES | {"pg_get_serial_sequence", "pg_typeof", "format_type"}


def is_text(value: exp.Expr) -> bool:
    """Return whether a rewritten value is text, as far as its form tells."""
    if isinstance(value, exp.Cast):
        return value.to.is_type(*exp.DataType.TEXT_TYPES)
    if isinstance(value, exp.Dot):  # memory.pgf.function(…)
        value = value.expression
    if isinstance(value, exp.Anonymous):
        return value.name.lower().startswith("quote_") or value.name.lower() in _GIVE_TEXT
    if isinstance(value, exp.Column):  # relname, tablename and the like
        return value.name.lower().endswith("name")
    return value.is_string or isinstance(value, exp.DPipe | exp.Concat | exp.Placeholder | exp.Parameter)


def _is_regproc(value: exp.Expr) -> bool:
    return isinstance(value, exp.Column) and value.name.lower() in REGPROC_COLUMNS


# An array's text without escapes, blanks and nested arrays.
_PLAIN_ITEM = r'(?:"[^"\\]*"|[^{}",\\\s]+)'
_PLAIN_ARRAY = re.compile(rf"\{{(?:{_PLAIN_ITEM}(?:,{_PLAIN_ITEM})*)?\}}")
_ITEM = re.compile(r'"([^"]*)"|([^,"]+)')


def array_items(value: exp.Expr) -> list[str | None] | None:
    """Return the items of a literal such as '{a,"b c",NULL}'; None for anything else, also for nested arrays."""
    items = nested_items(value)
    return None if items is None or any(isinstance(item, list) for item in items) else items


def nested_items(value: exp.Expr) -> list[Any] | None:
    """Return the items of an array's literal, with lists for nested arrays; None for anything else."""
    text = value.unnest()
    if not text.is_string or text.name.lstrip(BLANKS)[:1] not in ("{", "["):
        return None
    if _PLAIN_ARRAY.fullmatch(text.name):
        found = (match.groups() for match in _ITEM.finditer(text.name, 1, len(text.name) - 1))
        return [None if quoted is None and bare.upper() == "NULL" else quoted or bare or "" for quoted, bare in found]
    try:
        return array_texts(text.name)
    except Error as error:
        if error.sqlstate == errors.PROGRAM_LIMIT_EXCEEDED:
            raise
        return None


def rewrite_comparison(node: exp.Binary, context: Context) -> exp.Expr | None:
    """Return a comparison with ANY, ALL, an array, or a name of a type or function in DuckDB's form; else None."""
    left, right = node.this, node.expression
    if isinstance(right, exp.Any):
        return _any(node, context)
    if isinstance(right, exp.All):
        return _all(node)
    for side, other in ((left, right), (right, left)):
        if isinstance(side, exp.Anonymous) and side.name.lower() == "pg_typeof" and not is_text(other):
            side.replace(call("regtype_in", side.copy()))
            return node
        if _is_regproc(side) and not other.is_string and not is_text(other):
            side.replace(call("regproc_in", side.copy(), strings([])))
            return node
        items = array_items(side)
        if items is not None and isinstance(other, exp.Column) and other.name.lower() in ARRAY_COLUMNS:
            side.replace(array_of(items))
            return node
    return None


def _any(node: exp.Binary, context: Context) -> exp.Expr | None:
    """Rewrite `x = ANY(..)`: a list for a literal; for a catalog's array, a function that a join condition can have."""
    if not isinstance(node, exp.EQ):
        return None
    array = node.expression.this.unnest()
    items = _items(array)
    if items is not None:
        return exp.In(this=node.this, expressions=items) if items else exp.false()
    # In a join's condition, where NULL counts as false, DuckDB can hash this form.
    is_list = isinstance(array, exp.Column | exp.Dot | exp.Array)
    is_list = is_list and isinstance(node.find_ancestor(exp.Join, exp.Query), exp.Join)
    return exp.Anonymous(this="list_contains", expressions=[array, node.this]) if is_list else None


def _all(node: exp.Binary) -> exp.Expr | None:
    items = _items(node.expression.this.unnest())
    if items is None or not isinstance(node, exp.NEQ):
        return None
    return exp.Not(this=exp.In(this=node.this, expressions=items)) if items else exp.true()


def _items(array: exp.Expr) -> list[exp.Expr] | None:
    """Return the items of an array literal, in text or, after its cast is rewritten, in a list."""
    texts = array_items(array)
    if texts is not None:
        constants = ["NULL" if text is None else literal(text) for text in texts]
        return runs(constants) if len(constants) > LONG else [_text_or_null(text) for text in texts]
    if isinstance(array, exp.Cast) and isinstance(array.this, exp.Array):
        return list(_flat(array.this))
    return None


def _flat(array: exp.Array) -> Iterator[exp.Expr]:
    """Yield the elements of an array, those of inner arrays too."""
    for item in array.expressions:
        yield from _flat(item) if isinstance(item, exp.Array) else (item,)


def depth(items: object) -> int:
    """Return the number of dimensions of `nested_items`, by its first items."""
    return 1 + depth(items[0]) if isinstance(items, list) and items else int(isinstance(items, list))


def array_of(items: list[Any]) -> exp.Expr:
    """Return an array of `nested_items`."""
    return exp.Array(expressions=[array_of(i) if isinstance(i, list) else _text_or_null(i) for i in items])


def _text_or_null(text: str | None) -> exp.Expr:
    return exp.null() if text is None else exp.Literal.string(text)


def escaped(node: exp.Expr) -> exp.Expr:
    """Return LIKE with PostgreSQL's default escape character, which DuckDB lacks."""
    pattern = node.expression
    has_none = pattern.is_string and "\\" not in pattern.name
    if has_none or isinstance(node.parent, exp.Escape) or isinstance(pattern, exp.Any | exp.All):
        return node
    return exp.Escape(this=node, expression=exp.Literal.string("\\"))


def rewrite_like(node: exp.Expr, context: Context) -> exp.Expr | None:
    new = escaped(node)
    return None if new is node else new


def rewrite_operator(node: exp.Operator, context: Context) -> exp.Expr | None:
    """Return `a OPERATOR(pg_catalog.~) b` as `a ~ b`; None for an operator that is not known."""
    build = _OPERATORS.get(str(node.args["operator"]).rpartition(".")[2].strip())
    return build(node.this, node.expression) if build else None
