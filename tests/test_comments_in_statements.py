"""Comments and white space may stand between any two words of a statement."""

from __future__ import annotations

import re

import pytest

from sparkwave.planner.parse.statement import parse_statement as parse


@pytest.mark.parametrize(
    "statement",
    [
        "/* of a source */ CREATE /* source */ SOURCE s (a int) WITH (connector = 'datagen')",
        "CREATE MATERIALIZED VIEW v AS SELECT a FROM t EMIT ON WINDOW CLOSE -- comment",
        "CREATE SINK s AS SELECT a FROM t EMIT ON WINDOW CLOSE /* x */ WITH (connector = 'blackhole')",
        "CREATE TABLE c AS SELECT a FROM t WITH NO DATA -- c",
        "CREATE TABLE c AS SELECT a FROM t WITH /* c */ DATA",
        "VACUUM (FULL, ANALYZE off) t (a), u",
    ],
)
def test_comments_may_stand_anywhere(statement: str) -> None:
    plain = re.sub(r"/\*.*?\*/|--.*", "", statement)
    parsed, without = parse(statement), parse(plain)
    assert type(parsed) is type(without)
    for part in ("emit_on_window_close", "with_data", "tag", "tables"):
        assert getattr(parsed, part, None) == getattr(without, part, None)
