"""What real clients sent to PostgreSQL, recorded statement by statement (`tests/client_queries/*.sql`).

Each file begins with the client's startup and message flows. A statement follows two comment lines: its number, the
versions of the server it was sent to (`[rw]`: a server that answers RisingWave's statements too), how often and in
which messages it came; and what the client was asked to do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import pq

DIRECTORY = Path(__file__).parent / "client_queries"

_ENTRY = re.compile(
    r"^-- @(?P<number>\d+) \[(?P<servers>[^\]]*)\] n=\d+ mode: (?P<mode>.*)\n-- action: (?P<action>.*)\n"
    r"(?P<sql>(?:.*\n?)*?)(?=^-- @\d+ |\Z)",
    re.MULTILINE,
)
_COMMENT = re.compile(r"\s*(?:/\*.*?\*/|--[^\n]*\n)", re.DOTALL)
_CATALOG = re.compile(
    r"\b(pg_\w+|information_schema|rw_\w+|current_\w+|session_user|version\(\)|set_config|has_\w+_privilege)\b|^show\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Recorded:
    """A statement as a client sent it. `oids` are those of its Parse; None for a simple Query."""

    client: str
    number: int
    servers: frozenset[str]
    action: str
    sql: str
    oids: tuple[int, ...] | None

    @property
    def id(self) -> str:
        return f"{self.client}@{self.number}"

    @property
    def is_catalog_query(self) -> bool:
        """Whether it reads the catalogs or asks for the session's settings, and writes nothing."""
        text = _COMMENT.sub("", self.sql, count=1) if _COMMENT.match(self.sql) else self.sql
        reads = re.match(r"(select|with|show)\b", text, re.IGNORECASE) is not None
        return reads and "pg_sleep" not in text and _CATALOG.search(text) is not None


def recorded(client: str = "*") -> Iterator[Recorded]:
    for file in sorted(DIRECTORY.glob(f"{client}.sql")):
        for match in _ENTRY.finditer(file.read_text()):
            oids = None
            if "simple" not in match["mode"]:
                listed = re.search(r"param OIDs \[([\d, ]*)\]", match["mode"])
                oids = tuple(int(oid) for oid in listed[1].split(",")) if listed else ()
            sql = match["sql"].strip().removesuffix(";")
            servers = frozenset(match["servers"].split(","))
            yield Recorded(file.stem, int(match["number"]), servers, match["action"], sql, oids)


# What stands around a parameter, and what a client that looks at table t gives there; the first that fits counts.
_GIVEN: tuple[tuple[str, str | list[str] | Callable[[Mapping[str, int]], str]], ...] = (
    (r"relkind = ANY\(\$N\)", "{r,p,v,m,f}"),
    (r"oid = any\(\$N::oid\[\]\)", "{1043,1231}"),
    (r"pg_type\.oid = \$N|\bt\.oid = \$N.*typname", "1043"),
    (r"(?:relkind|contype) = ANY \(ARRAY\[[^\]]*\$N::", ["r", "p", "f", "v", "m"]),
    (r"to_regtype\(\$N\)", "varchar"),
    (r"CAST\(\$N AS REGCLASS\)", "pg_catalog.pg_class"),
    (r"\$N::regclass", "t"),
    (r"current_setting\(\$N", "default_table_access_method"),
    (r"(?:table_name|relname|\br\.name) (?:=|LIKE) \$N", "t"),
    (r"relname IN \([^)]*\$N", "t"),
    (r"(?:conrelid|indrelid) IN \([^)]*\$N|where t\.oid = \$N", lambda oids: str(oids["t"])),
    (r"nspname NOT LIKE \$N", "pg_"),
    (r"nspname != \$N", "pg_catalog"),
    (r"(?:nspname|table_schema) (?:=|LIKE) \$N", "public"),
    (r"table_catalog = \$N", "dev"),
    (r"amname = \$N", "btree"),
    (r"relpersistence (?:!=) \$N", "t"),
    (r"relpersistence = \$N", "p"),
    (r"contype = \$N", "p"),
    (r"typtype = \$N", "e"),
    (r"get_constraintdef\([\w.]+, \$N", "true"),
    (r"idx\.ord \+ \$N", "1"),
    (r"indexdef\([^$]*\$\d+(?:::INTEGER)?, \$N\)", "true"),
    (r"generate_subscripts\([\w.]+, \$N", "1"),
    (r"attidentity !?= \$N", ""),
    (r"json_build_object\([^)]*?\$N", "key"),
    (r"\$N::VARCHAR, pg_catalog\.pg_sequence", "key"),
    (r"attnum = \$N|attnum > \$N|objsubid = \$N|attcollation != \$N|contypid != \$N", "0"),
)


def execute(
    connection: pq.abc.PGconn, statement: Recorded, sql: str, values: list[str | None]
) -> list[pq.abc.PGresult]:
    """Send a statement as its client did, with text for its parameters. Raises psycopg.DatabaseError."""
    if statement.oids is None:
        connection.send_query(sql.encode())
    else:
        types = [*statement.oids, *(0 for _ in values[len(statement.oids) :])]
        connection.send_query_params(sql.encode(), [None if v is None else v.encode() for v in values], types)
    results = []
    while (result := connection.get_result()) is not None:
        results.append(result)
    for result in results:
        if result.status == pq.ExecStatus.FATAL_ERROR:
            code = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
            raise psycopg.errors.lookup(code)(result.error_message.decode())
    return results


def arguments(statement: Recorded, oids: Mapping[str, int]) -> list[str | None]:
    """Text for the statement's parameters, as its client gives it; NULL where any value does. `oids`: relations."""
    text = re.sub(r"\s+", " ", statement.sql)
    count = max((int(number) for number in re.findall(r"\$(\d+)", text)), default=0)
    return [_argument(text, number, oids) for number in range(1, count + 1)]


def _argument(text: str, number: int, oids: Mapping[str, int]) -> str | None:
    for pattern, given in _GIVEN:
        found = re.search(pattern.replace(r"\$N", rf"\${number}(?!\d)"), text, re.IGNORECASE)
        if found is None:
            continue
        if isinstance(given, list):
            return given[found[0].count("$") - 1]
        return given if isinstance(given, str) else given(oids)
    return None
