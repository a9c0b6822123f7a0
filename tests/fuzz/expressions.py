"""Random expressions of a kind over columns. What is here has one value in PostgreSQL, whatever the plan."""

from __future__ import annotations

import random
import re

from .values import LITERAL_TYPE, TYPES, typed

Columns = dict[str, str]  # what a column is called where it is used, and its kind

KINDS = tuple(dict.fromkeys(TYPES.values()))
# A float that may differ in its last digits: it is shown, and nothing is decided by it.
APPROXIMATE = "approximate"
# What can be a key. jsonb is left out: its equality differs, as the README says.
EQUAL = tuple(kind for kind in KINDS if kind != "jsonb")
# What can be sorted to the same order; bytea and bool have no min() and max() in PostgreSQL 15.
SORTED = tuple(kind for kind in EQUAL if kind not in ("bytea",))
EXTREMAL = tuple(kind for kind in SORTED if kind != "bool")
INTEGERS = ("smallint", "int", "bigint")

# Expressions by the kind they give; `{kind}` is any expression of that kind, `{=kind}` a literal.
TEMPLATES: dict[str, tuple[str, ...]] = {
    "smallint": ("abs({smallint})", "({bool})::int::smallint"),
    "int": (
        "{int} + {int}", "{int} - {int}", "{int} * 2", "{int} / nullif({int}, 0)", "{int} % 3", "abs({int})",
        "length({text})", "strpos({text}, 'b')", "octet_length({text})", "extract(year FROM {date})::int",
        "({date} - {date})", "cardinality({int[]})", "array_length({text[]}, 1)", "({int[]})[1]", "({bool})::int",
        "({smallint})::int", "array_position({int[]}, 1)", "round({numeric})::int", "ascii({text})",
        "extract(hour FROM {timestamp})::int", "length({bytea})", "{int} & 3", "-{int}", "gcd({int}, 6)",
    ),
    "bigint": ("({int})::bigint", "{bigint} + {int}", "{bigint} - 1", "{bigint} % 7", "abs({bigint})", "{bigint} / 2"),
    "numeric": (
        "{numeric} + {numeric}", "{numeric} - {numeric}", "{numeric} * 2", "round({numeric}, 1)", "trunc({numeric})",
        "ceil({numeric})", "floor({numeric})", "abs({numeric})", "({int})::numeric", "extract(month FROM {date})",
        "-{numeric}", "({numeric})::numeric(12,1)", "{numeric} + {int}",
    ),
    "real": ("({int})::real", "abs({real})", "-{real}"),
    "double": (
        "{double} + {double}", "{double} * 2", "({int})::double precision", "abs({double})", "floor({double})",
        "({real})::double precision", "{double} / 4", "ceil({double})",
    ),
    "bool": (
        "NOT {bool}", "{bool} AND {bool}", "{bool} OR {bool}", "({bool}) IS TRUE", "({bool}) IS NOT FALSE",
        "{text} LIKE '%b%'", "{text} LIKE 'a%'", "{text} ~ '[a-b]'", "({bool}) IS UNKNOWN", "{int} > {bigint}",
        "{numeric} <= {int}", "{date} < {timestamp}", "{int} = ANY({int[]})", "{int[]} @> {int[]}",
        "starts_with({text}, 'a')", "{int} = ALL({int[]})", "{jsonb} @> '{\"a\": 1}'::jsonb", "{text} ILIKE 'A%'",
    ),
    "text": (
        "upper({text})", "lower({text})", "{text} || {text}", "substring({text} FROM 2 FOR 1)", "left({text}, 1)",
        "right({text}, -1)", "replace({text}, 'b', 'BB')", "lpad({text}, 3, '*')", "trim({text})",
        "concat({text}, {int}, {bool})", "({int})::text", "({bool})::text", "({date})::text", "({timestamp})::text",
        "to_char({timestamp}, 'YYYY-MM-DD HH24:MI')", "split_part({text}, 'b', 1)", "md5({text})",
        "encode({bytea}, 'hex')", "({jsonb}) ->> 'a'", "array_to_string({int[]}, ',', '*')", "({text[]})[1]",
        "reverse({text})", "repeat({text}, 2)", "({time})::text", "({bigint})::text", "initcap({text})",
        "concat_ws('-', {text}, {text})", "jsonb_typeof({jsonb})", "quote_literal({text})", "({interval})::text",
        "({int[]})::text", "({text[]})::text",
    ),
    "bytea": ("decode(md5({text}), 'hex')", "sha256({bytea})"),
    "date": ("{date} + 1", "({timestamp})::date", "date_trunc('month', {timestamp})::date"),
    "time": ("({timestamp})::time",),
    "timestamp": (
        "{timestamp} + INTERVAL '1 minute'", "date_trunc('hour', {timestamp})", "({date})::timestamp",
        "{timestamptz} AT TIME ZONE 'Europe/Warsaw'", "{timestamp} - INTERVAL '1 day'", "{date} + {time}",
    ),
    "timestamptz": ("{timestamptz} + INTERVAL '1 hour'", "{timestamp} AT TIME ZONE 'America/New_York'"),
    "interval": ("{interval} + INTERVAL '1 hour'", "{interval} * 2"),
    "jsonb": ("({jsonb}) -> 'a'", "to_jsonb({int})", "jsonb_build_object('k', {int}, 't', {text})", "({jsonb}) -> 0"),
    "int[]": ("array_append({int[]}, {int})", "{int[]} || {int[]}", "ARRAY[{int}, {int}]", "array_remove({int[]}, 1)"),
    "text[]": ("string_to_array({text}, 'b')", "ARRAY[{text}]", "array_append({text[]}, {text})"),
}  # fmt: skip

