"""Casts, operators, aggregates and lists are among those that PostgreSQL declares for the types of their operands.

DuckDB has more, and casts operands: a text to a number that it is compared with, or a date to an integer. Only stored
definitions, which are not checked, may still rely on that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import BIGINT, BOOLEAN, INTEGER, NUMERIC, TIMESTAMP, VARCHAR, Type
from sparkwave.planner.batch.typer import Typer, type_of_value
from sparkwave.planner.functions.declared import (
    OF_DOCUMENTS,
    OPERATORS_OF_DOCUMENTS,
    are_alike,
    has_cast,
    has_operator,
    has_part,
    has_sign,
    have_common,
    takes_argument,
    takes_documents,
)
from sparkwave.planner.functions.operators import as_call
from sparkwave.planner.functions.result_types import Known, common
from sparkwave.planner.functions.scalar_functions import FUNCTIONS
from sparkwave.planner.functions.undefined import called
from sparkwave.planner.parse.calls import CAST_POSITION
from sparkwave.planner.parse.constant_runs import ConstantRun
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.operator_places import SPELLINGS, TEXT, operator_position
from sparkwave.planner.parse.parameter_runs import ParameterRun
from sparkwave.planner.parse.set_returning import BEFORE
from sparkwave.planner.parse.trees import column_type, position_of
from sparkwave.planner.parse.type_text import user_type_name

# The types that a column may have, by its name: those of all columns with the name.
TypesOf = Mapping[str, set[Type]]
_Types = frozenset[Type] | set[Type]

# Operators that nothing is said about here.
_OTHERS = (exp.Collate, exp.SimilarTo)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_AGGREGATES = (
    exp.Avg, exp.Sum, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop, exp.LogicalAnd,
    exp.LogicalOr, exp.BitwiseAndAgg, exp.BitwiseOrAgg, exp.BitwiseXorAgg, exp.Ntile, exp.Corr, exp.CovarPop,
    exp.CovarSamp, exp.RegrAvgx, exp.RegrAvgy, exp.RegrCount, exp.RegrIntercept, exp.RegrR2, exp.RegrSlope,
    exp.RegrSxx, exp.RegrSxy, exp.RegrSyy,
)  # fmt: skip
_OFFSETS = (exp.Lag, exp.Lead, exp.NthValue)
_LISTS: dict[type[exp.Expr], str] = {
    exp.Array: "ARRAY", exp.Coalesce: "COALESCE", exp.Greatest: "GREATEST", exp.Least: "LEAST", exp.Case: "CASE",
}  # fmt: skip
# Functions of the elements of an array of one dimension, with PostgreSQL's errors for any other.
_NO_SEARCH = "searching for elements in multidimensional arrays is not supported", errors.FEATURE_NOT_SUPPORTED
_NO_END = "argument must be empty or one-dimensional array", errors.DATA_EXCEPTION
_OF_ELEMENTS = {
    "array_position": _NO_SEARCH,
    "array_positions": _NO_SEARCH,
    "array_remove": ("removing elements from multidimensional arrays is not supported", errors.FEATURE_NOT_SUPPORTED),
    "array_replace": ("array_replace of arrays of arrays is not supported", errors.FEATURE_NOT_SUPPORTED),
    "array_append": _NO_END,
    "array_prepend": _NO_END,
}
_OPERATORS = tuple(kind for kind in (*SPELLINGS, exp.Nullif) if kind not in _OTHERS)
_KINDS = (
    exp.Cast, *_OPERATORS, *_AGGREGATES, *_OFFSETS, *_LISTS, exp.Anonymous, exp.WithinGroup, exp.GroupConcat,
    exp.Extract,
)  # fmt: skip


@dataclass(frozen=True)
class _Use:
    """What takes operands of some types alone; `fits` says of which, `refused` gives the error by the types' names.

    One operand alone `decides` where nothing has to be known of the others.
    """

    operands: tuple[exp.Expr, ...]
    fits: Callable[..., bool]
    refused: Callable[[Sequence[Known], Sequence[str]], Error | None]
    decides: bool = False


def check_declared(tree: exp.Expr, types_of: TypesOf, typed: Typer) -> None:
    """Raise Error 42846 for a cast, 42883 for an operator or aggregate, that PostgreSQL does not have for its operands.

    Raises Error 42804 for a list of values of types without a common one, too. Types are worked out only where those of
    the columns with an operand's name leave a doubt.
    """
    text = tree.meta.get(TEXT)
    nodes: Iterator[exp.Expr] = tree.find_all(*_KINDS, bfs=False)
    uses = [use for node in nodes for use in _uses(node, text) if _is_doubtful(use, types_of)]
    if not uses:
        return
    found = map(_type_of, typed(tree, [operand for use in uses for operand in use.operands]))
    for use in uses:
        types = [next(found) for _ in use.operands]
        if not use.fits(*types):
            names = [shown(*pair, types_of) for pair in zip(use.operands, types, strict=True)]
            error = use.refused(types, names)
            if error is not None:
                raise error


def without_texts(tree: exp.Expr) -> exp.Expr:
    """Return a tree where texts in VALUES are NULL in columns that have other values, whose type they take."""
    columns = [column for values in tree.find_all(exp.Values) for column in _columns(values) if _is_mixed(column)]
    if not columns:
        return tree
    tree = tree.copy()
    for values in tree.find_all(exp.Values):
        for text in [text for column in _columns(values) if _is_mixed(column) for text in column if text.is_string]:
            text.replace(exp.null())
    return tree


def _columns(values: exp.Values) -> list[tuple[exp.Expr, ...]]:
    rows = [row.expressions for row in values.expressions if isinstance(row, exp.Tuple)]
    return list(zip(*rows, strict=False))


def _is_mixed(column: Sequence[exp.Expr]) -> bool:
    return 0 < sum(value.is_string for value in column) < len(column)


def shown(node: exp.Expr, type_: Known, types_of: TypesOf) -> str:
    """Return the name of an expression's type in errors. Texts are text but for columns of, and casts to, varchar."""
    if isinstance(node, exp.JSONPath):
        return INTEGER.shown if node.find(exp.JSONPathSubscript) is not None else "unknown"
    if type_ is None:
        named = user_type_name(node.to) if isinstance(node, exp.Cast) else None
        return "unknown" if named is None else str(named)
    if type_.without_digits != VARCHAR:
        return type_.without_digits.shown
    own = _possible(node, types_of) if isinstance(_inner(node), exp.Column | exp.Cast) else None
    return VARCHAR.shown if own and all(each.name == VARCHAR.name for each in own) else "text"


