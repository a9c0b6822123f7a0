"""The syntax trees in a statement, which is a dataclass of trees, names and other parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from sqlglot import exp

T = TypeVar("T")


def trees_in(part: object) -> Iterator[exp.Expr]:
    """Yield the trees of a statement, or of a part of one."""
    if isinstance(part, exp.Expr):
        yield part
    elif isinstance(part, tuple):
        for each in part:
            yield from trees_in(each)
    elif is_dataclass(part):
        for field in fields(part):
            yield from trees_in(getattr(part, field.name))


def with_trees(part: T, change: Callable[[exp.Expr], exp.Expr]) -> T:
    """Return a statement, or a part of one, with its trees changed."""
    made: Any = part
    if isinstance(part, exp.Expr):
        made = change(part)
    elif isinstance(part, tuple):
        made = tuple(with_trees(each, change) for each in part)
    elif is_dataclass(part) and not isinstance(part, type):
        made = replace(part, **{f.name: with_trees(getattr(part, f.name), change) for f in fields(part) if f.init})
    return made
