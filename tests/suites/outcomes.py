"""What pytest says of each test, and which tests are out of scope."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

# SQLAlchemy's classes are named for the server's version too.
_VERSION = re.compile(r"_postgresql\+\w+?_\d+(_\d+)*")
SCOPE = Path(__file__).parent / "scope"


def read_outcomes(report: Path) -> dict[str, str]:
    """`passed`, `failed`, `error` or `skipped` of each test in a JUnit report, by `module.class::test[parameters]`.

    None without a report.
    """
    outcomes: dict[str, str] = {}
    if not report.exists():
        return outcomes
    for case in ElementTree.parse(report).iter("testcase"):
        name = _VERSION.sub("", f"{case.get('classname')}::{case.get('name')}")
        child = next((child.tag for child in case if child.tag in ("failure", "error", "skipped")), "passed")
        outcome = {"failure": "failed"}.get(child, child)
        if outcomes.get(name) in (None, "passed"):  # a test may pass and its end fail
            outcomes[name] = outcome
    return outcomes


@dataclass(frozen=True)
class Exclusion:
    """Tests that are out of scope, by a regular expression that is searched in their names, and why."""

    pattern: str
    reason: str


def read_scope(name: str) -> list[Exclusion]:
    """The exclusions of a suite: a line each, the expression, two blanks or more, and the reason."""
    found = []
    for line in (SCOPE / f"{name}.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            pattern, reason = re.split(r"\s{2,}", line.strip(), maxsplit=1)
            found.append(Exclusion(pattern, reason))
    return found


@dataclass(frozen=True)
class Comparison:
    """The tests of a suite that PostgreSQL passes: how many there are, are in scope, and pass on Sparkwave.

    `failing` are those in scope that do not, with their outcome; `unused` the exclusions that leave nothing out.
    """

    total: int
    in_scope: int
    passed: int
    failing: dict[str, str]
    unused: list[Exclusion]

    @property
    def share(self) -> float:
        return self.passed / self.in_scope if self.in_scope else 0.0


def compare(ours: dict[str, str], theirs: dict[str, str], scope: list[Exclusion]) -> Comparison:
    """Judge Sparkwave's outcomes by PostgreSQL's. A test that Sparkwave did not run has failed."""
    wanted = [name for name, outcome in theirs.items() if outcome == "passed"]
    patterns = [re.compile(exclusion.pattern) for exclusion in scope]
    inside = [name for name in wanted if not any(pattern.search(name) for pattern in patterns)]
    failing = {name: ours.get(name, "not run") for name in inside if ours.get(name) != "passed"}
    unused = [
        exclusion
        for exclusion, pattern in zip(scope, patterns, strict=True)
        if not any(pattern.search(name) for name in wanted)
    ]
    return Comparison(len(wanted), len(inside), len(inside) - len(failing), failing, unused)
