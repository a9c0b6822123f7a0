"""Prints operators as text, JSON, YAML, XML and DOT, as RisingWave does."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from xml.sax.saxutils import escape

import yaml

from sparkwave.planner.explain.operator_tree import Operator, Text


def text(root: Operator) -> list[str]:
    """Return a line for each operator, indented below its parent."""
    return list(_text(root, "", ""))


def _text(operator: Operator, first: str, rest: str) -> Iterator[str]:
    yield first + operator.line
    for child in operator.children[:-1]:
        yield from _text(child, f"{rest}├─", f"{rest}│ ")
    for child in operator.children[-1:]:
        yield from _text(child, f"{rest}└─", f"{rest}  ")


def as_object(operator: Operator) -> dict[str, object]:
    """Return an operator and those below it as an object of JSON."""
    fields = {key: value if isinstance(value, str) else list(value) for key, value in sorted(operator.fields)}
    return {"name": operator.title, "fields": fields, "children": [as_object(child) for child in operator.children]}


def _json(root: Operator) -> list[str]:
    return json.dumps(as_object(root), indent=2, ensure_ascii=False).splitlines()


def _yaml(root: Operator) -> list[str]:
    return yaml.safe_dump(as_object(root), sort_keys=False, allow_unicode=True, width=math.inf).splitlines()


def _xml(root: Operator) -> list[str]:
    return [f"<XmlNode>{_element(root)}</XmlNode>"]


def _element(operator: Operator) -> str:
    def fields(key: str, value: Text) -> str:
        parts = (value,) if isinstance(value, str) else value
        return "".join(f"<{key}>{escape(part)}</{key}>" for part in parts)

    shown = "".join(fields(key, value) for key, value in sorted(operator.fields))
    below = "".join(f"<children>{_element(child)}</children>" for child in operator.children)
    return f"<name>{escape(operator.title)}</name><fields>{shown}</fields>{below}"


def _dot(root: Operator) -> list[str]:
    """Return a DOT graph. Nodes and their ids are numbered from the root down; RisingWave's ids follow its planning."""
    nodes: list[str] = []
    edges: list[str] = []

    def add(operator: Operator) -> int:
        number = len(nodes)
        parts = [operator.title, f"id: {_quoted(str(number))}"]
        parts += [f"{key}: {_quoted(value)}" for key, value in operator.fields]
        label = "".join(part.replace('"', '\\"') + "\\l" for part in parts)
        nodes.append(f'    {number} [ label = "{label}" ]')
        for child in operator.children:
            place = len(edges)
            edges.insert(place, f"    {number} -> {add(child)} [ ]")
        return number

    add(root)
    return ["digraph {", *nodes, *sorted(edges, key=_edge), "}"]


def _edge(line: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", line)[:2])


def _quoted(value: Text) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


FORMATS: dict[str, Callable[[Operator], list[str]]] = {
    "text": text,
    "json": _json,
    "yaml": _yaml,
    "xml": _xml,
    "dot": _dot,
}
