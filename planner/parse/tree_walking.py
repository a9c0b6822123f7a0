"""Makes walking and copying trees fast: planning a statement walks its tree some hundred times.

sqlglot (30.30) passes each node through four generators, and sets each part of a copy as if the copy were in use. The
order of the nodes is sqlglot's, and so is the moment when a node's parts are read: after the node has been passed on,
so that callers may replace parts while they walk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, cast

from sqlglot.expressions import DataType, Expr, Expression, Identifier

_PLAIN = frozenset((int, str, bool, float, type(None)))


def _walk(self: Expr, bfs: bool = True, prune: Callable[[Expr], bool] | None = None) -> Iterator[Expr]:
    """Walk as `Expression.walk` does."""
    return self.bfs(prune=prune) if bfs else self.dfs(prune=prune)


def _by_level(self: Expr, prune: Callable[[Expr], bool] | None = None) -> Iterator[Expr]:
    """Walk as `Expression.bfs` does."""
    nodes: list[Expr] = [self]
    for node in nodes:  # which grows meanwhile
        yield node
        if prune is None or not prune(node):
            for part in node.args.values():
                if isinstance(part, Expr):
                    nodes.append(part)
                elif type(part) is list:
                    nodes += [one for one in part if isinstance(one, Expr)]


def _found(self: Expr, *types: type[Expr], bfs: bool = True) -> Iterator[Expr]:
    """Find nodes as `Expression.find_all` does."""
    if not bfs:
        yield from (node for node in self.dfs() if isinstance(node, types))
        return
    nodes: list[Expr] = [self]
    for node in nodes:  # which grows meanwhile
        if isinstance(node, types):
            yield node
        if node.__class__ is Identifier:  # four of ten nodes, which have no parts
            continue
        for part in node.args.values():
            if isinstance(part, Expr):
                nodes.append(part)
            elif type(part) is list:
                nodes += [one for one in part if isinstance(one, Expr)]


def _copied(self: Expr) -> Expr:
    """Copy as `Expression.copy` does."""
    root = _without_parts(self)
    stack = [(self, root)]
    while stack:
        node, copy = stack.pop()
        args = copy.args
        for key, part in node.args.items():
            if isinstance(part, Expr):
                args[key] = made = _without_parts(part)
                made.parent, made.arg_key = copy, key
                if part.__class__ is Identifier:
                    made.args = part.args.copy()
                else:
                    stack.append((part, made))
            elif type(part) is list:
                copies: list[Any] = []
                args[key] = copies
                for one in part:
                    if isinstance(one, Expr):
                        made = _without_parts(one)
                        made.parent, made.arg_key, made.index = copy, key, len(copies)
                        stack.append((one, made))
                        copies.append(made)
                    else:
                        copies.append(one)
            else:
                args[key] = part
    return root


def _without_parts(node: Expr) -> Expr:
    """Return a copy of a node without parts and parent."""
    made = node.__class__.__new__(node.__class__)
    made.args = {}
    made.parent = made.arg_key = made.index = made._hash = None
    made.comments = None if node.comments is None else list(node.comments)
    type_, meta = node._type, node._meta
    made._type = cast(DataType, _copied(type_)) if type_ is not None else None
    if meta is not None:
        is_plain = _PLAIN.issuperset(map(type, meta.values()))
        meta = dict(meta) if is_plain else deepcopy(meta)
    made._meta = meta
    return made


def _deep_copied(self: Expr, memo: Any) -> Expr:
    return _copied(self)


def walk_fast() -> None:
    """Let sqlglot walk and copy trees in this way."""
    for name, function in (
        ("walk", _walk),
        ("bfs", _by_level),
        ("find_all", _found),
        ("copy", _copied),
        ("__deepcopy__", _deep_copied),
    ):
        setattr(Expression, name, function)
