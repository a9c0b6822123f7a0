"""The columns of inputs by whose values a delta program looks rows up, and where these values come from.

An index on such a column finds the rows without a scan. Look-ups by values from the same changed rows can share their
result, a semijoin reduction (Bernstein and Chiu, "Using Semi-Joins to Solve Relational Queries", 1981).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sparkwave.planner.plan.join_types import INNER
from sparkwave.planner.plan.nodes import Filter, Join, Node, OverWindow, Project, Scan, UnionAll, Unnest

# Columns of an input that are compared together.
Columns = tuple[str, ...]


@dataclass(frozen=True)
class Reduction:
    """The rows of an input whose `columns` equal the columns `of_columns` of a row of `of`.

    `of` names an input, for its changed rows, or is another reduction, for its rows. Columns have the inputs' names.
    """

    input: str
    columns: Columns
    of: str | Reduction
    of_columns: Columns


@dataclass(frozen=True)
class Source:
    """The column of an input's changed rows, or of a reduction, that has all values of a column."""

    of: str | Reduction
    column: str


def looked_up(node: Node, names: Iterable[str]) -> Mapping[str, Columns]:
    """Return the columns of scans that fields of a node pass on unchanged, by the names of the inputs."""
    found: dict[str, dict[str, None]] = {}
    for scan, column in (source for name in names for source in _sources(node, name)):
        found.setdefault(scan.input, {})[column] = None
    return {name: tuple(columns) for name, columns in found.items()}


def _sources(node: Node, name: str) -> Iterator[tuple[Scan, str]]:
    match node:
        case Scan():
            yield node, name.removeprefix(f"{node.alias}.")
        case Project():
            source = node.source_of(name)
            if source is not None:
                yield from _sources(node.input, source)
        case Filter() | Unnest() | OverWindow() | Join() | UnionAll():
            for below in node.inputs:
                if any(field.name == name for field in below.fields):
                    yield from _sources(below, name)


def passed_on(node: Node, name: str) -> tuple[Scan, str] | None:
    """Return the scan and its column whose value a field of a node passes on, for each row of the node from one row."""
    match node:
        case Scan():
            return node, name.removeprefix(f"{node.alias}.")
        case Join():
            sides = node.inputs if node.kind == INNER else (node.left,)
            return next((passed_on(side, name) for side in sides if any(f.name == name for f in side.fields)), None)
    below = field_below(node, name)
    return passed_on(*below) if below is not None else None


def field_below(node: Node, name: str) -> tuple[Node, str] | None:
    """Return the input of an operator with one input, and its field that a field of the operator passes on."""
    match node:
        case Project():
            source = node.source_of(name)
            return (node.input, source) if source is not None else None
        case Filter():
            return node.input, name
        case OverWindow() if name in node.partition:
            return node.input, name
        case Unnest() if any(field.name == name for field in node.input.fields):
            return node.input, name
    return None
