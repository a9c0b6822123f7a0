"""The parser of calls: PostgreSQL's functions, whatever sqlglot knows of functions by these names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.tokens import TokenType

from sparkwave.planner.functions.argument_counts import COUNTS, takes
from sparkwave.planner.parse.strict import StrictParser

# Calls with a grammar of their own, and all others for which sqlglot has nodes that are used here. It knows hundreds of
# other engines' functions by name, and gives some of PostgreSQL's another meaning.
_GRAMMAR = frozenset(
    {"CAST", "CHAR", "EXTRACT", "JSON_AGG", "JSON_OBJECT", "NORMALIZE", "OVERLAY", "POSITION", "STRING_AGG",
     "SUBSTRING", "TRIM", "TRY_CAST"}
)  # fmt: skip
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


_BUILDERS: dict[str, Callable[..., Any]] = {
    **{name: StrictParser.FUNCTIONS[name] for name in _NODES},
    "NOW": lambda arguments: _named("now", exp.CurrentTimestamp()),
    "ALL": lambda arguments: exp.All(this=arguments[0] if arguments else exp.null()),
    "SOME": lambda arguments: exp.Any(this=exp.Paren(this=arguments[0] if arguments else exp.null())),
}


class CallParser(StrictParser):
    """Calls of all other functions keep their name and arguments as written."""

    FUNCTIONS: ClassVar = {
        name: _counted(name.lower(), build) if name.lower() in COUNTS else build for name, build in _BUILDERS.items()
    }

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
        name: _filled(name.lower(), parse) if name.lower() in COUNTS else parse
        for name, parse in StrictParser.FUNCTION_PARSERS.items()
        if name in _GRAMMAR
    }
