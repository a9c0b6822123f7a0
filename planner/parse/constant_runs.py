"""Long lists of constants, `a IN (1, 2, …)`: one node has all constants of a kind, so that no pass has to visit each.

A client's query keeps them so. The planner of views needs each constant, and asks for `expanded` lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokens import Token, TokenType

from sparkwave.catalog.names import literal
from sparkwave.catalog.types import FLOAT_DIGITS

LONG = 100  # shorter lists stay as they are
_CONSTANT = re.compile(r"'(?:[^']|'')*+'|[^,\s]++")
_INTEGER = re.compile(r"\d{1,18}")
_MANY_DIGITS = re.compile(rf"[\d.]{{{FLOAT_DIGITS + 1},}}")
_DECIMAL = re.compile(r"\d{1,18}\.\d{1,18}")


class ConstantRun(exp.Literal):
    """A node for several constants of one kind: `this` is their SQL, with commas between."""

    arg_types = exp.Literal.arg_types

    @property
    def first(self) -> exp.Literal:
        """A constant with the type of all."""
        found = _CONSTANT.match(self.name)
        assert found is not None
        return _literal(found[0].removeprefix("-"))

    def in_texts(self) -> ConstantRun:
        """Return the constants as texts if one may be a number of many digits; else the node itself."""
        if self.is_string or not _MANY_DIGITS.search(self.name):
            return self
        return ConstantRun(this=_CONSTANT.sub(r"'\g<0>'", self.name), is_string=True)


class ConstantRows(ConstantRun):
    """A node for the same as rows of a query in place of the list, maybe with a NULL."""


def as_rows(run: ConstantRun, has_null: bool) -> ConstantRows:
    """Return constants as the rows of a query."""
    return ConstantRows(this=f"{run.name}, NULL" if has_null else run.name, is_string=run.is_string)


for _dialect in ("", "postgres", "duckdb"):
    _transforms = Dialect.get_or_raise(_dialect).generator_class.TRANSFORMS
    _transforms[ConstantRun] = lambda self, node: node.this
    _transforms[ConstantRows] = lambda self, node: f"SELECT unnest([{node.this}])"


def runs(constants: Iterable[str]) -> list[exp.Expr]:
    """Return the items of a list of these constants; each constant is its SQL."""
    kinds: dict[str, list[str]] = {}
    for constant in constants:
        kinds.setdefault(_kind(constant), []).append(constant)
    is_null = bool(kinds.pop("null", None))
    items: list[exp.Expr] = [
        ConstantRun(this=", ".join(listed), is_string=kind == "text") for kind, listed in kinds.items()
    ]
    return [*items, exp.null()] if is_null else items


def _kind(constant: str) -> str:
    if constant[0] == "'":
        return "text"
    if constant == "NULL":
        return "null"
    if "." in constant:
        return "numeric"
    return "integer" if abs(int(constant)) < 2**31 else "bigint"


def constants_at(tokens: Sequence[Token], start: int) -> tuple[list[str], int] | None:
    """Return the constants in the parentheses at a token, and the place after them; None unless the list is long."""
    place, size, found = start, len(tokens), list[str]()
    expected = TokenType.L_PAREN
    while place + 2 < size and tokens[place].token_type == expected:
        expected = TokenType.COMMA
        place += 1
        is_negative = tokens[place].token_type == TokenType.DASH
        place += is_negative
        constant = _constant(tokens[place], is_negative)
        if constant is None:
            return None
        found.append(constant)
        place += 1
    is_closed = place < size and tokens[place].token_type == TokenType.R_PAREN
    return (found, place + 1) if is_closed and len(found) > LONG else None


def _constant(token: Token, is_negative: bool) -> str | None:
    kind, text = token.token_type, token.text
    if kind == TokenType.NUMBER and (_INTEGER.fullmatch(text) or _DECIMAL.fullmatch(text)):
        return f"-{text}" if is_negative else text
    if is_negative:
        return None
    if kind == TokenType.STRING:
        return literal(text)
    return "NULL" if kind == TokenType.NULL else None


def expanded(tree: exp.Expr) -> exp.Expr:
    """Return the tree, changed in place, with a node for every constant of long lists."""
    for list_ in tree.find_all(exp.In):
        if any(isinstance(item, ConstantRun) for item in list_.expressions):
            list_.set("expressions", [node for item in list_.expressions for node in _nodes(item)])
    return tree


def _nodes(item: exp.Expr) -> list[exp.Expr]:
    if not isinstance(item, ConstantRun):
        return [item]
    constants: list[str] = _CONSTANT.findall(item.name)
    return [exp.Neg(this=_literal(text[1:])) if text[0] == "-" else _literal(text) for text in constants]


def _literal(constant: str) -> exp.Literal:
    is_text = constant[0] == "'"
    return exp.Literal(this=constant[1:-1].replace("''", "'") if is_text else constant, is_string=is_text)
