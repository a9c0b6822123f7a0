"""The parser of calls: PostgreSQL's functions, whatever sqlglot knows of functions by these names."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.tokens import TokenType

from sparkwave.planner.functions.argument_counts import COUNTS, takes
from sparkwave.planner.parse.lambdas import element_lambda
from sparkwave.planner.parse.strict import OF_TEXTS, SIGN, StrictParser
from sparkwave.planner.parse.window_frames import check_frame, typed_offset

# Calls with a grammar of their own, and all others for which sqlglot has nodes that are used here. It knows hundreds of
# other engines' functions by name, and gives some of PostgreSQL's another meaning.
_GRAMMAR = frozenset(
    {"CAST", "CHAR", "EXTRACT", "JSON_AGG", "JSON_OBJECT", "NORMALIZE", "OVERLAY", "POSITION", "STRING_AGG",
     "SUBSTRING", "TRIM", "TRY_CAST"}
)  # fmt: skip
_PLACED = frozenset({"EXTRACT", "OVERLAY", "POSITION", "SUBSTRING", "TRIM"})
_NODES = frozenset(
    {"ANY_VALUE", "APPROX_COUNT_DISTINCT", "ARRAY", "ARRAY_AGG", "AVG", "BIT_AND", "BIT_OR", "BIT_XOR", "BOOL_AND",
     "BOOL_OR", "COALESCE", "CORR", "COUNT", "COVAR_POP", "COVAR_SAMP", "CUME_DIST", "CURRENT_CATALOG",
     "CURRENT_DATABASE", "CURRENT_DATE", "CURRENT_SCHEMA", "CURRENT_SCHEMAS", "CURRENT_TIME", "CURRENT_TIMESTAMP",
     "CURRENT_USER", "DATE", "DENSE_RANK", "EXISTS", "FIRST_VALUE", "GENERATE_SERIES", "GEN_RANDOM_UUID", "GREATEST",
     "GROUPING", "JSONB_OBJECT_AGG", "JSON_OBJECT_AGG", "LAG", "LAST_VALUE", "LEAD", "LEAST", "LOCALTIME",
     "LOCALTIMESTAMP", "MAX", "MIN", "MOD", "MODE", "NTH_VALUE", "NTILE", "NULLIF", "PERCENTILE_CONT",
     "PERCENTILE_DISC", "PERCENT_RANK", "RANDOM", "RANK", "REGR_AVGX", "REGR_AVGY", "REGR_COUNT", "REGR_INTERCEPT",
     "REGR_R2", "REGR_SLOPE", "REGR_SXX", "REGR_SXY", "REGR_SYY", "ROW_NUMBER", "SESSION_USER", "STDDEV",
     "STDDEV_POP", "STDDEV_SAMP", "SUM", "UNNEST", "VARIANCE", "VAR_POP", "VAR_SAMP", "VERSION"}
)  # fmt: skip


def _named(name: str, node: exp.Expr) -> exp.Expr:
    """Return a node with the name by which it was called, which names an output."""
    node.meta["name"] = name
    return node


def _written(name: str) -> Callable[[list[exp.Expr]], exp.Expr]:
    """Return the builder of a function that shares its node with another function."""
    return lambda arguments: _named(name.lower(), StrictParser.FUNCTIONS[name](arguments))


NORMAL_FORMS = ("NFC", "NFD", "NFKC", "NFKD")
# Marks an ORDER BY with the gap of the sessions of its window (`planner.build.session_frames`).
GAP = "gap"
# Nodes around the call of an aggregate.
_AROUND = (exp.Window, exp.Filter, exp.WithinGroup)


def _over_array(node: exp.Expr) -> exp.Expr:
    """Return the call of an array function, maybe with FILTER and OVER, over the array of its first argument."""
    call = node
    while isinstance(call, _AROUND):
        call = call.this
    value, *others = call.expressions if isinstance(call, exp.Anonymous) else call.iter_expressions()
    if others and isinstance(others[-1], exp.Order):  # behind all arguments
        order = others.pop()
        others.append(order.this)
        value = exp.Order(this=value, expressions=order.expressions)
    assert isinstance(call, exp.Func)
    name = call.name if isinstance(call, exp.Anonymous) else call.sql_name()
    made = exp.Anonymous(this=name.lower(), expressions=[node, *others])
    made.meta.update(call.meta)
    call.replace(exp.ArrayAgg(this=value))
    return made


def _counted(name: str, build: Callable[..., Any]) -> Callable[..., Any]:
    """Return sqlglot's builder of a call, except that a call with a wrong number of arguments stays as written."""

    def built(arguments: list[exp.Expr], **options: Any) -> Any:
        is_right = takes(name, len(arguments))
        return build(arguments, **options) if is_right else exp.Anonymous(this=name, expressions=arguments)

    return built


