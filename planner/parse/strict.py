"""sqlglot's Postgres without other engines' syntax: a parser that stops where PostgreSQL's does.

A word that is left out here is a syntax error, and a name where PostgreSQL takes it for one. The tables of
`planner.build.handled` and `planner.batch.accepted` refuse the rest that sqlglot reads and no plan has.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ParseError
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokens import TokenType

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error

# Words and operators of other engines.
_WORDS = frozenset(
    {
        "CLUSTER BY", "SORT BY", "DISTRIBUTE BY", "CONNECT BY", "QUALIFY", "PIVOT", "UNPIVOT", "APPLY", "STRAIGHT_JOIN",
        "GLOB", "RLIKE", "REGEXP", "SETTINGS", "LOCK", "==", "<=>", "??", "?::", "|>",
    }
)  # fmt: skip
_CLAUSES = (
    TokenType.CLUSTER_BY, TokenType.SORT_BY, TokenType.DISTRIBUTE_BY, TokenType.CONNECT_BY, TokenType.QUALIFY,
    TokenType.PREWHERE, TokenType.MATCH_RECOGNIZE, TokenType.USING, TokenType.LOCK,
)  # fmt: skip


# PostgreSQL's comparisons of texts by their bytes, which is the order of texts here.
OF_TEXTS: dict[str, type[exp.Expr]] = {"~<~": exp.LT, "~<=~": exp.LTE, "~>~": exp.GT, "~>=~": exp.GTE}
# Marks such a comparison with its sign.
SIGN = "sign"

_BEFORE_BY = frozenset({"ORDER", "GROUP"})
_BROADCAST = (TokenType.JOIN, TokenType.INNER, TokenType.LEFT)
_UNCONDITIONED = "unconditioned"
WRITTEN_NUMBER = "written number"


def check_bits(tree: exp.Expr) -> None:
    """Raise Error 42704 for constants of bits, 42601 for numbers like `0x1F`; stored definitions have them as bytes."""
    for node in tree.find_all(exp.BitString, exp.HexString):
        if WRITTEN_NUMBER in node.meta:
            raise _junk(node.meta[WRITTEN_NUMBER], node.meta["start"])
        raise Error('type "bit" does not exist', errors.UNDEFINED_OBJECT, position=node.meta["start"] + 1)


def _junk(number: str, start: int) -> Error:
    message = f'trailing junk after numeric literal at or near "{number}"'
    return Error(message, errors.SYNTAX_ERROR, position=start + 1)


def check_joins(tree: exp.Expr) -> None:
    """Raise Error 42601 for a JOIN without ON or USING, which definitions of earlier versions may have."""
    for join in tree.find_all(exp.Join):
        if _UNCONDITIONED in join.meta:
            position, place = join.meta[_UNCONDITIONED]
            raise Error(f"syntax error at {place}", errors.SYNTAX_ERROR, position=position)


class StrictTokenizer(Postgres.Tokenizer):
    KEYWORDS: ClassVar = {
        **{word: kind for word, kind in Postgres.Tokenizer.KEYWORDS.items() if word not in _WORDS},
        **dict.fromkeys(OF_TEXTS, TokenType.RLIKE),
    }


class StrictParser(PostgresParser):
    QUERY_MODIFIER_PARSERS: ClassVar = {
        token: parse for token, parse in PostgresParser.QUERY_MODIFIER_PARSERS.items() if token not in _CLAUSES
    }

    def raise_error(self, message: str, token: Any = None) -> None:
        """Raise sqlglot's error with the start of the token in it: None where the text ends too early."""
        found = token or self._curr
        try:
            super().raise_error(message, found or self._prev)
        except ParseError as error:
            error.errors[0]["start"] = found.start if found else None
            raise

    def _stop(self) -> None:
        """Raise the error of a syntax error at the current token, or at the end."""
        self.raise_error("Unexpected token" if self._curr else "Expected more")

    def _parse_from(self, joins: bool = False, skip_from_token: bool = False, consume_pipe: bool = False) -> Any:
        if consume_pipe:  # FROM before SELECT, or without SELECT
            self._stop()
        return super()._parse_from(joins, skip_from_token, consume_pipe)

    def _at_broadcast(self) -> bool:
        """Return whether RisingWave's `BROADCAST [INNER | LEFT] JOIN` is next."""
        following = self._next.token_type if self._next else None
        return bool(self._match_text_seq("BROADCAST", advance=False)) and following in _BROADCAST

    def _at_clause(self) -> bool:
        """Return whether a word is next that begins a clause, of which sqlglot knows no beginning without BY."""
        token = self._curr
        return token is not None and token.token_type == TokenType.VAR and token.text.upper() in _BEFORE_BY

    def _parse_table_alias(self, alias_tokens: Any = None) -> Any:
        return None if self._at_broadcast() or self._at_clause() else super()._parse_table_alias(alias_tokens)

    def _bits(self, token: Any, kind: type[exp.Expr]) -> exp.Expr:
        """Parse `x'1F'`, or `0x1F`, which is a number since PostgreSQL 16 alone: it is marked with its text."""
        node = self.expression(kind(this=token.text), token)
        node.meta["start"] = token.start
        text = self.sql[token.start : token.end + 1]
        if text.startswith("0"):
            node.meta[WRITTEN_NUMBER] = text
        return node

    def _number(self, token: Any) -> Any:
        if token.text[-1] in "eE":
            raise _junk(token.text, token.start)
        return PostgresParser.PRIMARY_PARSERS[TokenType.NUMBER](self, token)

    PRIMARY_PARSERS: ClassVar = {
        **PostgresParser.PRIMARY_PARSERS,
        TokenType.BIT_STRING: lambda self, token: self._bits(token, exp.BitString),
        TokenType.HEX_STRING: lambda self, token: self._bits(token, exp.HexString),
        TokenType.NUMBER: lambda self, token: self._number(token),
    }

    def _parse_alias(self, this: Any, explicit: bool = False) -> Any:
        last, token = self._prev, self._curr
        is_number = last is not None and token is not None and last.token_type == TokenType.NUMBER
        if is_number and last.end + 1 == token.start and token.token_type == TokenType.VAR:
            raise _junk(last.text + token.text, last.start)
        return this if self._at_clause() else super()._parse_alias(this, explicit)

    def _parse_insert(self) -> Any:
        if not self._match(TokenType.INTO, advance=False):
            self._stop()
        return super()._parse_insert()

    def _parse_join(self, *args: Any, **options: Any) -> Any:
        """Parse a join; one without the condition that it needs is marked, for `check_joins`.

        BROADCAST says how a temporal join is distributed, not what its rows are.
        """
        is_comma = self._match(TokenType.COMMA, advance=False)
        place = self._curr.start + 1 if self._at_broadcast() else None
        if place is not None:
            self._advance()
        join = super()._parse_join(*args, **options)
        if place is not None and (join is None or join.this.args.get("version") is None):
            raise Error("BROADCAST is for temporal joins only", errors.SYNTAX_ERROR, position=place)
        if join is None or is_comma or join.kind.upper() == "CROSS":
            return join
        if not any(map(join.args.get, ("on", "using", "method"))):
            token = self._curr
            near = "end of input" if not token else f'or near "{self.sql[token.start : token.end + 1]}"'
            join.meta[_UNCONDITIONED] = token.start + 1 if token else len(self.sql) + 1, near
        return join

    def _parse_connect(self, *args: Any, **options: Any) -> Any:
        return None

    def _parse_table_hints(self) -> Any:
        return None

    def _parse_changes(self) -> Any:
        return None

    def _parse_historical_data(self) -> Any:
        return None

    def _parse_partition(self) -> Any:
        return None

    def _parse_limit_by(self) -> Any:
        return None

    def _parse_having_max(self, this: Any) -> Any:
        return this

    def _parse_lateral(self) -> Any:
        is_view = self._match_pair(TokenType.LATERAL, TokenType.VIEW, advance=False)
        return None if is_view else super()._parse_lateral()

    def _parse_limit(self, this: Any = None, top: bool = False, skip_limit_token: bool = False) -> Any:
        """Parse LIMIT, which has a count and nothing else."""
        if top or skip_limit_token or not self._match(TokenType.LIMIT):
            return super()._parse_limit(this, top, skip_limit_token)
        place = self._prev.start + 1
        count = exp.var("ALL") if self._match(TokenType.ALL) else self._parse_bitwise()
        if self._match(TokenType.COMMA, advance=False):
            hint = "Use separate LIMIT and OFFSET clauses."
            raise Error("LIMIT #,# syntax is not supported", errors.SYNTAX_ERROR, hint=hint, position=place)
        return self.expression(exp.Limit(this=this, expression=count))

    def _parse_limit_options(self) -> Any:
        """Parse the options of FETCH: `ROW | ROWS`, then `ONLY | WITH TIES`."""
        if not self._match_texts(("ROW", "ROWS")):
            self._stop()
        with_ties = self._match_text_seq("WITH", "TIES")
        if not with_ties and not self._match_text_seq("ONLY"):
            self._stop()
        return self.expression(exp.LimitOptions(rows=True, with_ties=with_ties))

    def _parse_csv(self, parse_method: Any, sep: Any = TokenType.COMMA) -> Any:
        """Parse a list; an item follows each comma."""

        def parsed() -> Any:
            found = parse_method()
            is_behind = self._prev is not None and self._prev.token_type == sep
            if found is None and (is_behind or self._match(sep, advance=False)):
                self._stop()
            return found

        return super()._parse_csv(parsed, sep)
