"""Definitions are stored as one line that means the same."""

from __future__ import annotations

import pytest

from sparkwave.planner.parse.normal_text import normalised
from sparkwave.planner.parse.statement import parse_statement
from sparkwave.planner.statements import CreateStreaming, CreateView


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "select a , -- why\n  count (*)  filter(where b>1)\n\tfrom t\nleft join u on t.x=u.x;",
            "SELECT a, count (*) FILTER(WHERE b>1) FROM t LEFT JOIN u ON t.x = u.x",
        ),
        ("select ' -- a  b ', $$x  y$$, E'\\'  ' from t", "SELECT ' -- a  b ', $$x  y$$, E'\\'  ' FROM t"),
        ('select "From", t . "Select" as select from t', 'SELECT "From", t."Select" AS SELECT FROM t'),
        ("select left(a, 1), right (a,2)", "SELECT left(a, 1), right (a, 2)"),
        ("select f(a, ',')||'(' ||b", "SELECT f(a, ',')||'(' ||b"),
        ("select a::numeric(10,2), x[1:2]", "SELECT a::numeric(10, 2), x[1:2]"),
        (
            "select sum(a) over (partition  by b order\nby c rows between 1 preceding and current row)",
            "SELECT sum(a) OVER (PARTITION BY b ORDER BY c ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        ),
        ("select 'a'\n  'b'", "SELECT 'a'\n'b'"),
        ("select 1 /* a /* b */ c */ as x", "SELECT 1 AS x"),
        ("select a from t /* c */ emit on window close", "SELECT a FROM t EMIT ON WINDOW CLOSE"),
    ],
)
def test_text(text: str, expected: str) -> None:
    assert normalised(text) == expected
    assert normalised(expected) == expected


@pytest.mark.parametrize(
    "statement",
    [
        "create materialized view v as\nselect a, count(*) as n -- rows\nfrom t group by a emit on window close",
        "create view v as select case when a then 'x' else 'y' end as c, array[1,2][1] from t where a in (1,2)",
        "create materialized view v as with c as materialized (select * from t) select * from c, lateral (select 1) l",
        "create view v as select interval '1 day', date '2024-01-01', x at time zone 'UTC', u.* from u",
        "create index i on t (a desc nulls last, b) include (c) distributed by (a)",
        "create sink s as select a from t with (connector='blackhole', type='append-only')",
    ],
)
def test_a_definition_is_read_back_as_itself(statement: str) -> None:
    made = parse_statement(statement)
    assert isinstance(made, CreateView | CreateStreaming)
    line = normalised(made.definition)
    again = parse_statement(line)
    assert isinstance(again, CreateView | CreateStreaming)
    assert "\n" not in line
    assert normalised(again.definition) == line
    assert getattr(again, "query", None) == getattr(made, "query", None)
