"""`make dbt`: the dbt project of examples/dbt on a server of its own, with the flights that left New York in 2013.

It loads tables, runs `dbt build`, inserts the flights of December, and lets dbt test the views again, which have
followed by themselves.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psycopg

from sparkwave.server.demo import flights
from sparkwave.server.demo.local_server import LocalServer, ServerError, local_server
from sparkwave.server.demo.screen import Screen
from sparkwave.server.demo.tour import copy_csv

ROOT = Path(__file__).parent.parent
PROJECT = ROOT / "examples" / "dbt"
DBT = ROOT / ".venv-clients" / "bin" / "dbt"
LOADED = ("airlines", "weather", "flights")
BY_SEASON = """SELECT season, sum(flights)::bigint AS flights, sum(lost)::bigint AS lost, max(worst_delay) AS worst
FROM marts.airline_delays
GROUP BY season
ORDER BY season"""


def main() -> int:
    """Run the example. Returns the exit code."""
    if not DBT.exists():
        print("dbt is not installed; `make clients` does that", file=sys.stderr)
        return 1
    try:
        with local_server("--spark-start", "eager") as server:
            run(Screen(), server)
    except subprocess.CalledProcessError as error:
        print(f"\ndbt: ended with {error.returncode}", file=sys.stderr)
        return 1
    except (ServerError, psycopg.Error) as error:
        print(f"\ndbt: {error}", file=sys.stderr)
        return 1
    return 0


def run(screen: Screen, server: LocalServer) -> None:
    """All steps. Raises CalledProcessError when dbt fails."""
    connection = server.connect()
    # An administrator allows Spark applications that are made for one backfill.
    connection.execute("ALTER SYSTEM SET serverless_backfill_enabled = true")
    screen.step("1. Load tables, flights up to November")
    all_flights = flights.rows("flights")
    for table in LOADED:
        frame = flights.rows(table)
        connection.execute(flights.TABLES[table])
        held_back = flights.is_held_back(frame) if table == "flights" else None
        count = copy_csv(connection, table, flights.to_csv(frame if held_back is None else frame[~held_back]))
        screen.write(f"  {table}: {count:,} rows")
    screen.step("2. dbt build")
    dbt(screen, server, "build")
    show(screen, connection)
    screen.step("3. The flights of December arrive; nothing is run again")
    count = copy_csv(connection, "flights", flights.to_csv(all_flights[flights.is_held_back(all_flights)]))
    started = time.monotonic()
    connection.execute("FLUSH")
    screen.write(f"  {count:,} rows; the views had followed {time.monotonic() - started:.1f} s later")
    show(screen, connection)
    screen.step("4. dbt test")
    dbt(screen, server, "test")
    screen.step("5. A model is changed: the new view takes the old one's place when it is filled")
    dbt(screen, server, "run", "--select", "airline_delays", "--vars", "zero_downtime: true")
    screen.step("6. dbt docs generate")
    dbt(screen, server, "docs", "generate")


def dbt(screen: Screen, server: LocalServer, *arguments: str) -> None:
    """Run a command of dbt in the project, its files beside the server's."""
    screen.write(screen.dim(f"    dbt {' '.join(arguments)}"))
    places = {"DBT_TARGET_PATH": str(server.directory / "target"), "DBT_LOG_PATH": str(server.directory / "logs")}
    settings = {"DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "SPARKWAVE_PORT": str(server.port), **places}
    colours = [] if screen.is_live else ["--no-use-colors"]
    environment = {**os.environ, "DBT_PROFILES_DIR": ".", **settings}
    subprocess.run([str(DBT), *colours, *arguments], cwd=PROJECT, env=environment, check=True)


def show(screen: Screen, connection: psycopg.Connection) -> None:
    """Print the view of delays."""
    screen.statement(BY_SEASON)
    cursor = connection.execute(BY_SEASON)
    screen.table([column.name for column in cursor.description or ()], cursor.fetchall())


if __name__ == "__main__":
    sys.exit(main())
