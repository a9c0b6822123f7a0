"""Comments and white space may stand between any two tokens of a statement, and its words be in any case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import sql_scripts
from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from sparkwave.catalog.errors import Error
from sparkwave.planner.batch.pg_compat import prepare_text
from sparkwave.planner.parse.statement import parse_statement
from sparkwave.planner.parse.tokens import tokenize
from sparkwave.server.session import plan_cache

TESTS = Path(__file__).parent
BLANKS = ["\n", "\t", " \r\n\f"]
COMMENTS = [
    " /* EMIT ON WINDOW CLOSE */ ",
    " -- source it's \"\n",
    " /* a /* ;( */ ' b */ ",
    "/*don't $1 \"x; select*/",
    "/*+ hint */",
    " -- with data $$\r",
]
_QUOTED = (
    TokenType.STRING, TokenType.BYTE_STRING, TokenType.NATIONAL_STRING, TokenType.HEREDOC_STRING,
    TokenType.UNICODE_STRING, TokenType.HEX_STRING, TokenType.BIT_STRING, TokenType.IDENTIFIER,
)  # fmt: skip
_OPERATOR = frozenset("+-*/<>=~!@#%^&|`?:")


@cache
def _statements() -> list[str]:
    """Return the statements of the scripts, of the golden files, and those that clients were seen to send."""
    found = [
        record.sql
        for path in sql_scripts.SCRIPTS
        for feature in sql_scripts.read(path).features
        for record in feature.records
    ]
    for path in sorted((TESTS / "golden").glob("*.txt")):
        for case in path.read_text().split("\n\n"):
            lines = case.partition("\n----")[0].splitlines()
            found.append("\n".join(line for line in lines if not line.startswith("#")))
    for path in sorted((TESTS / "client_queries").glob("*.sql")):
        found += [sql for sql, _ in plan_cache.split(path.read_text())]
    return list(dict.fromkeys(sql for sql in found if _readable(sql)))


def _readable(sql: str) -> bool:
    try:
        return bool(_tokens(sql))
    except Error:
        return False  # an unterminated string


def _tokens(sql: str) -> list[Token]:
    return tokenize(prepare_text(sql))


def _gaps(sql: str) -> Iterator[int]:
    """Yield the places where PostgreSQL's tokens meet; some of them sqlglot reads as two tokens."""
    tokens = _tokens(sql)
    yield 0
    for before, after in pairwise(tokens):
        left, right = sql[before.end], sql[after.start]
        is_one = before.text in "$@" or {left, right} <= _OPERATOR or right in "'$" or left + right == ".."
        is_one |= (left.isalnum() and (right.isalnum() or right == "_")) or (left + right).strip(".").isdigit()
        is_continued = before.token_type in _QUOTED and after.token_type in _QUOTED
        if not is_continued and (before.end + 1 < after.start or not is_one):
            yield before.end + 1
    yield tokens[-1].end + 1


def _with(sql: str, places: Sequence[int], separator: str) -> str:
    ends = [*places, len(sql)]
    return sql[: ends[0]] + "".join(separator + sql[start:end] for start, end in pairwise(ends))


def _in_case(sql: str, change: Callable[[str], str]) -> str:
    def written(token: Token) -> str:
        text = sql[token.start : token.end + 1]
        return text if token.token_type in _QUOTED or text.startswith("$") else change(text)

    tokens = _tokens(sql)
    ends = [0, *(token.end + 1 for token in tokens)]
    changed = [sql[end : token.start] + written(token) for end, token in zip(ends, tokens, strict=False)]
    return "".join(changed) + sql[ends[-1] :]


@lru_cache(maxsize=1)
def _outcome(sql: str) -> Any:
    """Return what a statement means, without positions; of an error its code, and its words without those quoted."""
    try:
        return _meaning(parse_statement(prepare_text(sql), "MDY"))
    except Error as error:
        return error.sqlstate, error.message.partition(' at or near "')[0].lower()


def _meaning(part: Any) -> Any:
    if isinstance(part, exp.Identifier):
        return part.name if part.quoted else part.name.lower(), part.quoted
    if isinstance(part, exp.Literal):
        return type(part), part.name if part.is_string else part.name.lower(), part.is_string
    if isinstance(part, exp.Expr):
        return type(part), {key: _meaning(value) for key, value in part.args.items() if value}
    if is_dataclass(part):
        kept = (field.name for field in fields(part) if "position" not in field.name and field.name != "padded")
        return type(part), {name: _meaning(getattr(part, name)) for name in kept}
    if isinstance(part, str):
        return _words(part)
    if isinstance(part, tuple) and len(part) > 1 and isinstance(part[-1], int):
        part = part[:-1]  # the position of a name or number
    return [_meaning(each) for each in part] if isinstance(part, tuple | list) else part


