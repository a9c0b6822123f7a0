"""PostgreSQL's jsonpath over the texts of documents, for DuckDB.

`sparkwave_document_path` returns the found values as the text of an array, or, behind a `!`, the SQLSTATE and message
of an error. Supported are `$`, `@`, variables, `.key`, `.*`, `.**`, `[n]`, `[n to m]`, `[*]`, `last`, arithmetic,
filters with comparisons, `&&`, `||`, `!`, `exists`, `is unknown`, `starts with`, `like_regex` with RE2's expressions,
and the methods size, type, double, abs, ceiling and floor, in lax and strict mode (PostgreSQL:
src/backend/utils/adt/jsonpath_exec.c). This module is sent to Spark's executors (`executor.spark.kernel`), so it
imports nothing of this package.
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Iterator
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

NAME = "sparkwave_document_path"
_TOKEN = re.compile(
    r"""\s*(?:(?P<string>"(?:[^"\\]|\\.)*")|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+)|(?P<variable>\$[A-Za-z_]\w*)
    |(?P<word>[A-Za-z_]\w*)|(?P<sign>&&|\|\||==|!=|<>|<=|>=|[$@.*?()\[\]{},!<>+/%-]))""",
    re.VERBOSE,
)
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge,
}  # fmt: skip
_METHODS = ("size", "type", "double", "abs", "ceiling", "floor")
Node = tuple[Any, ...]


class PathError(Exception):
    """An error with its SQLSTATE."""

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


def define_paths(database: Any) -> None:
    """Define the function in a DuckDB database: of a document, a path, variables, and whether errors are silent."""
    parameters = ["VARCHAR", "VARCHAR", "VARCHAR", "BOOLEAN"]
    # DuckDB would look up the types of a function's parameters, which executors lack; those of a lambda have none.
    function = lambda documents, paths, variables, silent: _found(documents, paths, variables, silent)  # noqa: E731
    database.create_function(NAME, function, parameters, "VARCHAR", type="arrow")


def _found(documents: pa.Array, paths: pa.Array, variables: pa.Array, silent: pa.Array) -> pa.Array:
    rows = zip(*(column.to_pylist() for column in (documents, paths, variables, silent)), strict=True)
    return pa.array([_answer(*row) for row in rows], pa.string())


def _answer(document: str, path: str, variables: str, silent: bool) -> str:
    try:
        is_strict, node = parsed(path)
        values = json.loads(variables, parse_float=Decimal)
        run = _Run(_decoded(document), values, is_strict)
        try:
            return _text(list(run.values(node, None)))
        except PathError:
            if silent:
                return "[]"
            raise
    except PathError as error:
        return f"!{error.sqlstate} {error}"
    except RecursionError:
        return "!54001 stack depth limit exceeded"
    except ValueError:  # a text with a wrong escape, or a number of thousands of digits
        return "!42601 syntax error in jsonpath input"


def _decoded(text: str) -> Any:
    return json.loads(text, parse_float=Decimal)


def _text(value: Any) -> str:
    """Return a value as json without spaces."""
    if isinstance(value, list):
        return f"[{','.join(map(_text, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{json.dumps(key, ensure_ascii=False)}:{_text(each)}' for key, each in value.items())}}}"
    return f"{value:f}" if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)


# Parsing.


# Trees of paths. A decorated function could not be sent to executors.
_PARSED: dict[str, tuple[bool, Node]] = {}
_MOST_PARSED = 1000
_LONGEST = 10_000  # characters, since the time to parse a path grows with the square of its length


def parsed(path: str) -> tuple[bool, Node]:
    """Return whether a path is strict, and its tree. Raises PathError 42601."""
    found = _PARSED.get(path)
    if found is None:
        if len(_PARSED) >= _MOST_PARSED:
            _PARSED.clear()
        found = _PARSED[path] = _parse(path)
    return found


def _parse(path: str) -> tuple[bool, Node]:
    if len(path) > _LONGEST:
        raise PathError("54000", f"a jsonpath of more than {_LONGEST:,} characters is not supported")
    tokens: list[tuple[str, str]] = []
    position = 0
    while path[position:].strip():
        match = _TOKEN.match(path, position)
        if match is None:
            raise _syntax(path[position:].strip()[:1])
        kind = match.lastgroup or ""
        tokens.append((kind, match[kind]))
        position = match.end()
    is_strict = tokens[:1] == [("word", "strict")]
    parser = _Parser(tokens[1:] if is_strict or tokens[:1] == [("word", "lax")] else tokens)
    node = parser.disjunction()
    if parser.tokens:
        raise _syntax(parser.tokens[0][1])
    return is_strict, node


def _syntax(near: str | None) -> PathError:
    place = "at end" if near is None else f'at or near "{near}"'
    return PathError("42601", f"syntax error {place} of jsonpath input")


class _Parser:
    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self.tokens = tokens

    def peek(self) -> str | None:
        return self.tokens[0][1] if self.tokens and self.tokens[0][0] != "string" else None

    def accept(self, *texts: str) -> bool:
        listed = [text if kind != "string" else None for kind, text in self.tokens[: len(texts)]]
        if listed == list(texts):
            del self.tokens[: len(texts)]
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise _syntax(self.tokens[0][1] if self.tokens else None)

    def take(self) -> tuple[str, str]:
        if not self.tokens:
            raise _syntax(None)
        return self.tokens.pop(0)

    def disjunction(self) -> Node:
        node = self.conjunction()
        while self.accept("||"):
            node = ("or", node, self.conjunction())
        return node

    def conjunction(self) -> Node:
        node = self.negation()
        while self.accept("&&"):
            node = ("and", node, self.negation())
        return node

    def negation(self) -> Node:
        if self.accept("!"):
            return ("not", self.negation())
        node = self.sum()
        sign = self.peek()
        if sign in _COMPARISONS:
            self.take()
            node = ("compare", sign, node, self.sum())
        elif self.accept("starts", "with"):
            node = ("starts", node, self.operand())
        elif self.accept("like_regex"):
            node = ("like", node, self.pattern())
        if self.accept("is", "unknown"):
            node = ("unknown", node)
        return node

    def sum(self) -> Node:
        node = self.product()
        while self.peek() in ("+", "-"):
            node = ("computed", self.take()[1], node, self.product())
        return node

    def product(self) -> Node:
        node = self.signed()
        while self.peek() in ("*", "/", "%"):
            node = ("computed", self.take()[1], node, self.signed())
        return node

    def signed(self) -> Node:
        if self.peek() not in ("+", "-"):
            return self.operand()
        sign, node = self.take()[1], self.signed()
        if node[0] == "constant" and _is_number(node[1]):
            return ("constant", -node[1]) if sign == "-" else node
        return ("signed", sign, node)

    def pattern(self) -> tuple[str, bool, bool]:
        """Read a regular expression: its text, whether it is literal text, and whether case is ignored."""
        kind, text = self.take()
        if kind != "string":
            raise _syntax(text)
        written, flags = json.loads(text), ""
        if self.accept("flag"):
            kind, text = self.take()
            if kind != "string":
                raise _syntax(text)
            flags = json.loads(text)
        if set(flags) - set("ismxq"):
            raise PathError("42601", "invalid input syntax for type jsonpath")
        if "q" in flags:
            return written, True, "i" in flags
        if "x" in flags:
            raise PathError("0A000", 'XQuery "x" flag (expanded regular expressions) is not implemented')
        chosen = "".join(sorted(set(flags)))
        written = f"(?{chosen}){written}" if chosen else written
        _matches("", written, False, False)  # which finds what is no regular expression
        return written, False, False

    def operand(self) -> Node:
        node = self.primary()
        while True:
            if self.accept("."):
                node = self.member(node)
            elif self.accept("["):
                node = ("all", node) if self.accept("*") else ("at", node, self.subscripts())
                self.expect("]")
            elif self.accept("?"):
                self.expect("(")
                node = ("filter", node, self.disjunction())
                self.expect(")")
            else:
                return node

    def member(self, node: Node) -> Node:
        if self.accept("*"):
            return ("any", node, *self.levels()) if self.accept("*") else ("members", node)
        kind, text = self.take()
        if kind == "string":
            return ("key", node, json.loads(text))
        if kind != "word":
            raise _syntax(text)
        if not self.accept("(", ")"):
            return ("key", node, text)
        if text not in _METHODS:
            raise PathError("0A000", f"the method {text} of jsonpath is not supported")
        return ("method", node, text)

    def levels(self) -> tuple[float, float]:
        """Read the least and the greatest level of `.**{2 to last}`; of `.**` all are meant."""
        if not self.accept("{"):
            return 0, math.inf
        first = self.level()
        last = self.level() if self.accept("to") else first
        self.expect("}")
        return first, last

    def level(self) -> float:
        kind, text = self.take()
        if text == "last":
            return math.inf
        if kind != "number" or not text.isdigit():
            raise _syntax(text)
        return int(text)

    def subscripts(self) -> list[tuple[Node, Node | None]]:
        found = []
        while True:
            first = self.sum()
            found.append((first, self.sum() if self.accept("to") else None))
            if not self.accept(","):
                return found

    def primary(self) -> Node:
        kind, text = self.take()
        match kind, text:
            case "string", _:
                return ("constant", json.loads(text))
            case "number", _:
                return ("constant", Decimal(text) if re.search(r"[.eE]", text) else int(text))
            case "variable", _:
                return ("variable", text[1:])
            case _, "$" | "@" | "last":
                return (text,)
            case _, "true" | "false" | "null":
                return ("constant", {"true": True, "false": False, "null": None}[text])
            case _, "exists":
                self.expect("(")
                node: Node = ("exists", self.disjunction())
                self.expect(")")
                return node
            case _, "(":
                node = self.disjunction()
                self.expect(")")
                return node
        raise _syntax(text)


# Evaluation.

_ACCESSORS = ("any", "key", "members", "all", "at", "filter", "method")
_PREDICATES = ("or", "and", "not", "compare", "starts", "like", "unknown", "exists")


class _Run:
    """The evaluation of a path over a document."""

    def __init__(self, document: Any, variables: dict[str, Any], is_strict: bool) -> None:
        self.document, self.variables, self.is_strict = document, variables, is_strict
        self.sizes: list[int] = []  # of the arrays whose subscripts are computed

    def values(self, node: Node, current: Any) -> Iterator[Any]:
        kind = node[0]
        if kind in _PREDICATES:
            yield self.truth(node, current)
        elif kind == "constant":
            yield node[1]
        elif kind == "$":
            yield self.document
        elif kind == "@":
            yield current
        elif kind == "last":
            if not self.sizes:
                raise PathError("42601", "LAST is allowed only in array subscripts")
            yield self.sizes[-1] - 1
        elif kind == "variable":
            if node[1] not in self.variables:
                raise PathError("42704", f'could not find jsonpath variable "{node[1]}"')
            yield self.variables[node[1]]
        elif kind == "computed":
            sides = (self._operand(side, place, node[1], current) for side, place in zip(node[2:], _SIDES, strict=True))
            yield _COMPUTED[node[1]](*sides)
        elif kind == "signed":
            for value in self._operands(node[2], current):
                if not _is_number(value):
                    message = f"operand of unary jsonpath operator {node[1]} is not a numeric value"
                    raise PathError("2203B", message)
                yield -value if node[1] == "-" else value
        else:
            for value in self.values(node[1], current):
                yield from getattr(self, f"_{kind}")(value, node, current)

    def _is_strict(self, node: Node) -> bool:
        """Return whether a part that is not there is an error: not behind `.**`."""
        while self.is_strict and isinstance(node, tuple) and node[0] in _ACCESSORS:
            if node[0] == "any":
                return False
            node = node[1]
        return self.is_strict

    def _operands(self, node: Node, current: Any) -> list[Any]:
        return [each for value in self.values(node, current) for each in self._unwrapped(value)]

    def _operand(self, node: Node, place: str, sign: str, current: Any) -> Any:
        found = self._operands(node, current)
        if len(found) != 1 or not _is_number(found[0]):
            message = f"{place} operand of jsonpath operator {sign} is not a single numeric value"
            raise PathError("22038", message)
        return found[0]

    def _any(self, value: Any, node: Node, current: Any) -> Iterator[Any]:
        yield from _below(value, 0, node[2], node[3])

    def _key(self, value: Any, node: Node, current: Any) -> Iterator[Any]:
        for each in self._unwrapped(value):
            if isinstance(each, dict) and node[2] in each:
                yield each[node[2]]
            elif self._is_strict(node) and isinstance(each, dict):
                raise PathError("2203A", f'JSON object does not contain key "{node[2]}"')
            elif self._is_strict(node):
                raise PathError("2203A", "jsonpath member accessor can only be applied to an object")

    def _members(self, value: Any, node: Node, current: Any) -> Iterator[Any]:
        for each in self._unwrapped(value):
            if isinstance(each, dict):
                yield from each.values()
            elif self._is_strict(node):
                raise PathError("2203C", "jsonpath wildcard member accessor can only be applied to an object")

    def _all(self, value: Any, node: Node, current: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from value
        elif self._is_strict(node):
            raise PathError("22039", "jsonpath wildcard array accessor can only be applied to an array")
        else:
            yield value

    def _at(self, value: Any, node: Node, current: Any) -> Iterator[Any]:
        if self.is_strict and not isinstance(value, list):
            raise PathError("22039", "jsonpath array accessor can only be applied to an array")
        array = value if isinstance(value, list) else [value]
        for first, last in node[2]:
            self.sizes.append(len(array))
            start = self._subscript(first, current)
            stop = start if last is None else self._subscript(last, current)
            self.sizes.pop()
            if self.is_strict and not 0 <= start <= stop < len(array):
                raise PathError("22033", "jsonpath array subscript is out of bounds")
            yield from array[max(start, 0) : stop + 1] if stop >= 0 else ()

    def _subscript(self, node: Node, current: Any) -> int:
        found = list(self.values(node, current))
        if len(found) != 1 or isinstance(found[0], bool) or not isinstance(found[0], int | Decimal):
            raise PathError("22033", "jsonpath array subscript is not a single numeric value")
        return int(found[0])

    def _filter(self, value: Any, node: Node, current: Any) -> Iterator[Any]:
        for each in self._unwrapped(value):
            if self.truth(node[2], each) is True:
                yield each

    def _method(self, value: Any, node: Node, current: Any) -> Iterator[Any]:
        name = node[2]
        if name == "type":
            yield _type(value)
        elif name == "size":
            if self.is_strict and not isinstance(value, list):
                raise PathError("22039", "jsonpath item method .size() can only be applied to an array")
            yield len(value) if isinstance(value, list) else 1
        else:
            for each in self._unwrapped(value):
                yield _number(each, name)

    def _unwrapped(self, value: Any) -> list[Any]:
        return value if isinstance(value, list) and not self.is_strict else [value]

    def truth(self, node: Node, current: Any) -> bool | None:
        """Return the truth of a predicate, None where it is unknown."""
        kind = node[0]
        if kind == "not":
            found = self.truth(node[1], current)
            return None if found is None else not found
        if kind in ("and", "or"):
            sides = [self.truth(side, current) for side in node[1:]]
            decides = kind == "or"
            return decides if decides in sides else None if None in sides else not decides
        if kind == "unknown":
            return self.truth(node[1], current) is None
        try:
            if kind == "exists":
                return next(iter([*self.values(node[1], current)][:1]), self) is not self
            if kind == "starts":
                return self._pairs(node[1], node[2], current, _starts)
            if kind == "like":
                return self._pairs(node[1], ("constant", None), current, lambda left, _: _like(left, *node[2]))
            if kind == "compare":
                sign = node[1]
                return self._pairs(node[2], node[3], current, lambda left, right: _compare(sign, left, right))
        except PathError as error:
            if error.sqlstate == "42704":
                raise
            return None
        raise PathError("42601", "a condition is expected in jsonpath input")

    def _pairs(self, left: Node, right: Node, current: Any, test: Callable[[Any, Any], bool | None]) -> bool | None:
        rights = [each for value in self.values(right, current) for each in self._unwrapped(value)]
        lefts = [each for value in self.values(left, current) for each in self._unwrapped(value)]
        found: list[bool | None] = []
        for one in lefts:
            for other in rights:
                answer = test(one, other)
                if (answer is None and self.is_strict) or (answer is True and not self.is_strict):
                    return answer
                found.append(answer)
        return True if True in found else None if None in found else False


def _below(value: Any, level: int, first: float, last: float) -> Iterator[Any]:
    """The value and what is in it, between two levels; those of `last` alone are what is no array or object."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    if level >= first or (level and first == last == math.inf and inner is None):
        yield value
    for each in inner or () if level < last else ():
        yield from _below(each, level + 1, first, last)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


