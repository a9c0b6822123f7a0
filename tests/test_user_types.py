"""CREATE TYPE: enums and composite types, as PostgreSQL has them, in tables, queries and views."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from postgres import beside
from psycopg.types.composite import CompositeInfo, register_composite
from psycopg.types.enum import EnumInfo, register_enum
from servers import Server, refused, rows

Connection = psycopg.Connection[Any]

TYPES = (
    "CREATE TYPE mood AS ENUM ('sad', 'o''k', 'a, (b)', 'happy', 'Größe')",
    "CREATE TYPE other AS ENUM ('sad', 'o''k', 'a, (b)', 'happy', 'Größe')",
    'CREATE TYPE "My Item" AS (name text, "Supplier Id" int, price numeric, felt mood)',
    "CREATE SCHEMA app",
    "CREATE TYPE app.level AS ENUM ('low', 'high')",
    "CREATE TABLE p (id int PRIMARY KEY, m mood, ms mood[], i \"My Item\", l app.level DEFAULT 'low')",
    """INSERT INTO p VALUES (1, 'sad', '{sad,"a, (b)",NULL}', row('x', 1, 1.5, 'happy'), 'low'),
                            (2, 'happy', array['Größe', 'o''k']::mood[], NULL, 'high'),
                            (3, NULL, '{}', ('y', 2, 2.5, NULL), DEFAULT),
                            (4, 'o''k', NULL, row(NULL, NULL, NULL, 'sad'), NULL), (5, 'Größe', NULL, NULL, 'low')""",
)
QUERIES = (
    "SELECT * FROM p ORDER BY id",
    "SELECT id FROM p ORDER BY m DESC NULLS LAST, id",
    "SELECT m, count(*), min(l), max(l) FROM p GROUP BY m ORDER BY m",
    "SELECT id FROM p WHERE m > 'sad' AND m <> 'happy' ORDER BY id",
    "SELECT id FROM p WHERE m IN ('sad', 'happy') OR m BETWEEN 'Größe' AND 'Größe' ORDER BY id",
    "SELECT max(m), min(m), count(DISTINCT m) FROM p",
    "SELECT m::text || '!', m::varchar, ('o''' || 'k')::mood FROM p ORDER BY id",
    "SELECT coalesce(m, 'sad'), nullif(m, 'sad'), CASE WHEN m < 'happy' THEN m ELSE 'happy' END FROM p ORDER BY id",
    "SELECT CASE m WHEN 'sad' THEN 1 WHEN 'happy' THEN 2 END FROM p ORDER BY id",
    "SELECT greatest(m, 'o''k'), least(m, 'o''k') FROM p ORDER BY id",
    "SELECT array_agg(m ORDER BY m), array_agg(l ORDER BY id) FROM p",
    'SELECT (i).name, (i)."Supplier Id", (i).felt FROM p ORDER BY id',
    "SELECT DISTINCT m FROM p ORDER BY 1",
    "SELECT a.id, b.id FROM p a JOIN p b ON a.m = b.m ORDER BY a.id",
    "SELECT id, row_number() OVER (ORDER BY m, id) FROM p ORDER BY id",
    "SELECT m FROM p WHERE id < 3 UNION SELECT 'sad' ORDER BY 1",
    "SELECT 'sad'::mood < 'happy', 'low'::app.level = 'low', array['sad']::mood[] = '{sad}'",
    "SELECT unnest(ms) FROM p WHERE id < 3 ORDER BY 1",
    "SELECT to_jsonb(m) FROM p ORDER BY id",
    """SELECT t.typname, t.typtype, t.typcategory, t.typlen, a.typname, n.nspname FROM pg_type t
       JOIN pg_type a ON a.oid = t.typarray JOIN pg_namespace n ON n.oid = t.typnamespace
       WHERE t.typname IN ('mood', 'My Item', 'level') ORDER BY 1""",
    "SELECT enumlabel, enumsortorder FROM pg_enum WHERE enumtypid = 'mood'::regtype ORDER BY enumsortorder",
    """SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
       WHERE attrelid = (SELECT typrelid FROM pg_type WHERE typname = 'My Item') AND attnum <> 2 ORDER BY attnum""",
    """SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
       WHERE attrelid = 'p'::regclass AND attnum > 0 ORDER BY 1""",
    "SELECT 'mood'::regtype::text, 'app.level'::regtype::text, '\"My Item\"'::regtype::text, to_regtype('nothing')",
    """SELECT column_name, data_type, udt_schema, udt_name FROM information_schema.columns
       WHERE table_name = 'p' ORDER BY 1""",
)
VIEWS = (
    "SELECT id, m, ms, l FROM p",
    "SELECT m, count(*) AS n, max(l) AS l, array_agg(ms ORDER BY id) FILTER (WHERE id < 0) AS none FROM p GROUP BY m",
    "SELECT max(m) AS hi, min(m) AS lo FROM p",
    "SELECT a.id AS a, b.id AS b, b.m FROM p a LEFT JOIN p b ON a.m = b.m AND b.m >= 'o''k'",
    """SELECT id, CASE WHEN m < 'happy' THEN m ELSE 'happy' END AS c, coalesce(m, 'sad') AS d
       FROM p WHERE m <> 'sad' OR m IS NULL""",
    "SELECT id, m, row_number() OVER (PARTITION BY l ORDER BY m, id) AS place FROM p",
    "SELECT id, (i).name AS name, (i).felt AS felt, i FROM p WHERE (i).felt = 'happy' OR (i).\"Supplier Id\" = 2",
    "SELECT m::text AS t, 'happy'::mood AS h FROM p WHERE m > 'sad'::mood",
    "SELECT m FROM p ORDER BY m DESC NULLS LAST LIMIT 2",
)
ERRORS = (
    "SELECT 'nope'::mood", "INSERT INTO p (id, m) VALUES (9, 'nope')", "SELECT m = 'nope' FROM p",
    "SELECT ('no' || 'pe')::mood", "CREATE TYPE mood AS ENUM ('x')", "SELECT 'x'::missing", "DROP TYPE missing",
    "CREATE TABLE q (a missing)", "ALTER TYPE mood ADD VALUE 'sad'", "ALTER TYPE mood ADD VALUE 'x' BEFORE 'nope'",
    "DROP TYPE mood", "DROP TYPE app.level", 'DROP TYPE "My Item"', "CREATE TYPE t AS (a int, a text)",
    "UPDATE p SET m = 'nope' WHERE id = 1", "SELECT 'x'::enum('x', 'y')", "CREATE TABLE q (a enum('x', 'y'))",
)  # fmt: skip


@pytest.fixture(scope="module")
def both(in_process_server: Server) -> Iterator[tuple[Connection, Connection]]:
    with beside(in_process_server) as clients:
        for client in clients:
            for statement in TYPES:
                client.execute(statement.encode())
        yield clients


def _texts(client: Connection, query: str, binary: bool = False) -> list[tuple[Any, ...]]:
    return client.execute(query.encode(), binary=binary).fetchall()


@pytest.mark.parametrize("query", QUERIES)
def test_queries(both: tuple[Connection, Connection], query: str) -> None:
    here, there = both
    assert _texts(here, query) == _texts(there, query)


def test_views_follow(both: tuple[Connection, Connection]) -> None:
    here, there = both
    for number, query in enumerate(VIEWS):
        here.execute(f"CREATE MATERIALIZED VIEW v{number} AS {query}".encode())
    for client in both:
        client.execute("INSERT INTO p VALUES (6, 'a, (b)', '{}', row('z', 6, 6, 'happy'), 'high')")
        client.execute("INSERT INTO p (id, m) VALUES (7, 'sad')")
        client.execute("UPDATE p SET m = 'happy', l = 'low' WHERE id = 4")
        client.execute("DELETE FROM p WHERE id = 2")
    here.execute("FLUSH")
    for number, query in enumerate(VIEWS):
        expected = sorted(_texts(there, query), key=str)
        assert sorted(_texts(here, query), key=str) == expected, query
        columns = [column.name for column in there.execute(query.encode()).description or ()]
        listed = ", ".join(f'"{name}"' for name in columns)
        assert sorted(_texts(here, f"SELECT {listed} FROM v{number}"), key=str) == expected, query


@pytest.mark.parametrize("statement", ERRORS)
def test_errors(both: tuple[Connection, Connection], statement: str) -> None:
    states = []
    for client in both:
        with pytest.raises(psycopg.Error) as caught:
            client.execute(statement.encode())
        states.append(caught.value.sqlstate)
    assert states[0] == states[1]


def test_a_label_is_named_in_the_error(both: tuple[Connection, Connection]) -> None:
    error = refused(both[0], "SELECT id FROM p WHERE m = 'nope'")
    assert error.diag.message_primary == 'invalid input value for enum mood: "nope"'
    assert error.diag.statement_position is not None
    assert "\x01" not in str(refused(both[0], "SELECT m > 3 FROM p"))


@pytest.mark.parametrize("binary", [False, True])
def test_clients_know_the_types(both: tuple[Connection, Connection], binary: bool) -> None:
    for client in both:
        mood = EnumInfo.fetch(client, "mood")
        item = CompositeInfo.fetch(client, '"My Item"')
        assert mood is not None and list(mood.labels) == ["sad", "o'k", "a, (b)", "happy", "Größe"]
        assert item is not None and list(item.field_names) == ["name", "Supplier Id", "price", "felt"]
        register_enum(mood, client)
        register_composite(item, client)
    here, there = both
    for query in ("SELECT m, ms, i FROM p ORDER BY id", "SELECT 'sad'::mood, array['sad']::mood[]"):
        found, expected = here.execute(query.encode(), binary=binary), there.execute(query.encode(), binary=binary)
        assert [c.type_display for c in found.description or ()] == [c.type_display for c in expected.description or ()]
        assert str(found.fetchall()) == str(expected.fetchall())
    for client in both:
        given = ("sad", "happy", ["o'k"])
        [(one, two, several)] = client.execute("SELECT %s::mood, %b::mood, %t::mood[]", given, binary=binary).fetchall()
        assert [one.name, two.name, *(each.name for each in several)] == ["sad", "happy", "o'k"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT row(id, '7'::text) FROM p ORDER BY id",
        "SELECT '{{1,2},{3,NULL}}'::int[]",
        "SELECT ARRAY[ARRAY[ARRAY['a', 'bc']], ARRAY[ARRAY['', NULL]]]",
        "SELECT unnest(ARRAY[1, 2, 3]), ARRAY[]::int[], NULL::int[]",
    ],
)
def test_bytes_of_rows_and_arrays(both: tuple[Connection, Connection], query: str) -> None:
    found, expected = ([_values(client, query)] for client in both)
    assert found == expected


def _values(client: Connection, query: str) -> list[bytes | None]:
    """All values of a result, as the server sent them in the binary format."""
    result = client.execute(query.encode(), binary=True).pgresult
    assert result is not None
    return [result.get_value(row, column) for row in range(result.ntuples) for column in range(result.nfields)]


def test_copy(both: tuple[Connection, Connection]) -> None:
    texts = []
    for client in both:
        client.execute("CREATE TABLE c (id int, m mood, ms mood[])")
        with client.cursor() as cursor:
            with cursor.copy("COPY c FROM STDIN") as copy:
                copy.write("1\tsad\t{sad,happy}\n2\t\\N\t\\N\n")
            with pytest.raises(psycopg.errors.InvalidTextRepresentation), cursor.copy("COPY c FROM STDIN") as copy:
                copy.write("3\tnope\t{}\n")
            with cursor.copy("COPY (SELECT * FROM c ORDER BY id) TO STDOUT") as copy:
                texts.append(b"".join(bytes(part) for part in copy))
    assert texts[0] == texts[1]


def test_a_label_comes_into_use(both: tuple[Connection, Connection]) -> None:
    """Of a type that tables, views and functions have."""
    here, there = both
    here.execute("CREATE MATERIALIZED VIEW levels AS SELECT l, count(*) AS n, max(l) AS hi FROM p GROUP BY l")
    for client in both:
        client.execute(
            "CREATE FUNCTION worst(a app.level, b app.level) RETURNS app.level LANGUAGE SQL AS $$ SELECT least(a, b) $$"
        )
        client.execute("ALTER TYPE app.level ADD VALUE 'middle' AFTER 'low'")
        client.execute("ALTER TYPE app.level ADD VALUE IF NOT EXISTS 'middle'")
        client.execute("INSERT INTO p (id, l) VALUES (20, 'middle'), (21, 'high')")
    here.execute("FLUSH")
    levels = "SELECT l, count(*), max(l) FROM p GROUP BY l ORDER BY l"
    for query in (levels, "SELECT worst('middle', 'high'), worst(l, 'middle') FROM p ORDER BY id"):
        assert _texts(here, query) == _texts(there, query)
    assert _texts(here, "SELECT * FROM levels ORDER BY l") == _texts(there, levels)


def test_what_uses_a_type_keeps_it(both: tuple[Connection, Connection]) -> None:
    here = both[0]
    here.execute("CREATE TYPE passing AS ENUM ('a')")
    here.execute("CREATE VIEW casts AS SELECT 'a'::passing AS a")
    assert "view public.casts" in str(refused(here, "DROP TYPE passing").diag.message_detail)
    here.execute("DROP VIEW casts")
    here.execute("CREATE TABLE checked (t text CHECK (t::passing = 'a'))")
    assert "table public.checked" in str(refused(here, "DROP TYPE passing").diag.message_detail)
    here.execute("DROP TABLE checked")
    here.execute("DROP TYPE passing")
    assert rows(here, "SELECT 1 FROM pg_type WHERE typname LIKE '%passing'") == []
    here.execute("DROP TYPE IF EXISTS passing, none.passing")


def test_checks_and_defaults_compare_as_enums(both: tuple[Connection, Connection]) -> None:
    for client in both:
        client.execute("""CREATE TABLE held (id int PRIMARY KEY, m mood DEFAULT 'happy'::mood CHECK (m > 'o''k'),
                                             l app.level NOT NULL DEFAULT 'low')""")
        client.execute("INSERT INTO held (id) VALUES (1)")
        client.execute("INSERT INTO held VALUES (2, 'a, (b)', 'high')")
        for statement in (
            "INSERT INTO held VALUES (3, 'sad')",
            "UPDATE held SET m = 'o''k'",
            "UPDATE held SET l = NULL",
        ):
            with pytest.raises((psycopg.errors.CheckViolation, psycopg.errors.NotNullViolation)):
                client.execute(statement.encode())
        client.execute("ALTER TABLE held ADD CONSTRAINT low CHECK (l < 'high' OR id > 1)")
    assert _texts(both[0], "SELECT * FROM held ORDER BY id") == _texts(both[1], "SELECT * FROM held ORDER BY id")


def test_types_are_found_by_the_search_path_of_who_named_them(both: tuple[Connection, Connection]) -> None:
    """A view, a function, a check and a default mean the same type whatever is searched later."""
    here, there = both
    for client in both:
        client.execute("CREATE SCHEMA named")
        client.execute("CREATE TYPE named.size AS ENUM ('small', 'large')")
        client.execute("CREATE DOMAIN named.few AS int CHECK (value < 5)")
        client.execute("SET search_path TO public, named")
        client.execute("""CREATE TABLE sizes (id int PRIMARY KEY, n few, s size DEFAULT 'small'::size
                          CHECK (s < 'large'::size OR id > 5))""")
        client.execute("CREATE VIEW large_sizes AS SELECT id, 'large'::size AS s, id::few AS f FROM sizes")
    here.execute("""CREATE FUNCTION named.tiny(a int) RETURNS named.size LANGUAGE SQL
                    AS $$ SELECT CASE WHEN a > 0 THEN 'small'::size END $$""")
    here.execute("""CREATE MATERIALIZED VIEW sized AS
                    SELECT id, 'large'::size AS s, array['small']::size[] AS l, named.tiny(id) AS least FROM sizes""")
    for client in both:
        client.execute("RESET search_path")
        client.execute("INSERT INTO sizes (id, n) VALUES (1, 4)")
        with pytest.raises(psycopg.errors.CheckViolation):
            client.execute("INSERT INTO sizes VALUES (2, 1, 'large')")
        with pytest.raises(psycopg.errors.UndefinedObject):
            client.execute("SELECT 'large'::size")
    here.execute("FLUSH")
    for query in ("SELECT * FROM sizes", "SELECT * FROM large_sizes"):
        assert _texts(here, query) == _texts(there, query)
    assert _texts(here, "SELECT *, named.tiny(id) FROM sized") == [(1, "large", "{small}", "small", "small")]
    assert "public.sized depends on it" in str(refused(here, "DROP TYPE named.size").diag.message_detail)


def test_a_schema_with_types(both: tuple[Connection, Connection]) -> None:
    here = both[0]
    for client in both:
        client.execute("CREATE SCHEMA held_types")
        client.execute("CREATE TYPE held_types.t AS ENUM ('x')")
        client.execute("CREATE TABLE uses_t (t held_types.t)")
    for client in both:
        with pytest.raises(psycopg.errors.DependentObjectsStillExist):
            client.execute("DROP SCHEMA held_types")
    # PostgreSQL drops the column.
    assert refused(here, "DROP SCHEMA held_types CASCADE").sqlstate == "2BP01"
    for client in both:
        client.execute("DROP TABLE uses_t")
        client.execute("DROP SCHEMA held_types CASCADE")
        assert rows(client, "SELECT 1 FROM pg_type WHERE typname = 't'") == []


@pytest.mark.long
@pytest.mark.spark
def test_after_a_restart_and_on_spark(tmp_path: Any) -> None:
    """Types are there after a restart, and a view on serverless Spark has the rows that its query has."""
    server = Server(tmp_path / "data")
    try:
        with server.connect() as client:
            for statement in TYPES:
                client.execute(statement.encode())
            client.execute("""INSERT INTO p (id, m, l)
                SELECT g, CASE g % 3 WHEN 0 THEN 'sad' WHEN 1 THEN 'happy' END::mood, 'high'::app.level
                FROM generate_series(10, 5000) g""")
        server.kill()
        server = Server(tmp_path / "data")
        with server.connect() as client:
            client.execute("ALTER SYSTEM SET serverless_backfill_enabled = true")
            client.execute("ALTER SYSTEM SET serverless_backfill_linger = 60")  # one group fills all
            serverless = "WITH (cloud.serverless_backfill_enabled = true)"
            for number, query in enumerate(VIEWS):
                client.execute(f"CREATE MATERIALIZED VIEW s{number} {serverless} AS {query}".encode())
            client.execute("UPDATE p SET m = 'Größe' WHERE id % 100 = 7")
            client.execute("FLUSH")
            for number, query in enumerate(VIEWS):
                columns = ", ".join(f'"{c.name}"' for c in client.execute(query.encode()).description or ())
                expected = sorted(_texts(client, query), key=str)
                assert sorted(_texts(client, f"SELECT {columns} FROM s{number}"), key=str) == expected, query
    finally:
        server.stop()


DOMAINS = (
    "CREATE DOMAIN pos AS int CHECK (value > 0)",
    """CREATE DOMAIN email AS text NOT NULL DEFAULT 'a@b' CHECK (value LIKE '%@%')
       CONSTRAINT short CHECK (length(value) < 9)""",
    "CREATE DOMAIN few AS pos CHECK (value < 10)",
    "CREATE TABLE d (id int PRIMARY KEY, p pos, e email, q pos DEFAULT 7)",
    "INSERT INTO d (id, p) VALUES (1, 5), (2, NULL)",
)
OF_DOMAINS = (
    "SELECT * FROM d ORDER BY id", "SELECT 5::pos, 'x@y'::email, '7'::pos + 1, NULL::pos, 9::few",
    "SELECT (p + 1)::pos FROM d ORDER BY id",
    """SELECT typname, typtype, typbasetype::regtype::text, typnotnull FROM pg_type
       WHERE typtype = 'd' AND typname IN ('pos', 'email') ORDER BY 1""",
    """SELECT column_name, data_type, domain_name, udt_name, is_nullable FROM information_schema.columns
       WHERE table_name = 'd' ORDER BY 1""",
    "SELECT conname FROM pg_constraint WHERE contypid IN ('pos'::regtype, 'email'::regtype) ORDER BY 1",
)  # fmt: skip
BROKEN = (
    "SELECT (-1)::pos", "SELECT 0::few", "SELECT 10::few", "SELECT '0'::pos", "SELECT NULL::email",
    "SELECT 'nothing'::email",
    "SELECT 'far@too-long'::email", "INSERT INTO d (id, p) VALUES (3, -5)", "INSERT INTO d (id, e) VALUES (3, NULL)",
    "UPDATE d SET e = 'no'", "UPDATE d SET q = 0", "SELECT (p - 5)::pos FROM d", "DROP DOMAIN pos",
    "CREATE DOMAIN pos AS text", "CREATE DOMAIN x AS missing",
)  # fmt: skip


def test_domains(both: tuple[Connection, Connection]) -> None:
    here, there = both
    for client in both:
        for statement in DOMAINS:
            client.execute(statement.encode())
    here.execute("CREATE MATERIALIZED VIEW of_d AS SELECT id, p, (p - 5)::pos AS less, e FROM d")
    for query in OF_DOMAINS:
        found, expected = here.execute(query.encode()), there.execute(query.encode())
        if "_schema" not in query and "pg_" not in query:
            assert [(c.name, c.type_code) for c in found.description or ()] == [
                (c.name, c.type_code) for c in expected.description or ()
            ]
        assert found.fetchall() == expected.fetchall(), query
    for statement in BROKEN:
        states = []
        for client in both:
            with pytest.raises(psycopg.Error) as caught:
                client.execute(statement.encode())
            states.append(caught.value.sqlstate)
        assert states[0] == states[1], statement
    for client in both:
        client.execute("ALTER TABLE d ADD COLUMN more pos")
        client.execute("UPDATE d SET more = 3, p = 9 WHERE id = 1")
        with pytest.raises(psycopg.errors.CheckViolation):
            client.execute("UPDATE d SET more = 0")
    here.execute("FLUSH")
    assert rows(here, "SELECT * FROM of_d ORDER BY id") == [(1, 9, 4, "a@b"), (2, None, None, "a@b")]
    assert here.execute("SELECT 1 FROM d WHERE more = 3").fetchall() == [(1,)]
    for statement in ("CREATE TABLE a (p pos[])", "CREATE FUNCTION f(p pos) RETURNS int LANGUAGE SQL AS 'SELECT 1'"):
        assert refused(here, statement).sqlstate == "0A000"
    here.execute("DROP TABLE d CASCADE")
    here.execute("DROP DOMAIN pos, email")


ALTERED = (
    "CREATE TYPE phase AS ENUM ('new', 'open', 'done')",
    "CREATE TABLE ticket (id int PRIMARY KEY, p phase DEFAULT 'new', q phase)",
    "INSERT INTO ticket VALUES (1, 'open'), (2, 'new', 'open'), (3, NULL)",
    "ALTER TYPE phase RENAME VALUE 'open' TO 'O''Open'",
    "ALTER TYPE phase RENAME VALUE 'nope' TO 'x'",
    "ALTER TYPE phase RENAME VALUE 'done' TO 'new'",
    "SELECT * FROM ticket ORDER BY id",
    "SELECT id FROM ticket WHERE p = 'open'",
    "SELECT id FROM ticket WHERE p = 'O''Open' OR q > 'new' ORDER BY id",
    "INSERT INTO ticket VALUES (4, 'O''Open')",
    "UPDATE ticket SET p = 'done' WHERE p = 'O''Open' AND id = 1",
    "SELECT min(p), max(q), count(*) FROM ticket",
    "CREATE SCHEMA later",
    "ALTER TYPE phase RENAME TO \"Phase\"",
    "ALTER TYPE phase RENAME TO x",
    "ALTER TYPE \"Phase\" SET SCHEMA later",
    "ALTER TYPE later.\"Phase\" SET SCHEMA nowhere",
    "SELECT 'done'::later.\"Phase\", 'later.\"Phase\"'::regtype::text",
    "SELECT * FROM ticket ORDER BY id",
    "SELECT column_name, udt_schema, udt_name FROM information_schema.columns WHERE table_name = 'ticket' ORDER BY 1",
    "CREATE TYPE place AS (x int, y text)",
    "ALTER TYPE place ADD ATTRIBUTE z numeric, DROP ATTRIBUTE IF EXISTS w, DROP ATTRIBUTE x",
    "ALTER TYPE place RENAME ATTRIBUTE y TO \"Y y\"",
    "ALTER TYPE place ALTER ATTRIBUTE z TYPE int",
    "ALTER TYPE place DROP ATTRIBUTE w",
    "ALTER TYPE place ADD ATTRIBUTE z int",
    "ALTER TYPE place RENAME ATTRIBUTE z TO \"Y y\"",
    "SELECT row('a', 2)::place, (row('a', 2)::place).\"Y y\", (row('a', '2')::place).z + 1",
    """SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE NOT attisdropped AND
       attrelid = (SELECT typrelid FROM pg_type WHERE typname = 'place') ORDER BY attnum""",
    "ALTER TYPE place OWNER TO root",
    "CREATE DOMAIN amount AS int CHECK (value > 0)",
    "CREATE TABLE bill (id int PRIMARY KEY, a amount, b amount DEFAULT 9)",
    "INSERT INTO bill VALUES (1, 5, 6)",
    "ALTER DOMAIN amount SET DEFAULT 7",
    "INSERT INTO bill (id) VALUES (2)",
    "ALTER DOMAIN amount DROP DEFAULT",
    "INSERT INTO bill (id) VALUES (3)",
    "SELECT * FROM bill ORDER BY id",
    "ALTER DOMAIN amount SET NOT NULL",
    "ALTER DOMAIN amount DROP NOT NULL",
    "ALTER DOMAIN amount ADD CHECK (value < 7)",
    "ALTER DOMAIN amount ADD CONSTRAINT small CHECK (VALUE < 70)",
    "ALTER DOMAIN amount ADD CONSTRAINT small CHECK (VALUE < 80)",
    "SELECT 71::amount",
    "INSERT INTO bill VALUES (4, 71)",
    "ALTER DOMAIN amount RENAME CONSTRAINT small TO little",
    "ALTER DOMAIN amount DROP CONSTRAINT small",
    "ALTER DOMAIN amount DROP CONSTRAINT IF EXISTS small",
    "ALTER DOMAIN amount DROP CONSTRAINT little",
    "INSERT INTO bill VALUES (4, 71)",
    "INSERT INTO bill VALUES (5, -1)",
    "SELECT conname FROM pg_constraint WHERE contypid = 'amount'::regtype",
    "ALTER DOMAIN amount RENAME TO sum_due",
    "ALTER DOMAIN place RENAME TO x",
    "ALTER DOMAIN place SET NOT NULL",
    "SELECT 0::sum_due",
    "DELETE FROM bill WHERE a IS NULL OR id = 2",
    "ALTER DOMAIN sum_due SET NOT NULL",
    "INSERT INTO bill VALUES (6, NULL)",
)  # fmt: skip


def test_types_are_altered(both: tuple[Connection, Connection]) -> None:
    for statement in ALTERED:
        found, expected = (_outcome(client, statement) for client in both)
        assert found == expected, statement


def _outcome(client: Connection, statement: str) -> object:
    try:
        cursor = client.execute(statement.encode())
    except psycopg.Error as error:
        return error.sqlstate
    return cursor.fetchall() if cursor.description else cursor.statusmessage


def test_what_relies_on_a_type_keeps_it_as_it_is(both: tuple[Connection, Connection]) -> None:
    """A view's rows and stored texts have names and labels, which would not be those of the type any more."""
    here = both[0]
    for statement in (
        "CREATE TYPE size AS ENUM ('s', 'm')",
        "CREATE TYPE box AS (w int, s size)",
        "CREATE DOMAIN even AS int CHECK (value % 2 = 0)",
        "CREATE TABLE shirt (id int PRIMARY KEY, s size, n even, b box)",
        "CREATE MATERIALIZED VIEW shirt_sizes AS SELECT s, count(*) AS n FROM shirt GROUP BY s",
        "CREATE MATERIALIZED VIEW evens AS SELECT id, (id * 2)::even AS e FROM shirt",
    ):
        here.execute(statement.encode())
    for statement in (
        "ALTER TYPE size RENAME VALUE 's' TO 'small'",
        "ALTER TYPE size RENAME TO sizes_of_shirts",
        "ALTER TYPE box ADD ATTRIBUTE d int",
        "ALTER DOMAIN even ADD CHECK (value > 0)",
        "ALTER DOMAIN even DROP CONSTRAINT even_check",
        "ALTER DOMAIN even RENAME TO evens_only",
    ):
        assert refused(here, statement).sqlstate == "0A000", statement
    here.execute("INSERT INTO shirt VALUES (1, 's', 2, row(1, 'm'))")
    here.execute("FLUSH")
    assert rows(here, "SELECT * FROM shirt_sizes") == [("s", 1)]
    here.execute("DROP MATERIALIZED VIEW shirt_sizes")
    here.execute("DROP MATERIALIZED VIEW evens")
    here.execute("ALTER TABLE shirt DROP COLUMN b")
    here.execute("DROP TYPE box")
    here.execute("CREATE VIEW named AS SELECT 's'::size AS s")
    assert refused(here, "ALTER TYPE size RENAME VALUE 's' TO 'small'").sqlstate == "0A000"
    assert refused(here, "ALTER TYPE size RENAME TO other_size").sqlstate == "0A000"
    here.execute("DROP VIEW named")
    here.execute("ALTER TYPE size RENAME VALUE 's' TO 'small'")
    assert rows(here, "SELECT s FROM shirt") == [("small",)]
