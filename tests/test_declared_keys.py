"""UNIQUE and FOREIGN KEY: in the system catalogs as in PostgreSQL, though nobody enforces them."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from postgres import beside, differences
from servers import Server, rows

from sparkwave.catalog.relation_details import Check, Constraints, ForeignKey, Unique, dump_details, load_details

Connection = psycopg.Connection[Any]


def test_as_postgresql(module_server: Server) -> None:
    with beside(module_server) as both:
        different = differences(both, "declared_keys.sql")
    assert not different, "\n".join(map(str, different))


def test_what_is_not_enforced_is_told_once(connection: Connection) -> None:
    told: list[tuple[str, ...]] = []
    connection.add_notice_handler(
        lambda d: told.append((str(d.severity_nonlocalized), str(d.sqlstate), str(d.message_primary)))
    )
    # Frameworks set it, so that a NOTICE would reach nobody.
    connection.execute("SET client_min_messages = warning")
    for statement, kinds in (
        ("CREATE TABLE told (id int PRIMARY KEY, a int UNIQUE, b int REFERENCES told, UNIQUE (a, b))", "both"),
        ("ALTER TABLE told ADD CONSTRAINT fk FOREIGN KEY (a) REFERENCES told (id)", "FOREIGN KEY is"),
        ("ALTER TABLE told ADD COLUMN c int UNIQUE, ADD UNIQUE (b)", "UNIQUE is"),
        ("CREATE UNIQUE INDEX told_index ON told (a)", "UNIQUE is"),
        ("ALTER TABLE told ADD FOREIGN KEY (c) REFERENCES told NOT ENFORCED", ""),
    ):
        connection.execute(statement.encode())
        words = f"{kinds.replace('both', 'UNIQUE and FOREIGN KEY are')} kept, but not enforced here"
        wanted = [("WARNING", "01000", f"{words}; PRIMARY KEY, NOT NULL and CHECK are enforced")] if kinds else []
        assert told == wanted, statement
        told.clear()
    connection.execute("INSERT INTO told VALUES (1, 2, 3), (2, 2, 3)")


def test_no_plan_relies_on_them(connection: Connection) -> None:
    """A UNIQUE that does not hold is no key of a view's rows."""
    connection.execute("CREATE TABLE plain_dim (id int, name varchar)")
    connection.execute("CREATE TABLE plain_fact (d int, v int)")
    connection.execute("CREATE TABLE dim (id int UNIQUE, name varchar UNIQUE)")
    connection.execute("CREATE TABLE fact (d int REFERENCES dim (id), v int UNIQUE)")
    query = "SELECT d, name, v, count(*) AS n FROM {0}fact LEFT JOIN {0}dim ON d = id GROUP BY d, name, v"
    plans = [
        "\n".join(line for (line,) in rows(connection, f"EXPLAIN CREATE MATERIALIZED VIEW v AS {query.format(prefix)}"))
        for prefix in ("plain_", "")
    ]
    assert plans[0].replace("plain_", "") == plans[1]
    connection.execute(f"CREATE MATERIALIZED VIEW v AS {query.format('')}".encode())
    connection.execute("CREATE MATERIALIZED VIEW w AS SELECT DISTINCT id FROM dim")
    connection.execute("INSERT INTO dim VALUES (1, 'a'), (1, 'a'), (NULL, 'b')")
    connection.execute("INSERT INTO fact VALUES (1, 5), (1, 5), (9, 5)")
    connection.execute("FLUSH")
    assert sorted(rows(connection, "SELECT * FROM v"), key=str) == [(1, "a", 5, 4), (9, None, 5, 1)]
    assert sorted(rows(connection, "SELECT * FROM w"), key=str) == [(1,), (None,)]
    connection.execute("DELETE FROM dim WHERE name = 'a'")
    connection.execute("FLUSH")
    assert sorted(rows(connection, "SELECT * FROM v"), key=str) == [(1, None, 5, 2), (9, None, 5, 1)]


def test_on_conflict_knows_the_primary_key_alone(connection: Connection) -> None:
    connection.execute("CREATE TABLE upserted (id int PRIMARY KEY, a int UNIQUE)")
    for target in ("(a)", "ON CONSTRAINT upserted_a_key"):
        with pytest.raises(psycopg.errors.InvalidColumnReference) as refused:
            connection.execute(f"INSERT INTO upserted VALUES (1, 1) ON CONFLICT {target} DO NOTHING".encode())
        assert "the primary key alone" in str(refused.value.diag.message_hint)


