"""Makes a failing case small: fewer statements, fewer rows, shorter queries, as long as it fails alike."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import sqlglot
from sqlglot import exp

from .cases import CREATE_VIEW, Case
from .play import Bench, Failure

_ROWS = re.compile(r"(INSERT INTO .*? VALUES )(\(.*\))((?: ON CONFLICT.*)?)", re.DOTALL)


def shrunk(bench: Bench, case: Case, failure: Failure, seconds: float) -> tuple[Case, Failure]:
    """The smallest case found in time, and how it fails."""
    shrinking = _Shrinking(bench, case, failure, time.monotonic() + seconds)
    shrinking.run()
    return shrinking.case, shrinking.failure


_CHANGES = ("INSERT ", "UPDATE ", "DELETE ")
_KINDS: tuple[str | tuple[str, ...], ...] = (
    (*_CHANGES, "BEGIN", "COMMIT", "ROLLBACK", "FLUSH", "ALTER SYSTEM", "KILL", "RESTART"),
    ("ALTER SYSTEM", "BEGIN", "COMMIT", "KILL", "RESTART"),
    *(("BEGIN", "COMMIT"), "ALTER SYSTEM", "UPDATE ", "DELETE "),
)


class _Shrinking:
    def __init__(self, bench: Bench, case: Case, failure: Failure, deadline: float) -> None:
        self.bench, self.case, self.failure, self.deadline = bench, case, failure, deadline

    def run(self) -> None:
        if self.failure.place >= 0:
            self.case = replace(self.case, statements=self.case.statements[: self.failure.place + 1])
        self._drop_views()
        self._drop_kinds()
        self._fewer(list(self.case.statements))
        before: tuple[str, ...] = ()
        while before != self.case.statements and time.monotonic() < self.deadline:
            before = self.case.statements
            self._single_rows()
            self._shorter_views()
            self._fewer(list(self.case.statements))

    def _fails(self, statements: list[str]) -> bool:
        """Whether these fail as the case does; if so, they are the case from now on."""
        if time.monotonic() > self.deadline:
            return False
        smaller = replace(self.case, statements=tuple(statements))
        try:
            failure = self.bench.play(smaller)
        except RuntimeError:
            return False
        if failure is None or failure.kind != self.failure.kind:
            return False
        self.case, self.failure = smaller, failure
        return True

    def _drop_views(self) -> None:
        """Without the views that the failing one does not read, if it is a view that fails."""
        views = {
            s.removeprefix(CREATE_VIEW).split(" ")[0]: s for s in self.case.statements if s.startswith(CREATE_VIEW)
        }
        needed = [name for name in views if re.search(rf"{re.escape(name)}\b", self.failure.statement)]
        for name in needed:
            needed += [
                other for other in views if other not in needed and re.search(rf"{re.escape(other)}\b", views[name])
            ]
        gone = [statement for name, statement in views.items() if name not in needed]
        if needed:
            self._fails([s for s in self.case.statements if s not in gone])

    def _drop_kinds(self) -> None:
        """Without all statements of a kind at once: often they have nothing to do with it."""
        for words in _KINDS:
            fewer = [s for s in self.case.statements if not s.startswith(words)]
            if len(fewer) < len(self.case.statements):
                self._fails(fewer)

    def _fewer(self, statements: list[str]) -> None:
        """Delta debugging: leave out halves, quarters, single statements."""
        size = max(1, len(statements) // 2)
        while True:
            start = len(statements)
            while start > 0:
                low = max(0, start - size)
                candidate = statements[:low] + statements[start:]
                if candidate and self._fails(candidate):
                    statements = candidate
                start = low
            if size == 1:
                return
            size = size // 2

    def _single_rows(self) -> None:
        """Rows of INSERT one by one left out."""
        number = 0
        while number < len(self.case.statements):
            found = _ROWS.fullmatch(self.case.statements[number])
            rows = _split(found[2]) if found else []
            place = len(rows) - 1
            while found and len(rows) > 1 and place >= 0:
                fewer = rows[:place] + rows[place + 1 :]
                if self._fails(self._with(number, f"{found[1]}{', '.join(fewer)}{found[3]}")):
                    rows = fewer
                place -= 1
            number += 1

    def _with(self, number: int, statement: str) -> list[str]:
        statements = list(self.case.statements)
        statements[number] = statement
        return statements

    def _shorter_views(self) -> None:
        for number, statement in enumerate(self.case.statements):
            head, found, query = statement.partition(" AS ")
            if not found or "MATERIALIZED VIEW" not in head:
                continue
            self._shorter(
                lambda text, number=number, head=head: self._fails(self._with(number, f"{head} AS {text}")), query
            )  # type: ignore[misc]

    def _shorter(self, fails: Callable[[str], bool], query: str) -> None:
        """Replace parts of a query by less, the largest parts first."""
        again = True
        while again and time.monotonic() < self.deadline:
            again = False
            for text in _simpler(query):
                if len(text) < len(query) and fails(text):
                    query, again = text, True
                    break


def _simpler(query: str) -> Iterator[str]:
    """Queries with one part less each."""
    try:
        tree = sqlglot.parse_one(query, read="postgres")
    except sqlglot.errors.SqlglotError:
        return
    count = sum(1 for _ in tree.walk())
    for place in range(count):
        for change in (_without_part, _by_child, _by_null):
            for option in range(8):
                copy = tree.copy()
                node = next(n for i, n in enumerate(copy.walk()) if i == place)
                changed = change(copy, node, option)
                if changed is None:
                    break
                yield changed.sql(dialect="postgres")


_OPTIONAL = (
    "where",
    "having",
    "joins",
    "order",
    "limit",
    "offset",
    "with",
    "with_",
    "distinct",
    "group",
    "partition_by",
)


def _without_part(tree: exp.Expression, node: exp.Expression, option: int) -> exp.Expression | None:
    """Without an optional part, or one of a list."""
    parts: list[tuple[str, int | None]] = []
    for name, value in node.args.items():
        if isinstance(value, list):
            parts += [(name, place) for place in range(len(value)) if len(value) > 1 or name in _OPTIONAL]
        elif value is not None and name in _OPTIONAL:
            parts.append((name, None))
    if option >= len(parts):
        return None
    name, place = parts[option]
    if place is None:
        node.set(name, None)
    else:
        node.set(name, [v for i, v in enumerate(node.args[name]) if i != place])
    return tree


def _by_child(tree: exp.Expression, node: exp.Expression, option: int) -> exp.Expression | None:
    """An expression by one of its operands, a query by one of its parts."""
    children = [
        c for c in node.iter_expressions() if isinstance(c, (exp.Condition, exp.Query, exp.Subquery, exp.Table))
    ]
    if option >= len(children) or isinstance(node, (exp.Column, exp.Table, exp.DataType)):
        return None
    if node is tree:
        return children[option].copy() if isinstance(children[option], exp.Query) else None
    if not isinstance(node, (exp.Condition, exp.Query, exp.Subquery)):
        return None
    node.replace(children[option].copy())
    return tree


def _by_null(tree: exp.Expression, node: exp.Expression, option: int) -> exp.Expression | None:
    """A condition by true, an expression by a number or a text."""
    texts = ("true", "1", "'a'")
    if (
        option >= len(texts)
        or node is tree
        or not isinstance(node, exp.Condition)
        or isinstance(node, (exp.Literal, exp.Boolean))
    ):
        return None
    if isinstance(node.parent, exp.Column) or isinstance(node, exp.Identifier):
        return None
    node.replace(sqlglot.parse_one(texts[option]))
    return tree


def _split(rows: str) -> list[str]:
    """The rows of VALUES, at the commas outside of quotes and parentheses."""
    found, depth, quoted, start = [], 0, False, 0
    for place, character in enumerate(rows):
        if character == "'":
            quoted = not quoted
        elif not quoted and character in "()":
            depth += 1 if character == "(" else -1
            if depth == 0 and character == ")":
                found.append(rows[start : place + 1].lstrip(", "))
                start = place + 1
    return found
