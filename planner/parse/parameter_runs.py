"""Long lists of parameters become one node: `IN ($1, $2, …)`, `ARRAY[$1, …]` and `VALUES ($1, $2), ($3, …), …`.

They are found in the text, before it is tokenized: each of thousands of parameters would cost the tokenizer, the parser
and every pass about as much as a short query. Parameters in a list are of one type, like those in a column of rows, so
that one node for all of them is planned like one parameter. Other forms stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.generator import Generator

LONG = 100  # parameters; shorter lists stay as they are
# Replaces the $ of a parameter where sqlglot would misread it, or an @ in its place.
PARAMETER_MARK = "\ue000"
_RUN_MARK = "\ue001"  # between the parts of a run, after PARAMETER_MARK

_PARAMETER = r"\$\d{1,9}+"
_ROW = rf"\(\s*+{_PARAMETER}(?:\s*+,\s*+{_PARAMETER})*+\s*+\)"
_ROWS = rf"{_ROW}(?:\s*+,\s*+{_ROW}){{{LONG // 2 - 1},}}+"
# To be matched outside of text literals and comments. `collapsed` uses the groups.
PATTERN = (
    rf"\b(?:IN\s*+\(|ARRAY\s*+\[)\s*+(?P<listed>{_PARAMETER}(?:\s*+,\s*+{_PARAMETER}){{{LONG - 1},}}+)(?=\s*[\])])"
    rf"|\bIN\s*+\(\s*+(?P<tuples>{_ROWS})(?=\s*\))"
    rf"|\bVALUES\s*+(?P<rows>{_ROWS})(?!\s*,)"
)
_GROUPS = ("listed", "tuples", "rows")


class ParameterRun(exp.Parameter):
    """A node for `count` parameters; the first is `this`, and each number is `step` more than the one before."""

    arg_types = {**exp.Parameter.arg_types, "count": True, "step": True}  # noqa: RUF012 - sqlglot's own form

    @property
    def numbers(self) -> range:
        first, step = int(self.name), self.args["step"]
        return range(first, first + self.args["count"] * step, step)


class SqlRun(exp.Expression):
    """A node for SQL of several values, or of several rows: `this`, with commas between."""


def parameter_numbers(node: exp.Expr) -> Sequence[int]:
    """Return the numbers of a node's parameters; none when it is no parameter."""
    if isinstance(node, ParameterRun):
        return node.numbers
    return (int(node.this.name),) if isinstance(node, exp.Parameter) and node.this.name.isdigit() else ()


def _run_sql(generator: Generator, node: exp.Expr) -> str:
    assert isinstance(node, ParameterRun)
    return ", ".join(f"${number}" for number in node.numbers)


for _dialect in ("", "postgres", "duckdb"):
    _transforms = Dialect.get_or_raise(_dialect).generator_class.TRANSFORMS
    _transforms |= {ParameterRun: _run_sql, SqlRun: lambda self, node: node.name}


def is_long(match: re.Match[str]) -> bool:
    """Return whether a match is one of PATTERN."""
    return any(match[group] for group in _GROUPS)


def collapsed(match: re.Match[str]) -> str:
    """Return the replacement of a match of PATTERN, of the same length: one item for all, or a row of such items."""
    group = next(group for group in _GROUPS if match[group])
    text, start, end = match[group], match.start(group) - match.start(), match.end(group) - match.start()
    shown = _item(text) if group == "listed" else _row(text, may_be_single=group == "rows")
    if shown is None or len(shown) + text.count("\n") > len(text):
        shown = text.replace("$", "@")
    else:
        lines = "\n" * text.count("\n")
        shown = shown + lines + " " * (len(text) - len(shown) - len(lines))
    return match[0][:start] + shown + match[0][end:]


def _item(text: str) -> str | None:
    numbers = list(map(int, re.findall(r"\d+", text)))
    return _marked(numbers[0], len(numbers), 1) if _are_consecutive(numbers) else None


def _row(text: str, may_be_single: bool) -> str | None:
    numbers, rows = list(map(int, re.findall(r"\d+", text))), text.split(")")[:-1]
    width = rows[0].count("$")
    if any(row.count("$") != width for row in rows) or not _are_consecutive(numbers):
        return None
    items = (_marked(numbers[0] + place, len(rows), width) for place in range(width))
    return f"({', '.join(items)})" if width > 1 or may_be_single else None


def _are_consecutive(numbers: list[int]) -> bool:
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _marked(first: int, count: int, step: int) -> str:
    return PARAMETER_MARK + _RUN_MARK.join(map(str, (first, count, step)))


def marked_parameter(name: str) -> exp.Parameter:
    """Return the parameter or run of an identifier with PARAMETER_MARK."""
    number, *run = name.removeprefix(PARAMETER_MARK).split(_RUN_MARK)
    this = exp.Literal.number(number)
    return ParameterRun(this=this, count=int(run[0]), step=int(run[1])) if run else exp.Parameter(this=this)


def rows_of(values: exp.Expr) -> int:
    """Return the number of rows of a VALUES."""
    run = values.find(ParameterRun)
    return len(run.numbers) if run is not None else len(values.expressions)


def is_row_of_runs(node: exp.Expr | None) -> bool:
    """Return whether a node stands for many rows."""
    return (
        node is not None
        and isinstance(node.parent, exp.Values | exp.In)
        and any(isinstance(item, ParameterRun) for item in node.expressions)
    )


def expanded(tree: exp.Expr) -> exp.Expr:
    """Return the tree, changed in place, with a node for every parameter of runs."""
    for run in list(tree.find_all(ParameterRun)):
        row = run.parent
        assert row is not None
        if is_row_of_runs(row):
            assert row.parent is not None
            made = []
            for numbers in zip(*(parameter_numbers(item) for item in row.expressions), strict=True):
                made.append(row.copy())
                made[-1].set("expressions", list(map(_parameter, numbers)))
            row.parent.set("expressions", made)
        elif isinstance(row, exp.In | exp.Array):
            row.set("expressions", list(map(_parameter, run.numbers)))
    return tree


def _parameter(number: int) -> exp.Parameter:
    return exp.Parameter(this=exp.Literal.number(number))
