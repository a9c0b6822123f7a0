"""json apart from jsonb, as PostgreSQL has it: a text that is kept as it was written.

DuckDB's `JSON` holds jsonb. json is a type of its own (`catalog.types.BASES`), so that DuckDB tells the two apart in
every place. Before `since.JSON_APART` json was another name of jsonb, and it still is in the views that were
defined then.
"""

from __future__ import annotations

from typing import TypeVar

from sqlglot import exp

from sparkwave.catalog.types import JSON
from sparkwave.planner.functions.typed import IS_JSONB, data_type
from sparkwave.planner.parse.text_values import decode_text
from sparkwave.planner.parse.trees import at

T = TypeVar("T", bound=exp.Expr)

# Marks a call of a json function in a definition for which json is jsonb.
IS_OF_JSONB = "of jsonb"
# Functions that set-returning functions of json become (`planner.parse.set_returning`), and those of jsonb.
_ROWS = {f"json_{name}": f"jsonb_{name}" for name in ("elements", "element_texts", "keys", "values", "value_texts")}


def with_json(tree: T, is_apart: bool = True) -> T:
    """Return the tree, changed in place, where a user's `json` is a type of its own, or jsonb if it is not apart."""
    if is_apart:
        for kind in list(tree.find_all(exp.DataType)):
            if kind.this == exp.DType.JSON and not kind.meta.get(IS_JSONB):
                _become_json(kind)
                _check_literal(kind.parent)
        return tree
    for call in tree.find_all(exp.Anonymous, exp.JSONArrayAgg, exp.JSONObjectAgg):
        call.meta[IS_OF_JSONB] = True
        if isinstance(call, exp.Anonymous) and call.name in _ROWS:
            call.set("this", _ROWS[call.name])
    return tree


def _check_literal(cast: exp.Expr | None) -> None:
    """Raise Error 22P02 for a literal that is cast to json and is none."""
    if isinstance(cast, exp.Cast) and cast.this.is_string:
        with at(cast.this):
            decode_text(cast.this.name, JSON)


def _become_json(kind: exp.DataType) -> None:
    """Change the DataType of json into that of `catalog.types.JSON`, in place: a cast has it as its type, too."""
    made = data_type(JSON)
    for name, value in made.args.items():
        kind.set(name, value)
