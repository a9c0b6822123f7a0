"""The columns of inputs by whose values a delta program looks rows up.

An index on such a column finds the rows without a scan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sparkwave.planner.plan.nodes import Filter, Join, Node, OverWindow, Project, Scan, UnionAll, Unnest

# Columns of an input that are compared together.
Columns = tuple[str, ...]


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
            source = next((item.source for item in node.items if item.name == name), None)
            if source is not None:
                yield from _sources(node.input, source)
        case Filter() | Unnest() | OverWindow() | Join() | UnionAll():
            for below in node.inputs:
                if any(field.name == name for field in below.fields):
                    yield from _sources(below, name)
