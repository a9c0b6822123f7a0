"""Comparisons of row values, which compare their fields from left to right (PostgreSQL documentation 9.24.5).

The result is NULL where a field that decides is NULL. DuckDB compares rows as structs, in which NULL is a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.operator_places import TEXT, operator_position
from sparkwave.planner.parse.row_values import is_row, row

Pair = tuple[exp.Expr, exp.Expr]

# The most rows of IN that are compared field by field. Longer lists, and lists of parameters, are looked up as structs.
MOST_ROWS = 32
# The comparison that decides at the first fields that differ.
_STRICT: dict[type[exp.Expr], type[exp.Expr]] = {exp.LT: exp.LT, exp.LTE: exp.LT, exp.GT: exp.GT, exp.GTE: exp.GT}


_PATTERNS = (exp.Like, exp.ILike, exp.RegexpLike, exp.RegexpILike, exp.SimilarTo)
_KINDS: tuple[type[exp.Expr], ...] = (exp.EQ, exp.NEQ, *_STRICT, exp.In, exp.Between, exp.Is, *_PATTERNS)


def with_row_comparisons(tree: exp.Expr) -> exp.Expr:
    """Return the tree, changed in place, with comparisons of fields for those of two row constructors.

    Raises Error 42601 for rows with unequal numbers of fields.
    """
    for node in reversed(list(tree.find_all(*_KINDS))):
        made = _of_patterns(node) if isinstance(node, _PATTERNS) else _compared(node)
        if made is not None:
            node.replace(exp.paren(made, copy=False))
    return tree


def _compared(node: exp.Expr) -> exp.Expr | None:
    left = node.this.unnest()
    if isinstance(node, exp.In):
        check_width(left, node.args.get("query"))
    if not is_row(left):
        return None
    if isinstance(node, exp.Is):
        is_null = isinstance(node.expression, exp.Null)
        return all_null(left.expressions, bool(node.args.get("negate"))) if is_null else None
    if isinstance(node, exp.In):
        rows = [row.unnest() for row in node.expressions]
        if not 0 < len(rows) <= MOST_ROWS or not all(map(is_row, rows)) or node.find(exp.Parameter) is not None:
            return None
        return exp.or_(*(_equal(left, row) for row in rows), copy=False)
    if isinstance(node, exp.Between):
        low, high = node.args["low"].unnest(), node.args["high"].unnest()
        if node.args.get("symmetric") or not (is_row(low) and is_row(high)):
            return None
        return exp.and_(_ordered(exp.GTE, _pairs(left, low)), _ordered(exp.LTE, _pairs(left, high)), copy=False)
    right = node.expression.unnest()
    if isinstance(right, exp.Any | exp.All):
        return _quantified(node, left, right)
    right = _row_of(right, left) or right
    if not is_row(right):
        return None
    if isinstance(node, exp.EQ):
        return _equal(left, right)
    if isinstance(node, exp.NEQ):
        return exp.or_(*(_comparison(exp.NEQ, pair) for pair in _pairs(left, right)), copy=False)
    return _ordered(type(node), _pairs(left, right))


def all_null(fields: Iterable[exp.Expr], negate: bool) -> exp.Expr:
    """Return that all fields of a row are NULL, or with `negate` that none is, which is not the contrary."""
    tests = (exp.Is(this=exp.paren(field.copy(), copy=False), expression=exp.null()) for field in fields)
    return exp.and_(*(exp.not_(test, copy=False) if negate else test for test in tests), copy=False)


def check_width(left: exp.Expr, query: exp.Expr | None) -> None:
    """Raise Error 42601 for a subquery of IN, ANY or ALL whose columns are not as many as the values on the left."""
    outputs = _outputs(query)
    if outputs is not None:
        check_columns(len(left.expressions) if isinstance(left, exp.Tuple) or is_row(left) else 1, len(outputs))


def check_columns(values: int, outputs: int) -> None:
    """Raise Error 42601 if a subquery has another number of outputs than the values that are compared with them."""
    if values != outputs:
        raise Error(f"subquery has too {'many' if outputs > values else 'few'} columns", errors.SYNTAX_ERROR)


def _outputs(query: exp.Expr | None) -> list[exp.Expr] | None:
    """Return the outputs of a SELECT, None where it is none or they cannot be counted."""
    select = query.unnest() if isinstance(query, exp.Paren | exp.Subquery) else query
    if not isinstance(select, exp.Select) or any(item.is_star for item in select.expressions):
        return None
    return select.expressions


def _quantified(node: exp.Expr, left: exp.Expr, right: exp.Any | exp.All) -> exp.Expr | None:
    """Return `row = ANY (query)` and `row <> ALL (query)` as IN and NOT IN."""
    query = right.this.unnest() if isinstance(right.this, exp.Paren | exp.Subquery) else right.this
    if not isinstance(query, exp.Query):
        return None
    check_width(left, query)
    is_in = isinstance(node, exp.EQ) and isinstance(right, exp.Any)
    if not is_in and not (isinstance(node, exp.NEQ) and isinstance(right, exp.All)):
        message = "rows are compared with a subquery by IN, = ANY and <> ALL alone"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED)
    found = exp.In(this=exp.Tuple(expressions=left.expressions), query=exp.Subquery(this=query))
    return found if is_in else exp.not_(found, copy=False)


# What a row of a subquery must not have to be told as one subquery for each of its fields.
_NOT_APART = ("limit", "offset", "with_", "windows", "qualify")


def _row_of(query: exp.Expr, left: exp.Expr) -> exp.Expr | None:
    """Return `(SELECT a, b …)` as a row of subqueries with one output each; None for what is no such query.

    Where the query has several rows, one of them has several, too, and raises PostgreSQL's error.
    """
    select, outputs = query.unnest(), _outputs(query)
    if outputs is None or not isinstance(select, exp.Select):
        return None
    if len(outputs) == 1 or any(map(select.args.get, _NOT_APART)):
        return None
    check_width(left, query)
    group = select.args.get("group")
    if group is not None and any(isinstance(by, exp.Literal) for by in group.expressions):
        return None
    fields: list[exp.Expr] = []
    for output in outputs:
        field = select.copy()
        field.set("expressions", [output.copy()])
        field.set("order", None)
        fields.append(exp.Subquery(this=field))
    return row(fields)


def _of_patterns(node: exp.Expr) -> exp.Expr | None:
    """Return `x LIKE ANY (query)` over the array of the query's values."""
    patterns = node.expression
    if not isinstance(patterns, exp.Any | exp.All):
        return None
    query = patterns.this.unnest() if isinstance(patterns.this, exp.Paren | exp.Subquery) else patterns.this
    if not isinstance(query, exp.Query):
        return None
    check_width(node.this, query)
    made = node.copy()
    made.expression.set("this", exp.paren(exp.Array(expressions=[query.copy()]), copy=False))
    return made


def _pairs(left: exp.Expr, right: exp.Expr) -> list[Pair]:
    if len(left.expressions) != len(right.expressions):
        place = operator_position(left.parent, left.root().meta.get(TEXT)) if left.parent is not None else None
        raise Error("unequal number of entries in row expressions", errors.SYNTAX_ERROR, position=place)
    return list(zip(left.expressions, right.expressions, strict=True))


def _equal(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.and_(*(_comparison(exp.EQ, pair) for pair in _pairs(left, right)), copy=False)


def _ordered(kind: type[exp.Expr], pairs: Sequence[Pair]) -> exp.Expr:
    """Return that the first fields that differ are in order, or that none differ if `kind` allows this."""
    (first, *rest) = pairs
    if not rest:
        return _comparison(kind, first)
    later = exp.and_(_comparison(exp.EQ, first), _ordered(kind, rest), copy=False)
    return exp.or_(_comparison(_STRICT[kind], first), later, copy=False)


def _comparison(kind: type[exp.Expr], pair: Pair) -> exp.Expr:
    left, right = pair
    return kind(this=exp.paren(left.copy(), copy=False), expression=exp.paren(right.copy(), copy=False))
