"""The scripts of tests/scripts answer what they say, by both query protocols and with views on either engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from postgres import Postgres
from servers import Server
from sql_scripts import DIFFERS, REFUSED, SCRIPTS, WORKS, Execute, extended, read, refreshing, run, schema_of, simple

PAGE = Path(__file__).parent.parent / "docs" / "compatibility.md"

INTRODUCTION = """\
# Compatibility

What a RisingWave or PostgreSQL user types, and what becomes of it. Every line is proven: its name leads to the script
that runs it and compares what it answers, by the simple and the extended protocol, and once more with every view filled
and maintained on Spark. Where it says so, PostgreSQL 15 runs the same script and answers the same. This page is written
by [a test](../tests/test_sql_scripts.py) from those scripts.

In a view there is NULL where PostgreSQL raises an error for a row (a division by zero, an overflow, text that is no
number) or for a group's aggregate, and the view lives on; functions, operators, casts and aggregates are
[tried with the limits of their types](../tests/test_extreme_values.py).
[Such rows are counted](jobs.md#rows-whose-expressions-fail). The exception is `sum` and `avg` of numerics
with a total beyond 1e19: that view is set apart, [with its reason](jobs.md#what-cannot-follow).

RisingWave's own end-to-end tests cannot be downloaded here. Of about 130 of their files 1637 statements were copied,
those that looked doubtful, and run by hand on 29 November 2026; where these pages follow PostgreSQL, its answer is
expected. By where they stand in RisingWave's `e2e_test`, that many gave what is expected:

| Statements of | alike | tried |
| --- | ---: | ---: |
| ddl (with users, secrets, subscriptions) | 475 | 540 |
| batch (functions, types, aggregates, catalogs) | 417 | 478 |
| streaming, backfill, dml, udf, error_ui | 377 | 426 |
| sink, source (datagen), ttl, transaction, and queries of all of them | 144 | 154 |
| batch_refresh (`refresh.interval.sec`) | 39 | 39 |
| all | 1452 | 1637 |

That is 89 % of the doubtful ones. Whole files were measured on the same day: of the 400 of `batch` and `streaming` that
need no other service 144, drawn at random but for some long ones, were copied without their comments, and each was run
in a database of its own. Of their 851 queries 691 (81 %) gave the same text, and 722 (85 %) the same values, where the
text of a time or numeric is PostgreSQL's (`+00` for `+00:00`), or rows come in another order. Of the 129 others

- 29 stand in files of old versions, and RisingWave answers them otherwise today: `(NULL,1)` for a row, server 8.3;
- 26 read the internal tables of RisingWave's executors;
- 19 follow PostgreSQL: no NULL in a primary key, `int2vector`, small floats as `1e-05`; ALTER MATERIALIZED VIEW … AS;
- 55 needed what was not there: map 21 and EMIT ON WINDOW CLOSE over a view 4, which are there now; `pgp_sym_encrypt`
  of bytea 9, which pgcrypto does not have; digits of decimals 7, arrays of arrays of different lengths 3, `rw_vnode` 3.

Of files about maps, encryption, `arg_min`, `batch_expr_strict_mode`, subscriptions and EMIT ON WINDOW CLOSE, seven
were copied later that day, and parts of eight: 16 of their 59 queries gave RisingWave's rows before these were there,
54 give them now.

Outside `batch` and `streaming` there are 204 files that need no other service; of these, in a random order (seed 31),
the first 54 were copied without their comments, but those about licences, with millions of rows or with hardly a query;
in four a record was changed or left out. Of their 255 queries 205 (80 %) gave RisingWave's rows at first, 213 (84 %)
after what differed was looked at; of the statements that succeed 763 of 815, of those that fail 82 of 96, with its
words where they are asked for 40 of 62. Of the other 42 queries 11 are about compaction groups of RisingWave's storage,
7 about structs without fields, 6 about tables with map.

Of 52 files about watermarks over joins, temporal joins, sinks into tables, structs that change, SQL functions,
subqueries and clients' catalogs the doubtful parts were copied, and such queries made into views beside them: 110 of
139 queries (79 %) gave RisingWave's rows at first, 117 (84 %) now. On 30 November the doubtful parts of 31 more files,
mostly newer ones (EMIT ON WINDOW CLOSE over first rows, functions of one name, structs that change), were copied: 56 of
75 queries (75 %) gave RisingWave's rows.

Later that day 37 files, old and new ones, were copied whole but for repeated records, and run by a program. Of the 207
queries in 26 files of `batch` and `streaming` 187 (90 %) gave RisingWave's rows, and 9 others PostgreSQL's (spaces in
json, intervals times reals, long numbers in jsonb); of the 51 queries in 11 files of `ddl`, `sink` and `udf` 47 (92 %).
Of the statements 325 of 343 succeeded that do, and 47 of 48 failed that do.

At night 33 more files of `batch` and `streaming`, most of them drawn, were copied so: of their 294 queries, without
the 155 of `array_concat`, 288 (98 %) gave RisingWave's rows, and 2 others PostgreSQL's. Of 17 files of `ddl` and `sink`
82 of 101 queries gave them at first, 87 (86 %) now; 10 of the others are SHOW and DESCRIBE in a form that RisingWave no
longer has. What differs in all of these:

- types that are not there: int256, uint256, vector, variant, nanoseconds of timestamps; NaN, infinity and numbers
  beyond 19 digits of decimals;
- the contents of internal state tables and of the storage's catalogs, `now()` in `generate_series` of a view, structs
  without fields, fields whose names differ only in case;
- `rw_vnode`, `pgp_sym_encrypt` of bytea, which is `pgp_sym_encrypt_bytea` as in pgcrypto;
- REPLACE SINK, `auto.schema.change`, ALTER SINK CONNECTOR WITH of other connectors than Kafka's, ALTER COMPACTION
  GROUP, SETTINGS, `GRANT role … WITH INHERIT`, audit logs; DROP OWNED drops objects, as in PostgreSQL;
- `secret name` as an expression, watermarks of other expressions than a column minus a delay, several watermarks,
  months in TUMBLE and HOP, `_changelog_row_id` of a view that leaves it out, the last digits of `lgamma`, numerics of
  different scales in one array, which all get the largest (`{1.50,2.25}`);
- default privileges of a schema stay where REVOKE names no schema, and PUBLIC may call new functions, as in PostgreSQL;
- accepted, where RisingWave refuses it: `ARRAY[]` without a type, `SET transaction_isolation TO 'read committed'`,
  dropping a column of a sink's target that the sink does not write;
- texts: an error has no chain of causes (`error_ui`), and definitions of indexes and views have PostgreSQL's form.
"""

_SIGNS = {WORKS: "works", DIFFERS: "**differs**", REFUSED: "refused"}

scripts = pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)


@pytest.mark.parametrize(
    ("path", "protocol"),
    [
        pytest.param(
            path,
            protocol,
            id=f"{path.stem}-{protocol.__name__}",
            # For every commit each by one of them.
            marks=[pytest.mark.long] if number % 2 or protocol.__name__ in read(path).long else [],
        )
        for place, path in enumerate(SCRIPTS)
        for number, protocol in enumerate((simple, extended), start=place)
    ],
)
def test_script(in_process_server: Server, path: Path, protocol: Callable[[psycopg.Connection[Any]], Execute]) -> None:
    with in_process_server.connect() as connection:
        run(path, protocol(connection))
        # Each change of the schema takes the longer the more relations there are.
        connection.execute(f"RESET ALL; DROP SCHEMA {schema_of(path)} CASCADE".encode())


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    started = Postgres()
    yield started
    started.stop()


@pytest.mark.parametrize("path", [path for path in SCRIPTS if read(path).on_postgres], ids=lambda path: path.stem)
def test_postgresql_answers_the_same(postgres: Postgres, path: Path) -> None:
    with postgres.connect() as connection:
        run(path, refreshing(connection, path))


@pytest.mark.long
@pytest.mark.timeout(1800)
@scripts
def test_script_with_views_on_spark(shared_server: Server, path: Path) -> None:
    with shared_server.connect() as connection:
        for engine in ("backfill_engine", "streaming_engine"):
            connection.execute(f"ALTER SYSTEM SET {engine} = spark")
        try:
            run(path, simple(connection))
        finally:
            for engine in ("backfill_engine", "streaming_engine"):
                connection.execute(f"ALTER SYSTEM SET {engine} TO DEFAULT")


def test_page_is_true(request: pytest.FixtureRequest) -> None:
    sections = (
        line
        for path in SCRIPTS
        for line in (f"## {read(path).title}", "", *_said(path), "| what | | |", "|---|---|---|", *_rows(path), "")
    )
    page = "\n".join([INTRODUCTION, *sections])
    if request.config.getoption("--update-golden"):
        PAGE.write_text(page)
    assert PAGE.read_text() == page


def _said(path: Path) -> list[str]:
    return ["PostgreSQL answers the same.", ""] if read(path).on_postgres else []


def _rows(path: Path) -> list[str]:
    link = f"../tests/scripts/{path.name}"
    return [f"| [{f.what}]({link}) | {_SIGNS[f.state]} | {f.why} |" for f in read(path).features]


def test_a_script_that_proves_nothing_is_no_script(tmp_path: Path) -> None:
    for text in (
        "# T\n# works: all\n",
        "# T\n# refused: all | why\nstatement ok\nSELECT 1\n",
        "# T\nquery\nSELECT 1\n",
    ):
        (tmp_path / "bad.slt").write_text(text)
        read.cache_clear()
        with pytest.raises(ValueError, match=r"bad\.slt"):
            read(tmp_path / "bad.slt")
