"""The suites: where their tests come from, what they need, and how they are told which server to use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Suite:
    """One driver's tests.

    `source` is the package on PyPI whose source has them, or the name of an archive in the directory of suites.
    `packages` are installed to run them. `arguments` are pytest's, and `environment` its variables; in both `{host}`,
    `{port}`, `{user}` and `{database}` are the server's. `before` are statements that make ready the database.
    """

    name: str
    source: str
    packages: tuple[str, ...]
    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    drops: str = ""  # the directory of the source that would hide the installed package
    test_seconds: int = 10  # a test that runs longer hangs

    @property
    def is_archive(self) -> bool:
        return self.source.endswith(".tar.gz")


SUITES = {
    suite.name: suite
    for suite in (
        Suite(
            "psycopg3",
            "psycopg-3.2.13-tests.tar.gz",
            ("psycopg[binary]==3.2.13", "psycopg-pool", "anyio", "numpy", "shapely", "dnspython", "pproxy", "mypy"),
            (
                "tests", "--test-dsn", "host={host} port={port} user={user} dbname={database}",
                *(f"--ignore=tests/{name}" for name in ("pool", "crdb", "test_typing.py", "test_module.py")),
                "--ignore=tests/test_gevent.py",
                "-m", "not slow and not timing and not dns and not gevent and not flakey",
            ),
            {"PSYCOPG_IMPL": "binary"},
        ),
        Suite(
            "psycopg2",
            "psycopg2==2.9.13",
            ("psycopg2-binary==2.9.13",),
            ("tests", "-o", "python_files=test_*.py"),
            {
                "PSYCOPG2_TESTDB": "{database}", "PSYCOPG2_TESTDB_HOST": "{host}", "PSYCOPG2_TESTDB_PORT": "{port}",
                "PSYCOPG2_TESTDB_USER": "{user}",
            },
        ),
        Suite(
            "asyncpg",
            "asyncpg==0.32.0",
            ("asyncpg==0.32.0", "uvloop", "async_timeout", "distro"),
            (
                "tests", "--ignore=tests/test__sourcecode.py", "--ignore=tests/test__environment.py",
                # Of ranges; it leaves a type that others make.
                "--deselect=tests/test_codecs.py::TestCodecs::test_enum_and_range",
            ),
            {"PGHOST": "{host}", "PGPORT": "{port}", "PGUSER": "{user}", "PGDATABASE": "{database}"},
            before=("CREATE DATABASE postgres",),
            drops="asyncpg",
            test_seconds=30,
        ),
        Suite(
            "sqlalchemy",
            "sqlalchemy==2.0.58",
            ("sqlalchemy==2.0.58", "psycopg2-binary==2.9.13"),
            (
                "-p", "without_extensions", "-p", "without_char", "test/dialect/test_suite.py", "--maxfail=1000000",
                "--dburi", "postgresql+psycopg2://{user}@{host}:{port}/{database}",
            ),
            {"PYTHONPATH": str(Path(__file__).parent / "plugins")},
            before=("CREATE SCHEMA test_schema", "CREATE SCHEMA test_schema_2"),
            test_seconds=60,  # the first test of a class makes all of its tables
        ),
    )
}  # fmt: skip