def test_definitions_keep_them(connection: Connection) -> None:
    def definition(name: str) -> str:
        [(_, text)] = rows(connection, f"SHOW CREATE TABLE {name}")
        return str(text)

    connection.execute('CREATE TABLE papa (id int PRIMARY KEY, "X" int UNIQUE)')
    written = (
        'CREATE TABLE junior (a INT REFERENCES papa ON DELETE CASCADE, b INT REFERENCES papa ("X"), UNIQUE (a, b))'
    )
    connection.execute(written.encode())
    assert definition("junior") == written
    connection.execute('ALTER TABLE papa RENAME TO "the papa"')
    assert definition("junior") == written.replace("papa", '"the papa"')
    connection.execute("CREATE SCHEMA apart")
    connection.execute('ALTER TABLE "the papa" SET SCHEMA apart')
    assert definition("junior") == written.replace("papa", 'apart."the papa"')
    connection.execute("ALTER SCHEMA apart RENAME TO away")
    connection.execute('ALTER TABLE away."the papa" RENAME COLUMN id TO key')
    made = (
        "CREATE TABLE junior (a INT, b INT, CONSTRAINT junior_a_b_key UNIQUE (a, b), CONSTRAINT junior_a_fkey "
        'FOREIGN KEY (a) REFERENCES away."the papa" (key) ON DELETE CASCADE, CONSTRAINT junior_b_fkey FOREIGN KEY (b) '
        'REFERENCES away."the papa" ("X"))'
    )
    assert definition("junior") == made
    connection.execute("DROP TABLE junior")
    connection.execute(made.encode())
    assert definition("junior") == made.replace("integer", "INT")
    connection.execute("SET search_path = away, public")
    connection.execute('CREATE TABLE public.niece (a int REFERENCES "the papa")')
    connection.execute("SET search_path = public")
    assert definition("niece") == 'CREATE TABLE public.niece (a INT REFERENCES away."the papa")'
    connection.execute('ALTER TABLE away."the papa" ALTER "X" TYPE bigint')
    connection.execute('DROP TABLE away."the papa" CASCADE')
    assert definition("junior") == "CREATE TABLE junior (a INT, b INT, CONSTRAINT junior_a_b_key UNIQUE (a, b))"


def test_another_type_in_the_lake(connection: Connection) -> None:
    """A column whose values are written anew has another name in the lake; keys follow it."""
    connection.execute("CREATE TABLE wide (id bigint PRIMARY KEY, code bigint UNIQUE)")
    connection.execute("CREATE TABLE refers (w bigint REFERENCES wide (code), UNIQUE (w))")
    connection.execute("ALTER TABLE wide ALTER code TYPE int")
    connection.execute("ALTER TABLE refers ALTER w TYPE int")
    with pytest.raises(psycopg.errors.DatatypeMismatch, match='"refers_w_fkey" cannot be implemented'):
        connection.execute("ALTER TABLE refers ALTER w TYPE text")
    with pytest.raises(psycopg.errors.DatatypeMismatch, match='"refers_w_fkey" cannot be implemented'):
        connection.execute("ALTER TABLE wide ALTER code TYPE text")
    found = rows(connection, "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'refers'::regclass")
    assert sorted(found) == [("FOREIGN KEY (w) REFERENCES wide(code) NOT VALID",), ("UNIQUE (w)",)]


def test_privileges(connection: Connection, module_server: Server) -> None:
    """A foreign key keeps its parent from being dropped, as a view over it does, and needs the same privilege."""
    connection.execute("CREATE TABLE guarded (id int PRIMARY KEY)")
    connection.execute("CREATE USER somebody")
    connection.execute("GRANT CREATE ON SCHEMA public TO somebody")
    with module_server.connect(user="somebody") as other:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            other.execute("CREATE TABLE pointing (a int REFERENCES guarded)")
        connection.execute("GRANT SELECT ON guarded TO somebody")
        other.execute("CREATE TABLE pointing (a int REFERENCES guarded)")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist):
        connection.execute("DROP TABLE guarded")
    connection.execute("DROP TABLE guarded CASCADE")


def test_psql_describes_them(module_server: Server, connection: Connection) -> None:
    connection.execute("CREATE TABLE customer (id int PRIMARY KEY, mail varchar UNIQUE)")
    connection.execute("CREATE TABLE purchase (id int PRIMARY KEY, customer int REFERENCES customer ON DELETE CASCADE)")
    described = module_server.psql("-c", r"\d customer", "-c", r"\d purchase").stdout
    key = "FOREIGN KEY (customer) REFERENCES customer(id) ON DELETE CASCADE NOT VALID"
    assert '    "customer_mail_key" UNIQUE CONSTRAINT, btree (mail) INVALID\n' in described
    assert f'Referenced by:\n    TABLE "purchase" CONSTRAINT "purchase_customer_fkey" {key}\n' in described
    assert f'Foreign-key constraints:\n    "purchase_customer_fkey" {key}\n' in described


def test_a_restart_keeps_them(server: Server) -> None:
    with server.connect() as connection:
        connection.execute('CREATE TABLE parent (id int PRIMARY KEY, "X" int UNIQUE)')
        connection.execute('CREATE TABLE child (a int REFERENCES parent, b int CHECK (b > 0) REFERENCES parent ("X"))')
        query = "SELECT oid, conname, conkey, confkey, pg_get_constraintdef(oid) FROM pg_constraint ORDER BY 1"
        before = rows(connection, query), rows(connection, "SHOW CREATE TABLE child")
    server.stop()
    again = Server(server.data)
    try:
        with again.connect() as connection:
            assert (rows(connection, query), rows(connection, "SHOW CREATE TABLE child")) == before
            with pytest.raises(psycopg.errors.DependentObjectsStillExist):
                connection.execute("DROP TABLE parent")
    finally:
        again.stop()


def test_stored_details() -> None:
    """What an earlier version has stored is read, and what is stored now comes back."""
    earlier = '{"checks": [{"name": "c", "condition": "a > 0"}], "lengths": {"v": 3}}'
    assert load_details("table", earlier) == Constraints((Check("c", "a > 0"),), (("v", 3),))
    made = Constraints(
        (Check("c", "a > 0", ("a",)),), (("v", 3),), (Unique(1, "u", ("a", "b"), ("c",), False, "DEFERRABLE"),),
        (ForeignKey(2, "f", ("a",), 7, ("x",), 1, True, "CASCADE", "SET NULL", ("a",)),),
    )  # fmt: skip
    assert load_details("table", dump_details(made)) == made