def _words(text: str) -> Any:
    """Return the tokens of a text that a statement keeps: they are in one case unless quoted."""
    try:
        tokens = tokenize(text)
    except Error:
        return text
    return [
        word
        for token in tokens
        for word in ([token.text] if token.token_type in _QUOTED else token.text.lower().split())
    ]


def _check(sql: str, separators: Sequence[str]) -> None:
    expected, gaps = _outcome(sql), list(_gaps(sql))
    for separator in separators:
        changed = _with(sql, gaps, separator)
        assert _outcome(changed) == expected, changed


def test_comments_may_stand_anywhere() -> None:
    """Some statements have one of the separators everywhere: more of those that `TokenReader` reads than queries."""
    separators = [*BLANKS, *COMMENTS]
    queries = [sql for sql in _statements() if _tokens(sql)[0].token_type == TokenType.SELECT]
    others = [sql for sql in _statements() if _tokens(sql)[0].token_type != TokenType.SELECT]
    for number, sql in enumerate([*others[::6], *queries[::30]]):
        _check(sql, [separators[number % len(separators)]])


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("part", range(4))
def test_comments_may_stand_anywhere_in_all(part: int) -> None:
    """Every statement has a comment everywhere, of several kinds in turn, and its words in another case."""
    for number, sql in enumerate(_statements()[part::4]):
        _check(sql, [COMMENTS[number % len(COMMENTS)]])
        changed = _in_case(sql, (str.upper, str.lower, str.swapcase)[number % 3])
        assert _outcome(changed) == _outcome(sql), changed


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_comment_may_stand_in_any_one_place() -> None:
    """A comment in one place only, of each statement with another first and second word."""
    for sql in {tuple(token.text.upper() for token in _tokens(sql)[:2]): sql for sql in _statements()}.values():
        expected = _outcome(sql)
        for place in _gaps(sql):
            changed = _with(sql, [place], COMMENTS[0])
            assert _outcome(changed) == expected, changed


@pytest.mark.parametrize(
    ("written", "same"),
    [
        ("/* of a source */ CREATE /* source */ SOURCE s (a int) WITH (connector = 'datagen')", None),
        ("CREATE MATERIALIZED VIEW v AS SELECT a FROM t EMIT ON WINDOW CLOSE -- comment", None),
        ("CREATE MATERIALIZED VIEW v WITH (backfill_rate_limit = 1) -- c\n AS SELECT a FROM t -- d", None),
        (
            "CREATE MATERIALIZED VIEW v EMIT ON WINDOW CLOSE AS SELECT a FROM t -- c",
            "CREATE MATERIALIZED VIEW v AS SELECT a FROM t EMIT ON WINDOW CLOSE",
        ),
        ("CREATE SINK s AS SELECT a FROM t EMIT ON WINDOW CLOSE /* x */ WITH (connector = 'blackhole')", None),
        ("CREATE TABLE c AS SELECT a FROM t WITH NO DATA -- c", None),
        ("CREATE TABLE c AS SELECT a FROM t WITH /* c */ DATA", None),
        (
            "CREATE TABLE c (a /* c */ int /* d */, b numeric (10 /* e */, 2))",
            "CREATE TABLE c (a int, b numeric(10, 2))",
        ),
        ("CREATE SOURCE s (a int) WITH (connector /* c */ = E'x' /* d */, fields . /* e */ a . kind = 'random')", None),
        ("CREATE FUNCTION f(a double /* c */ precision) RETURNS int -- d\n LANGUAGE SQL RETURN 1 -- e", None),
        ("CREATE DOMAIN d AS int NOT NULL -- c", None),
        ("COPY t FROM STDIN WHERE a > 1 ; -- c", None),
        ("VACUUM (FULL, ANALYZE off) t (a), u -- c", None),
        ("SELECT 'a' ||/* c */ b, c::/* d */regtype[], '$1', a$1", None),
        ("/* a /* b */ don't */ SELECT '$1'", "SELECT '$1'"),
    ],
)
def test_examples(written: str, same: str | None) -> None:
    plain = "".join(_without_comments(written)) if same is None else same
    assert _outcome(written) == _outcome(plain)
    assert not isinstance(_outcome(written)[0], str), _outcome(written)


def _without_comments(sql: str) -> Iterator[str]:
    for before, after in pairwise([None, *_tokens(sql)]):
        assert after is not None
        yield " " * (before is not None and before.end + 1 < after.start) + sql[after.start : after.end + 1]


def test_the_query_of_a_function_may_end_with_a_comment() -> None:
    made: Any = parse_statement("CREATE FUNCTION f() RETURNS int LANGUAGE SQL AS 'VALUES (1); -- c'")
    assert made.body == "* FROM (VALUES (1)) AS query"


def test_upper_case_names_of_rows_are_folded() -> None:
    """The column of a function in FROM without a list of columns has the folded name of the table."""
    written: Any = parse_statement("SELECT e FROM t, jsonb_array_elements(j) AS E")
    assert written.tree.find(exp.Unnest).args["alias"].columns[0].name == "e"
