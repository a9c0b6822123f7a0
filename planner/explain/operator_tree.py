"""The output of EXPLAIN as data: operators with their fields, also operators without a node in the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from sparkwave.catalog.column_names import readable
from sparkwave.planner.explain.expressions import show
from sparkwave.planner.plan.distribution import UPSTREAM, Distribution
from sparkwave.planner.plan.nodes import Node

STREAM, BATCH, LOGICAL = "Stream", "Batch", "Logical"
Text = str | tuple[str, ...]


@dataclass(frozen=True)
class Operator:
    """One line of a plan.

    `node` is its node in the plan, `output` and `key` are the names of its outputs and of its key. For an exchange by
    hash, `positions` are the hashed outputs of its input.
    """

    name: str
    fields: tuple[tuple[str, Text], ...] = ()
    children: tuple[Operator, ...] = ()
    flags: tuple[str, ...] = ()
    node: Node | None = None
    output: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    positions: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return f"{self.name} [{', '.join(self.flags)}]" if self.flags else self.name

    @property
    def line(self) -> str:
        shown = ", ".join(f"{key}: {_listed(value)}" for key, value in self.fields)
        return f"{self.title} {{ {shown} }}" if shown else self.title


def with_readable_names(operator: Operator) -> Operator:
    """Return an operator and those below it with the users' names of columns."""
    fields = ((k, readable(v) if isinstance(v, str) else tuple(map(readable, v))) for k, v in operator.fields)
    children = tuple(map(with_readable_names, operator.children))
    return replace(operator, fields=tuple(fields), children=children)


def _listed(value: Text) -> str:
    return value if isinstance(value, str) else f"[{', '.join(value)}]"


def exchange(
    style: str, child: Operator, places: tuple[str, ...], names: Mapping[str, str], to: Distribution
) -> Operator:
    """Return an exchange of the rows of an operator, whose fields are `places`, to another distribution."""
    order: tuple[tuple[str, Text], ...] = (("order", ()),) if style == BATCH else ()
    positions = tuple(
        str(places.index(key.name)) if isinstance(key, exp.Column) and key.name in places else show(key, names)
        for key in to.keys
    )
    return Operator(
        f"{style}Exchange",
        (*order, ("dist", show_distribution(to, names))),
        (child,),
        ("no_shuffle",) if to.kind == UPSTREAM else (),
        output=child.output,
        key=child.key,
        positions=positions,
    )


def show_distribution(found: Distribution, names: Mapping[str, str]) -> str:
    return f"{found.kind}({', '.join(show(key, names) for key in found.keys)})" if found.keys else found.kind


def materialize(
    columns: tuple[str, ...], key: tuple[str, ...], conflict: str, child: Operator, pk: tuple[str, ...] = ()
) -> Operator:
    """Return the operator that stores the rows by `pk`, or by the stream key."""
    shown: tuple[tuple[str, Text], ...] = (
        ("columns", columns),
        ("stream_key", key),
        ("pk_columns", pk or key),
        ("pk_conflict", conflict),
    )
    output = tuple(column.removesuffix("(hidden)") for column in columns)
    return Operator("StreamMaterialize", shown, (child,), output=output, key=key)
