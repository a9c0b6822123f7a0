"""Runs the drivers' own tests against Sparkwave and PostgreSQL, and tells how many of PostgreSQL's pass here."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Mapping
from pathlib import Path

import psycopg
from postgres import Postgres
from servers import Server

from .outcomes import Comparison, compare, read_outcomes, read_scope
from .suites import SUITES, Suite

HOME = Path(".venv-suites")
AIM = 0.92
_SUITE_SECONDS = 1800


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m suites", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(SUITES)}; else all")
    parser.add_argument("--archives", type=Path, default=Path("../shared/suites"), help="where archives of tests are")
    parser.add_argument("--tests", default="", help="only the tests that pytest's -k takes by this")
    parser.add_argument("--failing", action="store_true", help="list the tests that fail")
    arguments = parser.parse_args()
    worst = 1.0
    for suite in (SUITES[name] for name in arguments.names or SUITES):
        archive = arguments.archives / suite.source
        if suite.is_archive and not archive.exists():
            print(f"{suite.name}: left out, there is no {archive}")
            continue
        found = _run(suite, archive, ("-k", arguments.tests) if arguments.tests else ())
        _tell(suite, found, arguments.failing)
        worst = min(worst, found.share)
    return 0 if worst >= AIM else 1


def _run(suite: Suite, archive: Path, more: tuple[str, ...]) -> Comparison:
    python = _installed(suite)
    source = _unpacked(suite, archive, python)
    postgres = Postgres()
    try:
        theirs = _outcomes(suite, python, source, postgres.port, more, "postgres")
    finally:
        postgres.stop()
    with tempfile.TemporaryDirectory(prefix="sparkwave-suite-") as data:
        server = Server(Path(data) / "data")
        try:
            with server.connect() as own:
                own.execute("ALTER SYSTEM SET atomic_transactions = on")
                own.execute("ALTER SYSTEM SET unique_violations = on")
            ours = _outcomes(suite, python, source, server.port, more, "sparkwave")
        finally:
            server.stop()
    return compare(ours, theirs, read_scope(suite.name))


def _installed(suite: Suite) -> Path:
    """The Python of an environment that has the suite's packages."""
    directory = HOME / suite.name
    python = (directory / "bin" / "python").absolute()
    done = directory / "installed"
    wanted = "\n".join(suite.packages)
    if not done.exists() or done.read_text() != wanted:
        print(f"{suite.name}: installing {', '.join(suite.packages)} into {directory} ...", flush=True)
        venv.create(directory, with_pip=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "pytest==8.*", "pytest-timeout", "setuptools", *suite.packages], check=True)
        done.write_text(wanted)
    return python


def _unpacked(suite: Suite, archive: Path, python: Path) -> Path:
    """The directory of the suite's source."""
    target = HOME / "source" / suite.name
    if not target.exists():
        if not suite.is_archive:
            downloads = HOME / "source" / "downloads"
            pip = [str(python), "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
            package = suite.source.partition("==")[0]  # what builds it may be binary
            command = [*pip, "--no-binary", package, "--dest", str(downloads), suite.source]
            subprocess.run(command, check=True)
            [archive] = downloads.glob(suite.source.replace("==", "-") + "*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(target, filter="data")
    inside = target if suite.is_archive else next(path for path in target.iterdir() if path.is_dir())
    if suite.drops:
        shutil.rmtree(inside / suite.drops, ignore_errors=True)
    return inside


def _outcomes(suite: Suite, python: Path, source: Path, port: int, more: tuple[str, ...], whose: str) -> dict[str, str]:
    place = {"host": "127.0.0.1", "port": str(port), "user": "root", "database": "dev"}
    _prepare(suite, place)
    report = (HOME / f"{suite.name}-{whose}.xml").absolute()
    report.unlink(missing_ok=True)
    command = [str(python), "-m", "pytest", *(argument.format(**place) for argument in suite.arguments), *more]
    command += ["--rootdir=.", f"--junitxml={report}", f"--timeout={suite.test_seconds}", "-q", "--tb=native"]
    environment = {name: value.format(**place) for name, value in suite.environment.items()}
    with (HOME / f"{suite.name}-{whose}.log").open("w") as log:
        print(f"{suite.name}: on {whose}, output in {log.name} ...", flush=True)
        settings = _environment(environment)
        subprocess.run(command, cwd=source, env=settings, stdout=log, stderr=log, timeout=_SUITE_SECONDS, check=False)
    return read_outcomes(report)


def _environment(own: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "PYTEST", "PYTHON"))}
    return kept | dict(own)


def _prepare(suite: Suite, place: Mapping[str, str]) -> None:
    conninfo = "host={host} port={port} user={user} dbname={database}".format(**place)
    with psycopg.connect(conninfo, autocommit=True) as connection:
        for statement in suite.before:
            with contextlib.suppress(psycopg.errors.DuplicateDatabase):
                connection.execute(statement.encode())


def _tell(suite: Suite, found: Comparison, lists: bool) -> None:
    left_out = found.total - found.in_scope
    print(
        f"{suite.name}: {found.passed} of {found.in_scope} pass, {found.share:.1%} (PostgreSQL: {found.total}, "
        f"of which {left_out} are out of scope)"
    )
    for exclusion in found.unused:
        print(f"  leaves nothing out: {exclusion.pattern}")
    for name, outcome in sorted(found.failing.items()) if lists else ():
        print(f"  {outcome}  {name}")


if __name__ == "__main__":
    sys.exit(main())
