"""SQLAlchemy 2 over psycopg, psycopg2 and asyncpg: reflection, Core, the ORM, streaming, pools."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

MOMENT = dt.datetime(2024, 2, 29, 1, 2, 3, 4)


class Base(orm.DeclarativeBase):
    pass


class Author(Base):
    __tablename__ = "orm_authors"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True, autoincrement=False)
    name: orm.Mapped[str]
    books: orm.Mapped[list[Book]] = orm.relationship(
        primaryjoin=lambda: orm.foreign(Book.author_id) == Author.id, back_populates="author"
    )


class Book(Base):
    __tablename__ = "orm_books"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    title: orm.Mapped[str | None]
    author_id: orm.Mapped[int]
    author: orm.Mapped[Author] = orm.relationship(
        primaryjoin=lambda: orm.foreign(Book.author_id) == Author.id, back_populates="books"
    )


@pytest.fixture(scope="module", params=["psycopg", "psycopg2"])
def engine(request: pytest.FixtureRequest) -> Iterator[sa.Engine]:
    made = sa.create_engine(f"postgresql+{request.param}://", isolation_level="AUTOCOMMIT")
    yield made
    made.dispose()


@pytest.fixture
def schema(engine: sa.Engine, name: str) -> Iterator[str]:
    """A schema with a table, a view, a materialized view and comments."""
    statements = f"""
        CREATE SCHEMA {name};
        CREATE TABLE {name}.people (
            id int PRIMARY KEY, name varchar NOT NULL, amount numeric(10,2), seen timestamp,
            at timestamptz, day date, tags varchar[], details jsonb, ratio double precision, big bigint, yes boolean);
        CREATE TABLE {name}.pairs (a int, b varchar, c int, PRIMARY KEY (b, a));
        CREATE VIEW {name}.names AS SELECT id, name FROM {name}.people;
        CREATE MATERIALIZED VIEW {name}.totals AS SELECT name, count(*) AS n FROM {name}.people GROUP BY name;
        COMMENT ON TABLE {name}.people IS 'who''s who';
        COMMENT ON COLUMN {name}.people.name IS 'as on the door'
    """
    with engine.connect() as connection:
        for statement in statements.split(";"):
            connection.exec_driver_sql(statement)
    yield name
    with engine.connect() as connection:
        connection.exec_driver_sql(f"DROP SCHEMA {name} CASCADE")


def test_reflection(engine: sa.Engine, schema: str) -> None:
    inspector = sa.inspect(engine)
    assert inspector.default_schema_name == "public"
    assert {"public", schema} <= set(inspector.get_schema_names())
    assert sorted(inspector.get_table_names(schema)) == ["pairs", "people"]
    assert inspector.get_view_names(schema) == ["names"]
    assert inspector.get_materialized_view_names(schema) == ["totals"]
    assert inspector.has_table("people", schema=schema)
    assert not inspector.has_table("nobody", schema=schema)
    columns = {column["name"]: column for column in inspector.get_columns("people", schema)}
    assert {name: str(column["type"]) for name, column in columns.items()} == {
        "id": "INTEGER", "name": "VARCHAR", "amount": "NUMERIC(10, 2)", "seen": "TIMESTAMP", "at": "TIMESTAMP",
        "day": "DATE", "tags": "ARRAY", "details": "JSONB", "ratio": "DOUBLE PRECISION", "big": "BIGINT",
        "yes": "BOOLEAN",
    }  # fmt: skip
    assert columns["at"]["type"].timezone
    assert not columns["seen"]["type"].timezone
    assert isinstance(columns["tags"]["type"].item_type, sa.VARCHAR)
    assert [name for name, column in columns.items() if not column["nullable"]] == ["id", "name"]
    assert columns["name"]["comment"] == "as on the door"
    assert inspector.get_table_comment("people", schema) == {"text": "who's who"}
    assert inspector.get_pk_constraint("people", schema)["constrained_columns"] == ["id"]
    assert inspector.get_pk_constraint("pairs", schema)["constrained_columns"] == ["b", "a"]
    assert inspector.get_foreign_keys("people", schema) == []
    assert inspector.get_indexes("people", schema) == []
    assert inspector.get_unique_constraints("people", schema) == []
    assert inspector.get_check_constraints("people", schema) == []
    assert [column["name"] for column in inspector.get_columns("totals", schema)] == ["name", "n"]
    assert "name" in inspector.get_view_definition("names", schema)
    assert "GROUP BY" in inspector.get_view_definition("totals", schema)


def test_a_whole_schema_is_reflected(engine: sa.Engine, schema: str) -> None:
    metadata = sa.MetaData()
    metadata.reflect(engine, schema=schema, views=True)
    assert set(metadata.tables) == {f"{schema}.{name}" for name in ("people", "pairs", "names", "totals")}
    people = metadata.tables[f"{schema}.people"]
    assert [column.name for column in people.primary_key] == ["id"]
    with engine.connect() as connection:
        connection.execute(people.insert(), [{"id": 1, "name": "ann", "tags": ["x"], "details": {"a": 1}}])
        found = connection.execute(sa.select(people.c.name, people.c.tags, people.c.details)).one()
        assert tuple(found) == ("ann", ["x"], {"a": 1})


def test_core(engine: sa.Engine, name: str) -> None:
    metadata = sa.MetaData()
    items = sa.Table(
        name, metadata,
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.String),
        sa.Column("amount", sa.Numeric(10, 2)),
        sa.Column("at", sa.DateTime),
        sa.Column("tags", postgresql.ARRAY(sa.Integer)),
        sa.Column("details", postgresql.JSONB),
        sa.Column("blob", sa.LargeBinary),
    )  # fmt: skip
    metadata.create_all(engine)
    metadata.create_all(engine)
    row = {"id": 1, "name": "a", "amount": Decimal("1.50"), "at": MOMENT, "tags": [1, 2], "details": {"k": [1]}}
    with engine.connect() as connection:
        connection.execute(items.insert(), {**row, "blob": b"\0\xff"})
        connection.execute(items.insert(), [{**row, "id": i, "blob": None} for i in range(2, 60)])
        found = connection.execute(sa.select(items).where(items.c.id == 1)).one()
        assert tuple(found) == (*row.values(), b"\0\xff")
        assert connection.scalar(sa.select(sa.func.count()).select_from(items)) == 59
        assert connection.scalar(sa.select(sa.func.sum(items.c.amount))) == Decimal("88.50")
        in_list = sa.select(items.c.id).where(items.c.id.in_([3, 5, 9999])).order_by(items.c.id.desc())
        assert connection.scalars(in_list).all() == [5, 3]
        page = sa.select(items.c.id).order_by(items.c.id).limit(2).offset(10)
        assert connection.scalars(page).all() == [11, 12]
        changed = connection.execute(items.update().where(items.c.id > 50).values(name="z", amount=items.c.amount + 1))
        assert changed.rowcount == 9
        likes = sa.select(sa.func.count()).where(items.c.name.ilike("Z%"))
        assert connection.scalar(likes) == 9
        returned = connection.execute(items.delete().where(items.c.id > 50).returning(items.c.id, items.c.name))
        assert sorted(returned.all()) == [(i, "z") for i in range(51, 60)]
        exists = sa.select(sa.exists().where(items.c.details["k"][0].astext == "1"))
        assert connection.scalar(exists) is True
        grouped = (
            sa.select(sa.case((items.c.id < 10, "low"), else_="high").label("level"), sa.func.count())
            .group_by("level").having(sa.func.count() > 1).order_by("level")
        )  # fmt: skip
        assert connection.execute(grouped).all() == [("high", 41), ("low", 9)]
        ranked = sa.select(items.c.id, sa.func.row_number().over(order_by=items.c.id.desc()).label("r")).subquery()
        assert connection.execute(sa.select(ranked.c.id).where(ranked.c.r == 1)).scalar() == 50
        recursive = sa.select(sa.literal(1).label("n")).cte("n", recursive=True)
        recursive = recursive.union_all(sa.select(recursive.c.n + 1).where(recursive.c.n < 5))
        assert connection.scalars(sa.select(recursive.c.n)).all() == [1, 2, 3, 4, 5]
    metadata.drop_all(engine)
    assert not sa.inspect(engine).has_table(name)


def test_streaming(engine: sa.Engine) -> None:
    blocks = engine.execution_options(isolation_level="READ COMMITTED")
    with blocks.connect() as connection:
        streaming = connection.execution_options(stream_results=True, max_row_buffer=100)
        result = streaming.execute(sa.text("SELECT i FROM generate_series(1, 1000) s (i)"))
        assert [len(part) for part in result.partitions(400)] == [400, 400, 200]


def test_transactions_and_errors(engine: sa.Engine, name: str) -> None:
    """The ordinary isolation level: BEGIN and COMMIT around everything."""
    blocks = engine.execution_options(isolation_level="READ COMMITTED")
    with blocks.begin() as connection:
        connection.exec_driver_sql(f"CREATE TABLE {name} (k int PRIMARY KEY)")
    with blocks.begin() as connection:
        connection.execute(sa.text(f"INSERT INTO {name} VALUES (:k)"), [{"k": 1}, {"k": 2}])
    with pytest.raises(sa.exc.ProgrammingError) as caught, blocks.begin() as connection:
        connection.exec_driver_sql("SELECT * FROM nowhere_to_be_found")
    original: Any = caught.value.orig
    assert getattr(original, "sqlstate", None) or original.pgcode == "42P01"
    with blocks.connect() as connection:
        assert connection.scalar(sa.text(f"SELECT count(*) FROM {name}")) == 2
        assert connection.get_isolation_level() in ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
    with blocks.begin() as connection:
        connection.exec_driver_sql(f"DROP TABLE {name}")


def test_orm(engine: sa.Engine) -> None:
    Base.metadata.create_all(engine)
    with orm.Session(engine) as session:
        session.add_all([
            Author(id=1, name="ann", books=[Book(title="one"), Book(title=None)]), Author(id=2, name="bob"),
        ])  # fmt: skip
        session.commit()
    with orm.Session(engine) as session:
        joined = sa.select(Author.name, sa.func.count(Book.id)).outerjoin(Author.books).group_by(Author.name)
        assert session.execute(joined.order_by(Author.name)).all() == [("ann", 2), ("bob", 0)]
        for strategy in (orm.selectinload, orm.joinedload, orm.subqueryload):
            authors = sa.select(Author).options(strategy(Author.books)).order_by(Author.id)
            assert [len(author.books) for author in session.scalars(authors).unique()] == [2, 0]
            session.expunge_all()
        ann = session.get_one(Author, 1)
        ann.name = "anna"
        ann.books[0].title = "uno"
        session.delete(ann.books[1])
        session.commit()
        assert session.scalars(sa.select(Book.title).where(Book.author.has(name="anna"))).all() == ["uno"]
        assert session.execute(sa.update(Author).where(Author.id == 2).values(name="bo")).rowcount == 1
        assert session.scalars(sa.select(Author.name).order_by(Author.id)).all() == ["anna", "bo"]
    Base.metadata.drop_all(engine)


def test_asyncio(name: str) -> None:
    address = "postgresql+asyncpg://{PGUSER}@{PGHOST}:{PGPORT}/{PGDATABASE}".format(**os.environ)

    async def main() -> None:
        engine = create_async_engine(address)
        metadata = sa.MetaData()
        items = sa.Table(
            name, metadata,
            sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
            sa.Column("name", sa.String),
            sa.Column("details", postgresql.JSONB),
        )  # fmt: skip
        async with engine.connect() as connection:
            await connection.run_sync(metadata.create_all)
            await connection.commit()
            added = [{"id": i, "name": str(i), "details": {"i": i}} for i in range(20)]
            await connection.execute(items.insert(), added)
            await connection.commit()
        # Streaming is a cursor, which asyncpg has only where a transaction has begun.
        async with engine.connect() as connection:
            await connection.execution_options(postgresql_readonly=True)
            streamed = await connection.stream(sa.select(items).order_by(items.c.id))
            assert [row.details["i"] async for row in streamed] == list(range(20))
            reflected = sa.MetaData()
            await connection.run_sync(lambda own: reflected.reflect(own, only=[name]))
            assert [column.name for column in reflected.tables[name].columns] == ["id", "name", "details"]
            await connection.commit()
        async with AsyncSession(engine) as session:
            assert await session.scalar(sa.select(items.c.name).where(items.c.id.between(3, 3))) == "3"
        async with engine.connect() as connection:
            await connection.run_sync(metadata.drop_all)
            await connection.commit()
        await engine.dispose()

    asyncio.run(main())