def unmatched(what: str, types: tuple[Known, Known], names: tuple[str, str], position: int | None) -> Error:
    """Return the error for two values of a list, or columns of a set operation, of types without a common one."""
    if are_alike(*types):
        message = f"{what} could not convert type {names[1]} to {names[0]}"
        return Error(message, errors.CANNOT_COERCE, position=position)
    message = f"{what} types {names[0]} and {names[1]} cannot be matched"
    return Error(message, errors.DATATYPE_MISMATCH, position=position)


def _uses(node: exp.Expr, text: str | None) -> Iterator[_Use]:
    match node:
        case exp.Cast():
            target = _target(node)
            if target is not None and CAST_POSITION in node.meta:
                yield _cast(node, target)
        case exp.Neg() | exp.BitwiseNot() | exp.Abs():
            yield _sign(node, text)
        case exp.Between():
            yield _operator(node, ">=", node.this, node.args["low"], text)
            yield _operator(node, "<=", node.this, node.args["high"], text)
        case exp.In():
            other = _listed(node)
            if other is not None:
                yield _operator(node, "=", node.this, other, text)
        case exp.Case():
            for branch in node.args["ifs"] if node.this is not None else ():
                yield _operator(branch, "=", node.this, branch.this, text)
            default = node.args.get("default")  # PostgreSQL takes it first
            results = [branch.args["true"] for branch in node.args["ifs"]]
            yield _list(node, [default, *results] if default is not None else results)
        case exp.Array():
            if not any(isinstance(part, exp.Query) for part in node.expressions) and not _is_cast(node):
                yield _list(node, node.expressions)
        case exp.Nullif():
            yield _operator(node, "=", node.this, node.expression, text)
        case _ if isinstance(node, tuple(_LISTS)):
            yield _list(node, list(node.iter_expressions()))
        case exp.WithinGroup():
            if isinstance(node.this, exp.PercentileCont) and len(node.expression.expressions) == 1:
                value = node.expression.expressions[0].this
                yield _call(node, [node.this.this, value], text, lambda name, types: takes_argument(name, types[-1]))
        case _ if isinstance(node, _OFFSETS):
            yield _call(node, list(node.iter_expressions()), text, _takes_offset)
        case exp.Extract() | exp.Anonymous() if (part := _part_of(node)) is not None:
            yield part
        case exp.GroupConcat():
            yield _call(node, list(node.iter_expressions()), text, _takes_texts)
        case exp.Anonymous() if (found := called(node)) is not None and found[0] in OF_DOCUMENTS:
            yield _call(node, found[1], text, takes_documents, found[0])
        case exp.Anonymous() if node.name.lower() in _OF_ELEMENTS:
            yield _of_elements(node)
        case exp.Anonymous() if node.name.lower() != "every":
            return
        case _ if isinstance(node, (*_AGGREGATES, exp.Anonymous)):
            yield _call(node, list(node.iter_expressions()), text, _takes_each)
        case exp.Binary():
            yield _operator(node, SPELLINGS[type(node)][0], node.this, node.expression, text)


