"""Hostile input from a seed: statements and messages of real sessions, broken in the ways that parsers trip over."""

from __future__ import annotations

import random
import re
import struct
from functools import lru_cache
from pathlib import Path

import sql_scripts
from raw_client import message

_TOKEN = re.compile(r"\s+|'(?:[^']|'')*'|\"[^\"]*\"|\w+|::|<=|>=|<>|\|\||.", re.DOTALL)

# What tokens are replaced with, or come between them.
ODD_TOKENS = (
    "'", '"', "$$", "$a$", "E'", "U&'", "/*", "*/", "--", ";", "(", ")", "[", "]", "{", "}", ",", ".", "..",
    ":", "::",
    "$1", "$0", "$99999", "$", "@", "\\", "%", "?", "=", "=>", "->", "->>", "#>", "@>", "||", "<>", "~", "!~*",
    "0", "-1", "00", "1e999", "1e-999", "1e", "0x", "0xff", "1_000", ".5.", "9" * 19, "9" * 20, "9" * 400,
    "9" * 5000,
    "-9223372036854775808", "1." + "9" * 80, "NaN", "'NaN'", "'infinity'", "NULL", "''", "' '", "DEFAULT", "*",
    "é", "ſ", "İ", "ß", "٣", "²", "½", "名", "\u200b", "\u00a0", "\u2028", "\ufeff", "\u202e", "e\u0301", "😀",
    "\ue000", "\ud7ff", "\uffff", "\U0010ffff", "\x01", "\x0b", "\x1a", "\x7f", "\x85", "\t", "\r", "\n",
    "'\\'", "'\n'",
    "'٣'", "'2026-99-99'::date", "'24:61'::time", "'{1,2'::int[]", "'{\"a\":'::jsonb", "'x'::int",
    "interval '1 fortnight'",
    "SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "AS", "AND", "NOT", "IN", "CASE", "END", "OVER",
    "WITH", "LATERAL",
    "JOIN", "ON", "USING", "UNION ALL", "EXCEPT", "INTERVAL", "ARRAY[", "ROW(", "STRUCT", "CAST(",
    "EXTRACT(", "unnest(",
    "count(*)", "now()", "tumble(", "FILTER (", "WITHIN GROUP", "VALUES", "(SELECT 1)", "EXISTS", "ALL",
    "ANY(", "IS",
    "int", "int[]", "numeric(1000,999)", "varchar(0)", "timestamptz", "struct<a int>", "map(varchar,int)", "jsonb",
    "CREATE", "TABLE", "MATERIALIZED", "VIEW", "INTO", "SET", "TO", "EMIT ON WINDOW CLOSE", "PRIMARY KEY",
    "x" * 100_000,
)  # fmt: skip

# What nests, with the depths at which it is tried.
_NESTS = (
    ("(", ")"), ("(SELECT ", ")"), ("NOT ", ""), ("- ", ""), ("CASE WHEN ", " THEN 1 END"), ("ARRAY[", "]"), ("[", "]"),
    ("abs(", ")"), ("CAST(", " AS int)"), ("(SELECT * FROM ", ") AS x"), ("/*", "*/"), ("", "::int"), ("", "[1]"),
    ("", " + 1"), ("", " AND 1"), ("", " UNION SELECT 1"), ("'", "'"), ("EXPLAIN ", ""), ("row(", ")"),
    ("struct<a ", ">"), ("", ", 1"), ("", "; SELECT 1"),
)  # fmt: skip
_DEPTHS = (2, 50, 500, 3000)


@lru_cache
def statements() -> tuple[str, ...]:
    """The statements of the scripts and of the queries."""
    scripts = [
        record.sql for path in sql_scripts.SCRIPTS for f in sql_scripts.read(path).features for record in f.records
    ]
    queries = [
        part.strip()
        for path in sorted((Path(__file__).parent / "queries").rglob("*.sql"))
        for part in path.read_text().split(";")
        if part.strip()
    ]
    return tuple(dict.fromkeys(scripts + queries))


