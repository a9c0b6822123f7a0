"""Facts that pg_catalog and information_schema tell of relations: defaults, sizes, visibility, functions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from servers import Server

from sparkwave.catalog.stores import store
from sparkwave.planner.functions.scalar_functions import FUNCTIONS, INTERVAL_FIELDS, SQUARES, UNITS

Connection = psycopg.Connection[Any]


@pytest.fixture
def session(module_server: Server) -> Iterator[Connection]:
    with module_server.connect() as opened:
        yield opened


def test_defaults(module_server: Server, session: Connection) -> None:
    session.execute(
        """CREATE TABLE defaulted (k int PRIMARY KEY, n int DEFAULT 1 + 1, s varchar DEFAULT 'it''s',
           d date DEFAULT '2020-01-01', m numeric(10, 2) DEFAULT '1.5', t timestamptz DEFAULT now(), nothing int)"""
    )
    shown = [
        ("n", "1 + 1"), ("s", "'it''s'::character varying"), ("d", "'2020-01-01'::date"), ("m", "'1.5'::numeric"),
        ("t", "now()"),
    ]  # fmt: skip
    found = session.execute(
        "SELECT column_name, column_default FROM information_schema.columns WHERE table_name = 'defaulted' "
        "AND column_default IS NOT NULL ORDER BY ordinal_position"
    )
    assert [(name, text.lower().replace("current_timestamp", "now()")) for name, text in found] == shown
    found = session.execute(
        """SELECT attname, pg_get_expr(adbin, adrelid) FROM pg_attrdef
           JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum AND atthasdef
           WHERE adrelid = 'defaulted'::regclass ORDER BY adnum"""
    )
    assert [name for name, _ in found.fetchall()] == [name for name, _ in shown]
    described = module_server.psql("-c", r"\d defaulted").stdout
    assert "'it''s'::character varying" in described and "'2020-01-01'::date" in described
    session.execute("DROP TABLE defaulted")


def test_what_is_hidden_by_another_schema_is_not_visible(module_server: Server, session: Connection) -> None:
    session.execute("CREATE SCHEMA front; CREATE TABLE twice (a int); CREATE TABLE front.twice (b int)")
    visible = "SELECT oid::regclass::text, pg_table_is_visible(oid) FROM pg_class WHERE relname = 'twice' ORDER BY 1"
    assert session.execute(visible).fetchall() == [("front.twice", False), ("twice", True)]
    session.execute("SET search_path = front, public")
    assert session.execute(visible).fetchall() == [("public.twice", False), ("twice", True)]
    session.execute("SET search_path = front")
    assert session.execute(visible).fetchall() == [("public.twice", False), ("twice", True)]
    session.execute("RESET search_path")
    listed = module_server.psql("-At", "-c", "SET search_path = front, public", "-c", r"\dt").stdout
    assert "front|twice" in listed and "public|twice" not in listed
    # One of the same name in another database hides nothing.
    session.execute("CREATE DATABASE elsewhere")
    with module_server.connect(dbname="elsewhere") as other:
        other.execute("CREATE TABLE lone (a int)")
        session.execute("CREATE TABLE front.lone (a int); SET search_path = public, front")
        assert session.execute("SELECT pg_table_is_visible('front.lone'::regclass)").fetchone() == (True,)
        other.execute("DROP TABLE lone")
    session.execute("DROP DATABASE elsewhere; DROP SCHEMA front CASCADE; DROP TABLE twice")


def _files(server: Server) -> int:
    """Bytes of all Parquet files."""
    return sum(path.stat().st_size for path in Path(server.data).rglob("*.parquet"))


def test_sizes_are_those_of_the_files(module_server: Server, session: Connection) -> None:
    before = _files(module_server)
    sizes = """SELECT reltuples::bigint, relpages > 0, pg_relation_size(oid) = pg_table_size(relname::regclass),
               pg_total_relation_size(oid) FROM pg_class WHERE relname = 'sized'"""
    session.execute("CREATE TABLE sized (k int PRIMARY KEY, v varchar)")
    assert session.execute(sizes).fetchone() == (0, False, True, 0)
    session.execute("INSERT INTO sized SELECT n, 'row ' || n FROM generate_series(1, 50000) AS s(n)")
    added = _files(module_server) - before
    assert added > 10_000
    assert session.execute(sizes).fetchone() == (50_000, True, True, added)
    session.execute("INSERT INTO sized VALUES (-1, 'a'), (-2, 'b')")
    session.execute("DELETE FROM sized WHERE k = 7")
    session.execute("UPDATE sized SET v = 'c' WHERE k < 0")
    assert session.execute("SELECT reltuples FROM pg_class WHERE relname IN ('sized', 'sized_pkey')").fetchall() == [
        (50_001.0,),
        (50_001.0,),
    ]
    session.execute("DELETE FROM sized WHERE k > 40000")
    assert session.execute("SELECT n_live_tup FROM pg_stat_user_tables WHERE relname = 'sized'").fetchone() == (40_001,)
    star = session.execute("SELECT * FROM pg_class WHERE relname = 'sized'")
    names = [column.name for column in star.description or ()]
    assert (star.fetchone() or ())[names.index("reltuples")] == 40_001
    total, database = session.execute(
        "SELECT sum(pg_total_relation_size(oid)), pg_database_size('dev') FROM pg_class WHERE relkind IN ('r', 'm')"
    ).fetchone() or (0, 1)
    assert total == database > added
    shown = module_server.psql("-At", "-c", r"\dt+ sized").stdout
    assert " kB" in shown and "0 bytes" not in shown
    assert " kB" in module_server.psql("-At", "-c", r"\l+ dev").stdout
    session.execute("DROP TABLE sized")


@pytest.mark.long
def test_a_view_has_the_size_of_its_state_too(session: Connection) -> None:
    session.execute(
        "CREATE TABLE fed (k int, v int); INSERT INTO fed SELECT n, n % 9000 FROM generate_series(1, 9000) AS s(n)"
    )
    session.execute(
        "CREATE MATERIALIZED VIEW grown AS SELECT v + 1 AS w, max(k) FILTER (WHERE k > 0) AS top FROM fed GROUP BY v"
    )
    size = "SELECT pg_relation_size('grown') > 0, pg_total_relation_size('grown') >= pg_relation_size('grown')"
    assert session.execute(size).fetchone() == (True, True)
    session.execute("DROP TABLE fed CASCADE")


@pytest.mark.parametrize(
    ("bytes_", "shown"),
    [
        ("0", "0 bytes"), ("10239", "10239 bytes"), ("10240", "10 kB"), ("-20000", "-20 kB"), ("10485247", "10239 kB"),
        ("10485248", "10 MB"), ("1073741824", "1024 MB"), ("1000000000000000", "909 TB"), ("1e17::numeric", "89 PB"),
    ],
)  # fmt: skip
def test_size_pretty(session: Connection, bytes_: str, shown: str) -> None:
    assert session.execute(f"SELECT pg_size_pretty({bytes_})").fetchone() == (shown,)


def test_comments_on_indexes(module_server: Server, session: Connection) -> None:
    session.execute("CREATE TABLE said (k int PRIMARY KEY); COMMENT ON INDEX said_pkey IS 'the key'")
    asked = "SELECT obj_description('said_pkey'::regclass, 'pg_class'), obj_description('said'::regclass, 'pg_class')"
    assert session.execute(asked).fetchone() == ("the key", None)
    assert "the key" in module_server.psql("-At", "-c", r"\di+ said_pkey").stdout
    session.execute("COMMENT ON INDEX public.said_pkey IS NULL")
    assert session.execute(asked).fetchone() == (None, None)
    with pytest.raises(psycopg.errors.UndefinedObject, match='index "nothing" does not exist'):
        session.execute("COMMENT ON INDEX nothing IS 'x'")
    session.execute("COMMENT ON INDEX said_pkey IS 'gone with the table'; DROP TABLE said")
    assert session.execute("SELECT count(*) FROM pg_description").fetchone() == (0,)


# What may stand for an argument of a polymorphic type.
_STAND_INS = dict.fromkeys(("any", "anyelement", "anynonarray", "anycompatible"), "integer") | dict.fromkeys(
    ("anyarray", "anycompatiblearray"), "integer[]"
)
_ORDERED_SETS = ("mode", "percentile_cont", "percentile_disc")
# Not what a call with NULLs may end with: no such function, no such syntax, our own fault.
_UNKNOWN = ("42883", "42601", "XX000")


def test_the_functions_that_are_listed_can_be_called(session: Connection) -> None:
    """Each with NULLs of its types. What a call wants besides, such as a pattern that is known, is another error."""
    found = session.execute(
        """SELECT p.oid, proname, prokind, array_agg(format_type(t.oid, NULL) ORDER BY n),
                  array_agg(t.typname ORDER BY n)
           FROM pg_proc p, unnest(proargtypes) WITH ORDINALITY AS u(a, n), pg_type t WHERE t.oid = u.a
           GROUP BY 1, 2, 3"""
    ).fetchall()
    assert len(found) > 450
    failed = []
    for _, name, kind, types, names in found:
        if "internal" in names or name in _ORDERED_SETS or name.endswith("build_object"):
            continue  # input and output of types, which no statement calls, and what wants constants or pairs
        if name == "array_flatten" or "extract_path" in name:
            continue  # wants an array of arrays, or texts, of which pg_proc has the array
        nulls = [f"NULL::{_STAND_INS.get(each, type_)}" for each, type_ in zip(names, types, strict=True)]
        try:
            session.execute(f"SELECT {name}({', '.join(nulls)}){' OVER ()' if kind == 'w' else ''}")
        except psycopg.Error as error:
            if error.sqlstate in _UNKNOWN:
                failed.append((name, types, str(error)))
    assert failed == []


# What operators and grammar stand for, functions that only the planner calls, and those of maps, which are no type of
# PostgreSQL.
_NOT_LISTED = {
    "_avg", "_numbers_before", "_only", "_real_as_numeric", "_to_modifier", "is_normalized",
    "all_true", "any_true", "double_text", "real_text", "array_contained", "array_contains", "array_overlaps",
    "array_subscripts", "array_transform", "avg_of_intervals", "between_moments", "divide", "document", "extract",
    "format_of", "join_texts",
    "joined_text", "json_at", "json_element_texts", "json_elements", "json_field", "json_keys", "json_of_fields",
    "json_of_items", "json_record", "json_records", "json_text_at", "json_value_texts", "json_values",
    "is_json", "jsonb_array_of_documents", "jsonb_array_of_texts", "jsonb_canonical", "jsonb_element_texts",
    "jsonb_elements",
    "jsonb_field", "jsonb_key", "jsonb_keys", "jsonb_keys_of_each", "jsonb_of_fields", "jsonb_record", "jsonb_records",
    "jsonb_value", "jsonb_value_texts", "jsonb_values", "jsonb_without", "jsonb_without_path", "justify_intervals",
    "modulo", "multiply",
    "normalize", "overlaps", "regexp_all_matches", "regexp_ilike", "row", "series_of_integers", "series_of_numerics",
    "shift_time",
    "similar_to",
    "sketched_percentile", "subtract", "sum_of_intervals", "text_out", "text_within", "time_in_range", "to_text",
    "tumble_start", "zip_arrays", "zip_pairs",
    "_nearest_double", "_nearest_real",
    *INTERVAL_FIELDS, "_interval_sum", "_interval_average",
    *UNITS, *SQUARES, "_spread_of_squares", "_spread_of_halves", "_spread_of_limbs",
    "jsonb_populate_map", "map_access", "map_cat", "map_contains", "map_delete", "map_entries", "map_filter",
    "map_from_entries", "map_from_key_values", "map_insert", "map_keys", "map_length", "map_values",
}  # fmt: skip


def test_the_functions_that_the_planner_has_are_listed(session: Connection) -> None:
    listed = {name for (name,) in session.execute("SELECT DISTINCT proname FROM pg_proc")}
    assert set(FUNCTIONS) - listed == _NOT_LISTED


def test_functions_in_psql_and_information_schema(module_server: Server, session: Connection) -> None:
    shown = module_server.psql("-At", "-c", r"\df upper").stdout
    assert shown == "pg_catalog|upper|text|text|func\n"
    assert module_server.psql("-At", "-c", r"\df concat").stdout == 'pg_catalog|concat|text|VARIADIC "any"|func\n'
    aggregates = module_server.psql("-At", "-c", r"\dfa count").stdout.splitlines()
    assert aggregates == ["pg_catalog|count|bigint||agg", 'pg_catalog|count|bigint|"any"|agg']
    asked = (
        "SELECT routine_type, data_type, is_deterministic FROM information_schema.routines WHERE routine_name = 'upper'"
    )
    assert session.execute(asked).fetchall() == [("FUNCTION", "text", "YES")]
    completed = session.execute(
        "SELECT DISTINCT proname FROM pg_proc WHERE proname LIKE 'split%' AND pg_function_is_visible(oid)"
    )
    assert completed.fetchall() == [("split_part",)]


def test_no_object_has_an_oid_of_a_system_relation(session: Connection) -> None:
    """Ids begin at 1000, and go on at 16384 before the first of them."""
    system = "('pg_catalog'::regnamespace, 'information_schema'::regnamespace)"
    listed = f"SELECT oid FROM pg_class WHERE relnamespace IN {system}"
    reserved = {oid for (oid,) in session.execute(listed.encode()) if 1000 <= oid < 16384}
    assert min(reserved) == 1213
    assert reserved <= set(store._CATALOG_OIDS)
    assert session.execute("SELECT oid FROM pg_class GROUP BY oid HAVING count(*) > 1").fetchall() == []