def _is_cast(array: exp.Expr) -> bool:
    """Return whether an array is cast, maybe within other arrays: its elements are cast then, one by one."""
    around = array.parent
    while isinstance(around, exp.Array | exp.Paren):
        around = around.parent
    return isinstance(around, exp.Cast)


def _cast(node: exp.Cast, target: Type) -> _Use:
    def refused(types: Sequence[Known], names: Sequence[str]) -> Error:
        message = f"cannot cast type {names[0]} to {target.without_digits.shown}"
        return Error(message, errors.CANNOT_COERCE, position=node.meta[CAST_POSITION])

    return _Use((_inner(node.this),), lambda source: has_cast(source, target), refused)


def _sign(node: exp.Expr, text: str | None) -> _Use:
    name = SPELLINGS[type(node)][0]

    def refused(types: Sequence[Known], names: Sequence[str]) -> Error | None:
        message, position = f"operator does not exist: {name} {names[0]}", operator_position(node, text)
        if position is None and text is not None:
            return None  # abs(x)
        return Error(message, errors.UNDEFINED_FUNCTION, hint=errors.NO_SIGN, position=position)

    return _Use((_inner(node.this),), lambda operand: has_sign(name, operand), refused)


def _operator(node: exp.Expr, name: str, left: exp.Expr, right: exp.Expr, text: str | None) -> _Use:
    """Return the use of an operator; with ANY and ALL its right operand is each element of an array, or each row."""
    is_array = isinstance(right, exp.Any | exp.All) and not isinstance(right.this.unnest(), exp.Query)
    if isinstance(right, exp.Any | exp.All):
        right = right.this

    def fits(own: Known, other: Known) -> bool:
        if is_array and other is not None:
            return other.dimensions > 0 and has_operator(name, own, replace(other, dimensions=0))
        return has_operator(name, own, other)

    def refused(types: Sequence[Known], names: Sequence[str]) -> Error | None:
        position = _place(node, text)
        if position is None and text is not None:
            return None  # power(x, y)
        if is_array and types[1] is not None and not types[1].dimensions:
            message = "op ANY/ALL (array) requires array on right side"
            return Error(message, errors.WRONG_OBJECT_TYPE, position=position)
        other = names[1].replace("[]", "") if is_array else names[1]
        written, position = _negated(name, position, text)
        message = f"operator does not exist: {names[0]} {written} {other}"
        return Error(message, errors.UNDEFINED_FUNCTION, hint=errors.NO_OPERATOR, position=position)

    return _Use((_inner(left), _inner(right)), fits, refused, name in OPERATORS_OF_DOCUMENTS)