_OF_ANY = ("coalesce({k}, {k})", "CASE WHEN {bool} THEN {k} ELSE {k} END", "CASE WHEN {bool} THEN {k} END")
_OF_EQUAL = ("nullif({k}, {k})", "CASE {k} WHEN {=k} THEN {k} ELSE {k} END")
_OF_SORTED = ("greatest({k}, {k})", "least({k}, {k}, {=k})")
_TESTS = ("{k} IS NULL", "{k} IS NOT NULL")
_EQUALITIES = (
    "{k} = {k}", "{k} <> {=k}", "{k} IS DISTINCT FROM {k}", "{k} IS NOT DISTINCT FROM {=k}", "{k} IN ({=k}, {=k})",
    "{k} NOT IN ({=k}, {k})", "{k} = {=k}",
)  # fmt: skip
_COMPARISONS = ("{k} < {k}", "{k} >= {=k}", "{k} BETWEEN {=k} AND {=k}", "{k} > {=k}", "NOT {k} <= {=k}")
_HOLE = re.compile(r"\{(=?)([a-z]+(?:\[\])?)\}")


def operand(text: str) -> str:
    """An expression as part of another."""
    return text if re.fullmatch(r"\w+(\.\w+)*", text) else f"({text})"


class Expressions:
    """Deterministic for the random numbers it is given."""

    def __init__(self, chance: random.Random, extremes: bool) -> None:
        self.random = chance
        self.extremes = extremes

    def literal(self, kind: str) -> str:
        return typed(self.random, kind, self.extremes)

    def column(self, columns: Columns, *kinds: str) -> str | None:
        """A column of one of these kinds, if there is one."""
        fitting = [column for column, kind in columns.items() if kind in kinds]
        return self.random.choice(fitting) if fitting else None

    def of(self, kind: str, columns: Columns, depth: int = 2) -> str:
        column = self.column(columns, kind)
        if depth <= 0 or self.random.random() < 0.35:
            if column and self.random.random() < 0.85:
                return column
            return f"NULL::{LITERAL_TYPE[kind]}" if self.random.random() < 0.1 else self.literal(kind)
        if column and self.random.random() < 0.3:
            return column
        choices = list(TEMPLATES[kind]) * 2 + list(_OF_ANY)
        choices += list(_OF_EQUAL) * (kind in EQUAL) + list(_OF_SORTED) * (kind in SORTED)
        return self._filled(self.random.choice(choices), kind, columns, depth - 1)

    def condition(self, columns: Columns, depth: int = 1) -> str:
        """A condition that mostly looks at a column."""
        known = {column: kind for column, kind in columns.items() if kind != APPROXIMATE}
        if not known or self.random.random() < 0.25:
            return self._filled(self.random.choice(TEMPLATES["bool"]), "bool", columns, depth)
        kind = known[self.random.choice(list(known))]
        choices = list(_TESTS) + list(_EQUALITIES) * (kind in EQUAL) + list(_COMPARISONS) * (kind in SORTED)
        return self._filled(self.random.choice(choices), kind, columns, depth - 1)

    def _filled(self, template: str, kind: str, columns: Columns, depth: int) -> str:
        def fill(hole: re.Match[str]) -> str:
            of = kind if hole[2] == "k" else hole[2]
            return self.literal(of) if hole[1] else operand(self.of(of, columns, depth))

        return _HOLE.sub(fill, template)
