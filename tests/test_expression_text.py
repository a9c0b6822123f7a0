"""The text by which the planner tells expressions apart: calls that differ in one part have different texts."""

from __future__ import annotations

from itertools import product

from sparkwave.planner.build.builder import text
from sparkwave.planner.parse.trees import parse_tree

CALLS = (
    "sum(a)", "sum(b)", "sum(DISTINCT a)", "count(a)", "array_agg(a)", "array_agg(a ORDER BY b)",
    "array_agg(a ORDER BY b DESC)", "array_agg(a ORDER BY b NULLS FIRST)", "first_value(a)", "last_value(a)",
    "nth_value(a, 1)", "nth_value(a, 2)", "lag(a)", "lag(a, 2)", "lag(a, 2, 0)", "lead(a)", "rank()", "dense_rank()",
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY a)", "percentile_cont(0.5) WITHIN GROUP (ORDER BY a DESC)",
    "percentile_disc(0.5) WITHIN GROUP (ORDER BY a)", "mode() WITHIN GROUP (ORDER BY a)",
)  # fmt: skip
MODIFIERS = ("", " FILTER (WHERE a > 1)", " FILTER (WHERE a > 2)", " IGNORE NULLS", " RESPECT NULLS")
FRAMES = ("1 PRECEDING AND CURRENT ROW", "2 PRECEDING AND CURRENT ROW", "1 PRECEDING AND UNBOUNDED FOLLOWING")
EXCLUDED = ("", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES")
WINDOWS = (
    "", " OVER ()", " OVER (ORDER BY a)", " OVER (ORDER BY a DESC)", " OVER (ORDER BY a NULLS FIRST)",
    " OVER (ORDER BY b)", " OVER (PARTITION BY b)", " OVER (PARTITION BY b ORDER BY a)",
    *(f" OVER (ORDER BY a {kind} BETWEEN {frame}{excluded})" for kind, frame, excluded in product(
        ("ROWS", "RANGE", "GROUPS"), FRAMES, EXCLUDED)),
)  # fmt: skip
TYPES = ("int", "bigint", "numeric", "numeric(10,2)", "real", "float8", "varchar", "varchar(3)", "date", "timestamp",
         "timestamptz", "int[]", "numeric(5,1)[]")  # fmt: skip
EXPRESSIONS = (
    *("".join(parts) for parts in product(CALLS, MODIFIERS, WINDOWS)),
    *(f"a::{type_}" for type_ in TYPES),
    "a -> 'x'", "a ->> 'x'", "a #> '{x}'", "a #>> '{x}'", "a ~ 'x'", "a ~* 'x'", "a LIKE 'x'", "a ILIKE 'x'",
    "a LIKE 'x' ESCAPE '!'", "a SIMILAR TO 'x'", "a SIMILAR TO 'x' ESCAPE '!'", "trim(a)", "trim(LEADING FROM a)",
    "trim(TRAILING FROM a)", "a = ANY(b)", "a = ALL(b)", "extract(year FROM a)", "extract(isoyear FROM a)", "a[1]",
    "a[1:2]", "a[:2]", "a[1:]", "a BETWEEN 1 AND 2", "a BETWEEN SYMMETRIC 1 AND 2", "regexp_match(a, 'x')",
    "regexp_match(a, 'x', 'i')", "a IS DISTINCT FROM b", "a IS NOT DISTINCT FROM b",
)  # fmt: skip


def test_expressions_that_differ_have_texts_that_differ() -> None:
    texts: dict[str, str] = {}
    for expression in EXPRESSIONS:
        tree = parse_tree(f"SELECT {expression} AS x FROM t").selects[0].unalias()
        assert texts.setdefault(text(tree), expression) == expression
    assert len(texts) > 3000