_NEGATED = {"~": "!~", "~*": "!~*", "~~": "!~~", "~~*": "!~~*", ">=": "<", "<=": ">"}


def _negated(name: str, position: int | None, text: str | None) -> tuple[str, int | None]:
    """Return an operator and its position, with another name where it is written with NOT or `!`."""
    if position is None or text is None or name not in _NEGATED:
        return name, position
    if text[position - 1 :].upper().startswith("NOT"):
        return _NEGATED[name], position
    return (_NEGATED[name], position - 1) if text[position - 2] == "!" else (name, position)


def _place(node: exp.Expr, text: str | None) -> int | None:
    """Return the position of an operator: that of NULLIF, which is a call, and of WHEN for a comparison of CASE."""
    if isinstance(node, exp.Nullif):
        return position_of(node)
    if not isinstance(node, exp.If):
        return operator_position(node, text)
    start = position_of(node.this)
    return text.upper().rfind("WHEN", 0, start) + 1 if text is not None and start is not None else None


def _list(node: exp.Expr, values: Sequence[exp.Expr]) -> _Use:
    """Return the use of values that have to have a common type."""

    def odd(types: Sequence[Known]) -> tuple[Known, int] | None:
        """Return the first value of another type, and the type of those before it."""
        before: Known = None
        for place, type_ in enumerate(types):
            if not have_common(before, type_):
                return before, place
            before = common((before, type_))
        return None

    def refused(types: Sequence[Known], names: Sequence[str]) -> Error | None:
        found = odd(types)
        if found is None:
            return None
        before, place = found
        first = names[list(types).index(before)] if before in types else shown(node, before, {})
        pair = (before, types[place])
        return unmatched(_LISTS[type(node)], pair, (first, names[place]), position_of(values[place]))

    return _Use(tuple(map(_inner, values)), lambda *types: odd(types) is None, refused)


def _call(
    node: exp.Expr,
    arguments: Sequence[exp.Expr],
    text: str | None,
    takes: Callable[[str, Sequence[Known]], bool],
    name: str | None = None,
) -> _Use:
    name = name or _written(node, text)

    def refused(types: Sequence[Known], names: Sequence[str]) -> Error:
        shown_types = ", ".join([*filter(None, [node.meta.get(BEFORE)]), *names])
        message = f"function {name}({shown_types}) does not exist"
        return Error(message, errors.UNDEFINED_FUNCTION, hint=errors.NO_FUNCTION, position=position_of(node))

    return _Use(tuple(map(_argument, arguments)), lambda *types: takes(name, types), refused, name in OF_DOCUMENTS)


def _of_elements(node: exp.Anonymous) -> _Use:
    def fits(*types: Known) -> bool:
        depths = [0 if type_ is None else type_.dimensions for type_ in types[:2]] or [0]
        return max(depths) < 2 or min(depths) > 0  # elements that are arrays, as in RisingWave

    told, sqlstate = _OF_ELEMENTS[node.name.lower()]
    arguments = tuple(map(_argument, node.expressions))
    return _Use(arguments, fits, lambda types, names: Error(told, sqlstate), decides=True)


def _takes_each(name: str, types: Sequence[Known]) -> bool:
    return all(takes_argument(name, type_) for type_ in types)


def _takes_texts(name: str, types: Sequence[Known]) -> bool:
    return _takes_each("string_agg", types) and have_common(types[0], types[-1])


def _takes_offset(name: str, types: Sequence[Known]) -> bool:
    return takes_argument("ntile", types[1] if len(types) > 1 else None) and have_common(
        types[0], (*types, None, None)[2]
    )


def _part_of(node: exp.Expr) -> _Use | None:
    """Return the use of a value whose part is taken, by a constant unit; None for other calls."""
    found = as_call(node)
    if found is None or found[0] not in ("extract", "date_part") or len(found[1]) != 2 or not found[1][0].is_string:
        return None
    name, (unit, value) = found

    def refused(types: Sequence[Known], names: Sequence[str]) -> Error:
        own = TIMESTAMP.name if name == "date_part" else names[0]
        return Error(f'unit "{unit.name}" not supported for type {own}', errors.FEATURE_NOT_SUPPORTED)

    return _Use((_inner(value),), lambda type_: has_part(name, unit.name.lower(), type_), refused)