def mutated(chance: random.Random, sql: str | None = None) -> str:
    """A statement, by default any, with one to four things wrong."""
    tokens = _TOKEN.findall(sql) if sql else _tokens(chance)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        tokens = chance.choice(_MUTATIONS)(chance, tokens) or ["SELECT"]
    return "".join(tokens).replace("\0", "")


def _tokens(chance: random.Random) -> list[str]:
    return _TOKEN.findall(chance.choice(statements()))


def _span(chance: random.Random, tokens: list[str], longest: int = 8) -> slice:
    start = chance.randrange(len(tokens))
    return slice(start, start + chance.randint(1, longest))


def _delete(chance: random.Random, tokens: list[str]) -> list[str]:
    span = _span(chance, tokens, 3)
    return tokens[: span.start] + tokens[span.stop :]


def _duplicate(chance: random.Random, tokens: list[str]) -> list[str]:
    span = _span(chance, tokens)
    return [*tokens[: span.stop], " ", *tokens[span], *tokens[span.stop :]]


def _swap(chance: random.Random, tokens: list[str]) -> list[str]:
    one, other = chance.randrange(len(tokens)), chance.randrange(len(tokens))
    swapped = list(tokens)
    swapped[one], swapped[other] = tokens[other], tokens[one]
    return swapped


def _replace(chance: random.Random, tokens: list[str]) -> list[str]:
    at = chance.randrange(len(tokens))
    return [*tokens[:at], chance.choice(ODD_TOKENS), *tokens[at + 1 :]]


def _insert(chance: random.Random, tokens: list[str]) -> list[str]:
    at = chance.randrange(len(tokens) + 1)
    return [*tokens[:at], " ", chance.choice(ODD_TOKENS), " ", *tokens[at:]]


def _cut(chance: random.Random, tokens: list[str]) -> list[str]:
    text = "".join(tokens)
    return _TOKEN.findall(text[: chance.randrange(len(text) + 1)])


def _splice(chance: random.Random, tokens: list[str]) -> list[str]:
    span, other = _span(chance, tokens), _tokens(chance)
    return [*tokens[: span.start], " ", *other[_span(chance, other)], " ", *tokens[span.stop :]]


def _nest(chance: random.Random, tokens: list[str]) -> list[str]:
    (before, after), depth, span = chance.choice(_NESTS), chance.choice(_DEPTHS), _span(chance, tokens, 3)
    return [*tokens[: span.start], before * depth, *tokens[span], after * depth, *tokens[span.stop :]]


_MUTATIONS = (*(_delete, _duplicate, _swap, _replace, _insert, _cut, _splice) * 3, _nest)


def broken(chance: random.Random, messages: list[bytes]) -> bytes:
    """The messages of a session as one stream of bytes with one to three things wrong."""
    messages = list(messages)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(messages))
        match chance.randrange(9):
            case 0:
                del messages[at]
            case 1:
                messages.insert(at, chance.choice(messages))
            case 2:
                other = chance.randrange(len(messages))
                messages[at], messages[other] = messages[other], messages[at]
            case 3:  # another length than it has
                length = chance.choice((0, 1, 3, 4, 5, 100, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 29))
                messages[at] = messages[at][:1] + struct.pack("!I", length) + messages[at][5:]
            case 4:  # half a message
                messages[at] = messages[at][: chance.randrange(len(messages[at]) + 1)]
            case 5:  # another code
                messages[at] = bytes([chance.randrange(256)]) + messages[at][1:]
            case 6:
                messages[at] = _noise(chance, messages[at])
            case 7:
                messages.insert(at, chance.randbytes(chance.randint(1, 200)))
            case 8:  # a body that does not fit, in a good frame
                body = _noise(chance, messages[at][5:])[: chance.randrange(len(messages[at]) + 1)]
                messages[at] = message(messages[at][:1], body)
        messages = messages or [b""]
    return b"".join(messages)


def _noise(chance: random.Random, data: bytes) -> bytes:
    """Some bytes changed."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4) if data else 0):
        changed[chance.randrange(len(data))] = chance.choice((0, 1, 0x7F, 0x80, 0xC3, 0xFF, chance.randrange(256)))
    return bytes(changed)
