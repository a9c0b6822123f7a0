"""Makes editing trees in place fast: the time does not grow with the number of a node's parts.

sqlglot (30.30) numbers all parts of a list anew whenever one of them is replaced, so that replacing all is quadratic: a
client sends lists of 30,000 values.
"""

from __future__ import annotations

from sqlglot import exp

_set = exp.Expression.set


def _set_part(
    self: exp.Expression, arg_key: str, value: object, index: int | None = None, overwrite: bool = True
) -> None:
    """Set a part as `Expression.set` does, but number only the part that is replaced anew."""
    parts = self.args.get(arg_key)
    is_one_for_one = isinstance(value, exp.Expr) and isinstance(parts, list) and overwrite
    if not is_one_for_one or index is None or not 0 <= index < len(parts or ()):
        _set(self, arg_key, value, index, overwrite)
        return
    assert isinstance(value, exp.Expr) and parts is not None
    node: exp.Expr | None = self
    while node is not None and node._hash is not None:
        node._hash = None
        node = node.parent
    parts[index] = value
    value.parent, value.arg_key, value.index = self, arg_key, index


def edit_in_place() -> None:
    """Let sqlglot edit trees in this way."""
    exp.Expression.set = _set_part  # type: ignore[method-assign]