# Numbers have PostgreSQL's digits: a quotient has at least sixteen.
_SIDES = ("left", "right")


def _quotient(left: Any, right: Any) -> Decimal:
    one, other = _dividend(left, right)
    (weight, first), (own_weight, own_first) = _weight(one), _weight(other)
    places = 16 - 4 * (weight - own_weight - (first <= own_first))
    places = max(places, *(-int(each.as_tuple().exponent) for each in (one, other)), 0)
    with localcontext(prec=_DIGITS):
        return (one / other).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)


def _remainder(left: Any, right: Any) -> Decimal:
    one, other = _dividend(left, right)
    with localcontext(prec=_DIGITS):
        return one % other


def _dividend(left: Any, right: Any) -> tuple[Decimal, Decimal]:
    if not right:
        raise PathError("22012", "division by zero")
    return Decimal(left), Decimal(right)


def _weight(value: Decimal) -> tuple[int, int]:
    """Return the place of the first digit of a number to the base 10000, and the digit."""
    weight = value.adjusted() // 4
    return (weight, int(abs(value).scaleb(-4 * weight))) if value else (0, 0)


def _exactly(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def computed(left: Any, right: Any) -> Any:
        with localcontext(prec=_DIGITS):
            return compute(left, right)

    return computed


_DIGITS = 2000
_COMPUTED: dict[str, Callable[[Any, Any], Any]] = {
    "+": _exactly(operator.add),
    "-": _exactly(operator.sub),
    "*": _exactly(operator.mul),
    "/": _quotient,
    "%": _remainder,
}


def _like(value: Any, pattern: str, is_literal: bool, ignores_case: bool) -> bool | None:
    return _matches(value, pattern, is_literal, ignores_case) if isinstance(value, str) else None


def _matches(value: str, pattern: str, is_literal: bool, ignores_case: bool) -> bool:
    match = pc.match_substring if is_literal else pc.match_substring_regex
    try:
        return bool(match(pa.array([value]), pattern, ignore_case=ignores_case)[0].as_py())
    except pa.ArrowInvalid as error:
        what = str(error).partition(":")[2].strip()
        raise PathError("2201B", f"invalid regular expression: {what}") from None


def _starts(left: Any, right: Any) -> bool | None:
    return left.startswith(right) if isinstance(left, str) and isinstance(right, str) else None


def _compare(sign: str, left: Any, right: Any) -> bool | None:
    kinds = _type(left), _type(right)
    if "null" in kinds and kinds[0] != kinds[1]:
        return sign in ("!=", "<>")
    if kinds[0] != kinds[1] or kinds[0] in ("array", "object"):
        return None
    if left is None:
        left = right = 0
    return _COMPARISONS[sign](left, right)


def _type(value: Any) -> str:
    kinds = ((bool, "boolean"), (int | Decimal, "number"), (str, "string"), (list, "array"), (dict, "object"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "null")


def _number(value: Any, method: str) -> Any:
    if method == "double" and isinstance(value, str):
        try:
            return Decimal(repr(float(value)))
        except ValueError:
            what = "is not a valid representation of a double precision number"
            message = f"string argument of jsonpath item method .double() {what}"
            raise PathError("22036", message) from None
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        what = "a string or numeric value" if method == "double" else "a numeric value"
        raise PathError("22036", f"jsonpath item method .{method}() can only be applied to {what}")
    return {"double": lambda v: v, "abs": abs, "ceiling": math.ceil, "floor": math.floor}[method](value)
