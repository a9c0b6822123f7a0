"""The fuzzer of `fuzz/`: what it found once, some seeds of every path, and that it notices what is wrong."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fuzz.cases import PATHS, Case, random_case, read
from fuzz.compare import Answer, difference
from fuzz.play import Bench
from fuzz.shrink import shrunk

REGRESSIONS = sorted((Path(__file__).parent / "regressions").glob("*.sql"))
SHRINK_SECONDS = 60
LONG_SECONDS = 600

# Seeds for every commit, and seconds for all tests.
QUICK = {"process": (0,), "refresh": (0,), "alter": (0,), "kill": (0,)}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    opened = Bench(tmp_path_factory.mktemp("fuzz"))
    yield opened
    opened.close()


def hold(bench: Bench, case: Case) -> None:
    """A case that fails is made small and shown as it is kept in `tests/regressions`, with the fix."""
    failure = bench.play(case)
    if failure:
        case, failure = shrunk(bench, case, failure, SHRINK_SECONDS)
        pytest.fail(f"{case.title}: {failure}\n\n{case.text()}", pytrace=False)


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
def test_regression(bench: Bench, path: Path) -> None:
    hold(bench, read(path))


@pytest.mark.parametrize(("path", "seed"), [(path, seed) for path, seeds in QUICK.items() for seed in seeds])
def test_random_case(bench: Bench, path: str, seed: int) -> None:
    hold(bench, random_case(seed, PATHS[path]))


def test_a_case_is_the_same_again() -> None:
    for path in PATHS.values():
        assert random_case(7, path) == random_case(7, path)
        assert len({random_case(seed, path).statements for seed in range(20)}) == 20


def test_what_is_wrong_is_noticed_and_made_small(bench: Bench) -> None:
    """A row that only one of the two servers has got: each says what it is."""
    row = "INSERT INTO s1.t SELECT 9 WHERE version() LIKE '%RisingWave%'"
    more = ("CREATE TABLE s1.other (a int)", "INSERT INTO s1.t VALUES (1), (2)", "INSERT INTO s1.other VALUES (1)")
    case = Case("wrong", ("CREATE TABLE s1.t (a int)", *more, row, *more[1:], "FLUSH"))
    failure = bench.play(case)
    assert failure
    smaller, again = shrunk(bench, case, failure, SHRINK_SECONDS)
    assert again.kind == failure.kind == "other counts"
    assert smaller.statements == ("CREATE TABLE s1.t (a int)", row)


def test_rows_are_compared_by_their_types() -> None:
    one = Answer(("int4", "float8"), (("1", "0.1"), ("1", "0.1"), (None, "0.30000000000000004")))
    assert not difference(one, Answer(("int8", "numeric"), ((None, "0.3"), ("1", "0.100"), ("1", "0.1"))))
    assert difference(one, Answer(("int4", "float8"), one.rows[1:])).startswith("extra   ('1', '0.1')")
    text = Answer(("varchar",), (("1.0",),))
    assert difference(text, Answer(("text",), (("1",),)))
    assert not difference(Answer(("numeric",), (("1.0",),)), Answer(("numeric",), (("1",),)))


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_ten_minutes(bench: Bench) -> None:
    """Cases of all paths that need no Spark, one after another."""
    deadline = time.monotonic() + LONG_SECONDS
    for seed, path in ((seed, path) for seed in itertools.count(1000) for path in QUICK):
        hold(bench, random_case(seed, PATHS[path]))
        if time.monotonic() > deadline:
            break


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("path", ["spark-fill", "spark-epochs"])
def test_on_spark(bench: Bench, path: str) -> None:
    for seed in range(3):
        hold(bench, random_case(seed, PATHS[path]))