def _listed(node: exp.In) -> exp.Expr | None:
    """Return what stands for the values behind IN: the first, or the query."""
    query = node.args.get("query")
    if query is not None:
        select = query.unnest()
        return select.selects[0].unalias() if isinstance(select, exp.Select) and len(select.selects) == 1 else None
    return node.expressions[0] if node.expressions and not isinstance(node.expressions[0], ConstantRun) else None


def _target(cast: exp.Cast) -> Type | None:
    try:
        return column_type(cast.to) if isinstance(cast.to, exp.DataType) else None
    except Error:
        return None


def _inner(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _argument(node: exp.Expr) -> exp.Expr:
    """Return an argument without its DISTINCT and ORDER BY."""
    while isinstance(node, exp.Order | exp.Distinct):
        node = node.this if isinstance(node, exp.Order) else node.expressions[0]
    return _inner(node)


def _written(node: exp.Expr, text: str | None) -> str:
    """Return the name of a function as it is written."""
    while isinstance(node, exp.WithinGroup):
        node = node.this
    if text is None or "start" not in node.meta:
        return node.name.lower()
    return text[node.meta["start"] : node.meta["end"] + 1].lower()


def _type_of(node: exp.Expr | None) -> Known:
    """Return the type of an operand in a typed tree, None for an untyped constant, and an array of parameters."""
    if node is None or isinstance(node, exp.Null) or (isinstance(node, exp.Literal) and node.is_string):
        return None
    if isinstance(node, exp.Array) and node.find(exp.Parameter, exp.Placeholder, ParameterRun) is not None:
        return None
    return type_of_value(node)


def _is_doubtful(use: _Use, types_of: TypesOf) -> bool:
    """Return whether something may be refused, by what is known of its operands without their tree."""
    possible = [_possible(operand, types_of) for operand in use.operands]
    if None in possible:
        return sum(types is None or bool(types) for types in possible) > (len(possible) > 1 and not use.decides)
    return any(
        not use.fits(*types) for types in product(*(types or (None,) for types in possible if types is not None))
    )


def _possible(node: exp.Expr, types_of: TypesOf) -> _Types | None:
    """Return the types that an expression may have, none for an untyped constant; None where nothing is known."""
    node = _inner(node)
    match node:
        case exp.Column():
            return types_of.get(folded(node.this)) if isinstance(node.this, exp.Identifier) else None
        case exp.Literal():
            return frozenset() if node.is_string else {INTEGER if node.name.isdigit() else NUMERIC}
        case exp.Null() | exp.Parameter() | exp.Placeholder() | exp.JSONPath():
            return frozenset()
        case exp.Boolean():
            return {BOOLEAN}
        case exp.Count():
            return {BIGINT}
        case exp.Cast():
            target = _target(node)
            return {target} if target is not None else frozenset()
        case exp.Neg():
            return _possible(node.this, types_of)
        case exp.Binary() if isinstance(node, _ARITHMETIC):
            sides = [_possible(side, types_of) for side in (node.this, node.expression)]
            known = [side for side in sides if side]
            is_number = known and None not in sides and all(type_.is_numeric for side in known for type_ in side)
            return frozenset().union(*known) if is_number else None
    call = as_call(node)
    rule = FUNCTIONS[call[0]].result if call is not None else None
    return {rule} if isinstance(rule, Type) else None


def shown_operand(type_: Type | None) -> str:
    """Return a type as PostgreSQL's messages of operators name it; None for an unknown one."""
    return str(type_.without_digits) if type_ is not None else "unknown"


def no_operator(name: str | None, types: Sequence[Type | None]) -> str:
    """Return PostgreSQL's message for an operator that there is not for one or two operands; None: unknown."""
    shown = [shown_operand(type_) for type_ in types]
    what = f" {name} ".join(shown) if len(shown) > 1 else f"{name} {shown[0]}"
    return f"operator does not exist: {what}"