def _filled(name: str, parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return sqlglot's parser of a call, except that a call without arguments stays as written."""

    def parsed(parser: Any) -> Any:
        token = parser._tokens[parser._index - 2]  # before the parenthesis
        is_empty = parser._match(TokenType.R_PAREN, advance=False)
        node = exp.Anonymous(this=name, expressions=[]) if is_empty else parse(parser)
        return node.update_positions(token)

    return parsed


def _placed(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return sqlglot's parser of a call, which has the place of its name then."""

    def parsed(parser: Any) -> Any:
        token = parser._tokens[parser._index - 2]  # before the parenthesis
        node = parse(parser)
        return node.update_positions(token) if isinstance(node, exp.Func) else node

    return parsed


def _extreme(name: str) -> Callable[[list[exp.Expr]], exp.Expr]:
    """Return the builder of RisingWave's arg_min or arg_max: the first value by the keys, of rows that have both."""

    def build(arguments: list[exp.Expr]) -> exp.Expr:
        key = arguments.pop()  # sqlglot counts what is left
        [value] = arguments
        own = exp.Case().when(_is_there(key), value.copy())
        by = exp.Ordered(this=exp.Case().when(_is_there(value), key.copy()), desc=name == "arg_max", nulls_first=False)
        return _named(name, exp.FirstValue(this=exp.Order(this=own, expressions=[by])))

    return build


def _is_there(value: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=exp.paren(value.copy()), expression=exp.null()))


def _series(arguments: list[exp.Expr]) -> exp.Expr:
    """Return a series, of times if its ends are texts.

    sqlglot's builder reads no step of several units, such as '1 day 12 hours'.
    """
    is_of_times = len(arguments) == 3 and isinstance(arguments[2], exp.Interval | exp.Cast)
    if is_of_times and all(argument.is_string for argument in arguments[:2]):
        arguments[:2] = [exp.cast(argument, exp.DType.TIMESTAMPTZ) for argument in arguments[:2]]
    try:
        return StrictParser.FUNCTIONS["GENERATE_SERIES"](arguments)
    except AssertionError:
        start, end, step = arguments
        return exp.ExplodingGenerateSeries(start=start, end=end, step=exp.cast(step, exp.DType.INTERVAL))


_BUILDERS: dict[str, Callable[..., Any]] = {
    **{name: StrictParser.FUNCTIONS[name] for name in _NODES},
    **{name: _written(name) for name in ("VARIANCE", "VAR_SAMP")},
    "MOD": lambda arguments: _named("mod", StrictParser.FUNCTIONS["MOD"](arguments)),
    "NOW": lambda arguments: _named("now", exp.CurrentTimestamp()),
    "UUID_GENERATE_V4": lambda arguments: _named("uuid_generate_v4", exp.Uuid()),
    "GENERATE_SERIES": _series,
    **{name.upper(): _extreme(name) for name in ("arg_min", "arg_max")},
    "TIMEZONE": lambda arguments: exp.AtTimeZone(this=arguments[1], zone=arguments[0]),
    "ALL": lambda arguments: exp.All(this=arguments[0] if arguments else exp.null()),
    "SOME": lambda arguments: exp.Any(this=exp.Paren(this=arguments[0] if arguments else exp.null())),
}


def _matches(parser: Any, this: exp.Expr) -> Any:
    """Parse `~`, or a comparison of texts such as `~<~`, from behind it."""
    sign = parser._prev.text
    if sign not in OF_TEXTS:
        return StrictParser.RANGE_PARSERS[TokenType.RLIKE](parser, this)
    node = parser.expression(OF_TEXTS[sign](this=this, expression=parser._parse_bitwise()))
    node.meta[SIGN] = sign
    return node


def _has_path(parser: Any, document: Any) -> exp.Expr:
    """Parse `@?` of jsonb and a jsonpath: a function that raises no errors."""
    token, path = parser._prev, parser._parse_bitwise()
    arguments = [document, path, exp.Literal.string("{}"), exp.true()]
    call = exp.Anonymous(this="jsonb_path_exists", expressions=arguments)
    return _named("?column?", call).update_positions(token)


def _matches_path(parser: Any, document: Any) -> exp.Expr:
    """Parse `@@` of jsonb and a jsonpath: a predicate that raises no errors."""
    call = _has_path(parser, document)
    call.set("this", "jsonb_path_match")
    return call


def _arrow(build: Callable[..., Any]) -> Callable[..., Any]:
    """Return a parser of `->` or `->>` that keeps a number with a fraction, of which sqlglot makes a key."""

    def built(parser: Any, document: Any, path: Any) -> Any:
        found = build(parser, document, path)
        if isinstance(path, exp.Literal) and not path.is_string and not path.is_int:
            found.set("expression", path)
        return found

    return built


# Functions of any number of arguments.
_VARIADIC = frozenset({
    "concat", "concat_ws", "format", "num_nulls", "num_nonnulls",
    *(f"{kind}_{name}" for kind in ("json", "jsonb")
      for name in ("build_array", "build_object", "extract_path", "extract_path_text")),
})  # fmt: skip


def _filled_array(call: exp.Anonymous) -> exp.Anonymous:
    """Return array_fill of several dimensions as calls of one within the other. Lower bounds that are constants go."""
    value, *sizes = call.expressions
    if len(sizes) == 2 and isinstance(sizes[1], exp.Array) and all(bound.is_int for bound in sizes[1].expressions):
        sizes = sizes[:1]
    if len(sizes) == 1 and isinstance(sizes[0], exp.Array):
        *outer, last = sizes[0].expressions or [None]
        if last is not None:
            sizes = [exp.Array(expressions=[last])]
        for size in reversed(outer):
            value = exp.Anonymous(this=call.this, expressions=[value, *sizes]).update_positions(call)
            sizes = [exp.Array(expressions=[size])]
    call.set("expressions", [value, *sizes])
    return call


def _as_called(call: Any) -> Any:
    """Return a call with VARIADIC or of array_fill in simpler calls; any other node as it is."""
    if not isinstance(call, exp.Anonymous) or not call.expressions:
        return call
    if call.name.lower() == "array_fill":
        return _filled_array(call)
    is_variadic = isinstance(call.expressions[-1], exp.Variadic) and call.name.lower() in _VARIADIC
    return _spread(call) if is_variadic else call


def _spread(call: exp.Anonymous) -> exp.Expr:
    """Return a call with the elements of its VARIADIC array as arguments, or of another array as far as it can be.

    Joined for concat and concat_ws, as texts for format, counted for num_nulls, as documents or paths for json's.
    """
    array, before, name = call.expressions[-1].this, call.expressions[:-1], call.name.lower()
    if isinstance(array, exp.Array) and array.expressions:
        call.set("expressions", [*before, *array.expressions])
        return call
    separators = before if name == "concat_ws" else [exp.Literal.string("")]
    if (name == "concat" and not before) or (name == "concat_ws" and len(before) == 1):
        joined = exp.Anonymous(this="array_to_string", expressions=[array, *separators]).update_positions(call)
        joined.meta["name"] = name
        return joined
    if name == "format" and len(before) == 1:
        formatted = exp.Anonymous(this="format_of", expressions=[*before, array]).update_positions(call)
        formatted.meta["name"] = name
        return formatted
    if (written := _OF_ARRAYS.get(name)) is None or len(before) != ("extract_path" in name):
        return call
    made = written(array, *before)
    _named(name, made.this if isinstance(made, exp.Cast) else made).update_positions(call)
    return made


def _nulls(array: exp.Expr, finder: str) -> exp.Expr:
    found = exp.Anonymous(this=finder, expressions=[array, exp.null()])
    return exp.Anonymous(this="cardinality", expressions=[found])


def _call(name: str) -> Callable[..., exp.Expr]:
    return lambda array: exp.Anonymous(this=name, expressions=[array])


# What functions of a VARIADIC array are, as functions of that array and of what is before it.
_OF_ARRAYS: dict[str, Callable[..., exp.Expr]] = {
    "num_nulls": lambda array: _nulls(array, "array_positions"),
    "num_nonnulls": lambda array: _nulls(array, "array_remove"),
    "json_build_array": lambda array: exp.cast(_call("to_jsonb")(array), exp.DType.JSON),
    "jsonb_build_array": _call("to_jsonb"),
    "json_build_object": _call("json_object"),
    "jsonb_build_object": _call("jsonb_object"),
    **dict.fromkeys(
        ("json_extract_path", "jsonb_extract_path"),
        lambda array, document: exp.JSONBExtract(this=document, expression=array),
    ),
    **dict.fromkeys(
        ("json_extract_path_text", "jsonb_extract_path_text"),
        lambda array, document: exp.JSONBExtractScalar(this=document, expression=array),
    ),
}


# The position of a cast, which is that of `::` or CAST, among its meta data; casts that no user wrote have none.
CAST_POSITION = "cast position"


def _deepen(cast: exp.Expr) -> None:
    """Give the type of a literal that is cast to an array as many dimensions as it has: PostgreSQL's has any number."""
    target = cast.args.get("to")
    text = cast.this.unnest() if target is not None else cast
    if not text.is_string or not isinstance(target, exp.DataType) or target.this != exp.DType.ARRAY:
        return
    own, kind = 0, target
    while kind.this == exp.DType.ARRAY and kind.expressions:
        own, kind = own + 1, kind.expressions[0]
    braces = _BRACES.match(text.name)
    for _ in range(own, min(braces[0].count("{"), _TOO_MANY) if braces is not None else own):
        target = exp.DataType(this=exp.DType.ARRAY, expressions=[target], nested=True)
    cast.set("to", target)


_TOO_MANY = 7  # PostgreSQL's MAXDIM is 6
# The braces with which an array's text begins, behind its bounds.
_BRACES = re.compile(r"\s*(?:\[[^=]*=)?[\s{]*")


def at_map(parser: Any) -> bool:
    """Return whether `MAP {` is next."""
    is_brace = parser._next is not None and parser._next.token_type == TokenType.L_BRACE
    return is_brace and parser._curr.text.upper() == "MAP"


class CallParser(StrictParser):
    """Calls of all other functions keep their name and arguments as written, and casts their position."""

    # Where the last window, and the last two bounds of a frame, begin.
    _window = 0
    _bounds: tuple[int, ...] = ()
    FUNCTIONS: ClassVar = {
        name: _counted(name.lower(), build) if name.lower() in COUNTS else build for name, build in _BUILDERS.items()
    }

    def _parse_function_call(self, *args: Any, **options: Any) -> Any:
        """Parse a call; RisingWave's `aggregate:f(x)` is `f(array_agg(x))`, and `MAP {k: v}` is a call, too."""
        if at_map(self):
            return self._parse_map()
        is_prefix = self._curr is not None and self._curr.text.lower() == "aggregate"
        if not is_prefix or self._next is None or self._next.token_type != TokenType.COLON:
            return _as_called(super()._parse_function_call(*args, **options))
        self._advance(2)
        call = super()._parse_function_call(*args, **options)
        return _over_array(call) if call is not None else self._stop()

    def _parse_map(self) -> exp.Expr:
        """Parse `MAP {'a': 1, 'b': 2}` as `map_from_key_values(ARRAY['a', 'b'], ARRAY[1, 2])`."""
        token = self._curr
        self._advance(2)
        pairs = [] if self._match(TokenType.R_BRACE, advance=False) else self._parse_csv(self._parse_map_entry)
        if not self._match(TokenType.R_BRACE):
            self._stop()
        keys, values = ([pair[place] for pair in pairs] for place in (0, 1))
        arrays = [exp.Array(expressions=keys), exp.Array(expressions=values)]
        made = exp.Anonymous(this="map_from_key_values", expressions=arrays)
        return _named("?column?", made).update_positions(token)

    def _parse_map_entry(self) -> tuple[exp.Expr, exp.Expr]:
        key: Any = self._parse_disjunction()
        value: Any = self._parse_disjunction() if self._match(TokenType.COLON) else None
        if key is None or value is None:
            self._stop()
        return key, value

    def _parse_dcolon(self) -> Any:
        """Parse the type behind `::`, for `build_cast`."""
        token, target = self._prev, super()._parse_dcolon()
        if target is not None:
            target.meta[CAST_POSITION] = token.start + 1
        return target

    def build_cast(self, strict: bool, **options: Any) -> Any:
        cast = super().build_cast(strict, **options)
        if isinstance(cast, exp.Cast) and CAST_POSITION in cast.to.meta:
            cast.meta[CAST_POSITION] = cast.to.meta.pop(CAST_POSITION)
            _deepen(cast)
        return cast

    def _parse_cast(self, strict: bool, safe: bool | None = None) -> Any:
        """Parse a cast behind its parenthesis."""
        token, cast = self._tokens[self._index - 2], super()._parse_cast(strict, safe)
        cast.meta[CAST_POSITION] = token.start + 1
        _deepen(cast)
        return cast

    STRING_PARSERS: ClassVar = {
        **StrictParser.STRING_PARSERS,
        # $$text$$ is a text without a type, as 'text' is.
        TokenType.HEREDOC_STRING: StrictParser.STRING_PARSERS[TokenType.STRING],
    }
    PRIMARY_PARSERS: ClassVar = {**StrictParser.PRIMARY_PARSERS, **STRING_PARSERS}

    def _parse_lambda(self, alias: bool = False) -> Any:
        """Parse an argument, which may be a lambda expression."""
        if not self._match(TokenType.PIPE):
            return super()._parse_lambda(alias)
        number, parameters = self._index, self._parse_csv(self._parse_id_var)
        body = self._parse_disjunction() if self._match(TokenType.PIPE) else None
        return element_lambda(parameters, body, number) if parameters and body else self._stop()

    JSON_OPERATORS: ClassVar = {
        token: _arrow(build) if token in (TokenType.ARROW, TokenType.DARROW) else build
        for token, build in StrictParser.JSON_OPERATORS.items()
    }
    RANGE_PARSERS: ClassVar = {
        **StrictParser.RANGE_PARSERS,
        TokenType.RLIKE: _matches,
        TokenType.AT_QMARK: _has_path,
        TokenType.DAT: _matches_path,
    }

    def _parse_json_object(self, agg: bool = False) -> Any:
        """Parse json_object; with one or two values, which are no fields, it is PostgreSQL's function of arrays."""
        index = self._index
        values = [] if agg else self._parse_csv(self._parse_disjunction)
        if values and all(values) and self._match(TokenType.R_PAREN, advance=False):
            return exp.Anonymous(this="json_object", expressions=values)
        self._retreat(index)
        return super()._parse_json_object(agg)  # type: ignore[call-overload]

    def _parse_trim(self) -> Any:
        """Parse TRIM, which may have all its arguments after FROM."""
        position = self._prev.text.upper() if self._match_texts(self.TRIM_TYPES) else None
        characters = None if self._match(TokenType.FROM, advance=False) else self._parse_bitwise()
        if self._match(TokenType.FROM):
            listed = self._parse_csv(self._parse_bitwise)
            listed += [characters] if characters is not None else []
        else:
            listed = [characters, *(self._parse_csv(self._parse_bitwise) if self._match(TokenType.COMMA) else [])]
        if not listed or len(listed) > 2:
            self._stop()
        expression = listed[1] if len(listed) > 1 else None
        return self.expression(exp.Trim(this=listed[0], position=position, expression=expression))

    def _parse_partition_and_order(self) -> Any:
        """Parse these parts of a window, with RisingWave's SESSION WITH GAP, which is marked at its ORDER BY."""
        window = self._prev.start + 1
        partition, order = super()._parse_partition_and_order()
        self._window = window
        if self._match_text_seq("SESSION"):
            gap = self._parse_bitwise() if self._match_text_seq("WITH", "GAP") else None
            if order is None or gap is None:
                return self._stop()
            order.meta[GAP] = gap
        return partition, order

    def _parse_window(self, this: Any, alias: bool = False) -> Any:
        window = super()._parse_window(this, alias)
        if isinstance(window, exp.Window) and isinstance(window.args.get("spec"), exp.WindowSpec):
            check_frame(window, self._window, self._bounds)
        return window

    def _parse_window_spec(self) -> Any:
        """Parse a bound of a frame, and keep where the last two begin."""
        self._bounds = (*self._bounds[-1:], self._curr.start + 1)
        bound = super()._parse_window_spec()
        return {**bound, "value": typed_offset(bound["value"])}

    def _parse_is(self, this: Any) -> Any:
        """Parse IS, also `IS NOT NFC NORMALIZED` and `IS JSON OBJECT`, which are calls of functions."""
        index, is_negated = self._index, self._match(TokenType.NOT)
        if self._match_text_seq("JSON"):
            call = _named("?column?", exp.Anonymous(this="is_json", expressions=[this, self._kind_of_json()]))
            return exp.Not(this=call) if is_negated else call
        form = self._curr.text.upper() if self._match_texts(NORMAL_FORMS, advance=False) else ""
        self._advance(bool(form))
        if not self._match_text_seq("NORMALIZED"):
            self._retreat(index)
            return super()._parse_is(this)
        call = exp.Anonymous(this="is_normalized", expressions=[this, exp.Literal.string(form or "NFC")])
        return exp.Not(this=call) if is_negated else call

    def _kind_of_json(self) -> exp.Expr:
        """Parse what follows IS JSON, as the second argument of `is_json`."""
        kind = self._prev.text.lower() if self._match_texts(("VALUE", "OBJECT", "ARRAY", "SCALAR")) else "value"
        is_unique = self._match_text_seq("WITH", "UNIQUE")
        if is_unique or self._match_text_seq("WITHOUT", "UNIQUE"):
            self._match_text_seq("KEYS")
        return exp.Literal.string(f"{kind} unique" if is_unique else kind)

    def _parse_escape(self, this: Any) -> Any:
        """Parse ESCAPE; of SIMILAR TO it may be any expression."""
        if not isinstance(this, exp.SimilarTo) or not self._match(TokenType.ESCAPE):
            return super()._parse_escape(this)
        arguments = [this.this, this.expression, self._parse_bitwise()]
        return _named("?column?", exp.Anonymous(this="similar_to", expressions=arguments))

    def _parse_substring(self) -> Any:
        """Parse `substring(x SIMILAR p ESCAPE e)` as `substring(x FROM p FOR e)`, which is the same."""
        index = self._index
        this = self._parse_bitwise()
        if not self._match_text_seq("SIMILAR"):
            self._retreat(index)
            return super()._parse_substring()
        pattern = self._parse_bitwise()
        if not self._match(TokenType.ESCAPE):
            self._stop()
        return self.expression(exp.Substring(this=this, start=pattern, length=self._parse_bitwise()))

    FUNCTION_PARSERS: ClassVar = {
        name: _filled(name.lower(), parse) if name.lower() in COUNTS else _placed(parse) if name in _PLACED else parse
        for name, parse in StrictParser.FUNCTION_PARSERS.items()
        if name in _GRAMMAR
    }
