"""`nextval`, `currval`, `lastval` and `setval` in a client's statement.

DuckDB has sequences too, but one that several transactions use would be written by each, beside the lake, and a
transaction writes one database. So a statement draws from a temporary sequence of its cursor, which begins where the
last statement stopped: see `server.sequences`.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from catalog import errors
from catalog.errors import Error
from catalog.model import Catalog, Relation
from catalog.users import User
from planner.bind import Scope
from planner.functions.functions import duckdb_call
from planner.parse.trees import position_of
from planner.privileges import holds, permission_denied
from planner.sequences import LAST, LAST_OF_ALL, NEXT, SET, find_sequence

_SEQUENCE, _LAST_OF_ALL = "sequence", "last of all"  # notes on calls: the id, and that it is `lastval`


@dataclass(frozen=True)
class Setting:
    """A call of `setval` that is an output of a query, counted from 0: its value becomes the sequence's last number."""

    output: int
    sequence: int
    is_called: bool


@dataclass(frozen=True)
class Draws:
    """What a statement has to do with sequences, by their ids: from which it takes numbers, of which it asks for the
    session's last one, whether for the last one of any, and which it sets."""

    nexts: tuple[int, ...] = ()
    lasts: tuple[int, ...] = ()
    reads_last_of_all: bool = False
    settings: tuple[Setting, ...] = ()

    def __bool__(self) -> bool:
        return self != NO_DRAWS


NO_DRAWS = Draws()


def drawing_name(sequence: int) -> str:
    """What the temporary sequence of a cursor is called."""
    return f"sequence {sequence}"


def next_call(sequence: int) -> str:
    """DuckDB's text of the next number."""
    return f"""nextval('temp.main."{drawing_name(sequence)}"')"""


def last_name(sequence: int | None) -> str:
    """The variable of a cursor with the session's last number of a sequence, None of any."""
    return f"last_of_{sequence}" if sequence is not None else "last_of_all"


def with_sequences(tree: exp.Expr, catalog: Catalog, scope: Scope, user: User) -> exp.Expr:
    """The tree, which is changed, with calls of these functions as DuckDB runs them; `draws_of` tells which.

    Raises Error 42P01 for a sequence that there is not, 42809, 42501, and 0A000 for a name that is no constant and a
    `setval` that is no output of the query.
    """
    calls = [
        call for call in tree.find_all(exp.Anonymous) if call.name.lower() in _ARITY and _SEQUENCE not in call.meta
    ]
    drawn = {id_ for call in calls if call.name.lower() == NEXT for id_ in [_find(call, catalog, scope).id]}
    for call in calls:
        made = _spelled(call, catalog, scope, user, drawn)
        if call is tree:
            return made
        call.replace(made)
    return tree


_ARITY = {NEXT: (1,), LAST: (1,), LAST_OF_ALL: (0,), SET: (2, 3)}


def _spelled(call: exp.Anonymous, catalog: Catalog, scope: Scope, user: User, drawn: set[int]) -> exp.Expr:
    name = call.name.lower()
    if name == LAST_OF_ALL:
        return _noted(_variable(None), _LAST_OF_ALL, True)
    sequence = _find(call, catalog, scope)
    check_use(catalog, user, sequence, name)
    if name == NEXT or (name == LAST and sequence.id in drawn):
        named = exp.Literal.string(f'temp.main."{drawing_name(sequence.id)}"')
        return _noted(duckdb_call(name, named), _SEQUENCE, sequence.id)
    if name == LAST:
        return _noted(_variable(sequence.id), _SEQUENCE, sequence.id)
    return _setting(call, sequence)


def _find(call: exp.Anonymous, catalog: Catalog, scope: Scope) -> Relation:
    name = call.name.lower()
    if len(call.expressions) not in _ARITY[name]:
        message = f"function {name} with {len(call.expressions)} arguments does not exist"
        raise Error(message, errors.UNDEFINED_FUNCTION, position=position_of(call))
    sequence = find_sequence(catalog, scope, call.expressions[0])
    if sequence is None:
        message = f"{name} of a sequence whose name is no constant is not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position_of(call))
    return sequence


def _setting(call: exp.Anonymous, sequence: Relation) -> exp.Expr:
    _, value, *called = call.expressions
    if called and not isinstance(called[0], exp.Boolean):
        message = "setval whose third argument is no constant is not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position_of(call))
    output = call.parent if isinstance(call.parent, exp.Alias) else call
    if not isinstance(output.parent, exp.Select) or output.arg_key != "expressions" or output.parent.parent is not None:
        message = "setval is supported as an output of a query only"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position_of(call))
    is_called = not called or called[0].this
    made = exp.cast(value.copy(), exp.DataType.Type.BIGINT)
    return _noted(made, SET, Setting(output.index or 0, sequence.id, is_called))


def check_use(catalog: Catalog, user: User, sequence: Relation, name: str) -> None:
    """Raise Error 42501. Who may write rows of a table may draw from the sequences that go with it."""
    owner = catalog.by_id.get(sequence.sequence.table or 0)
    if name == NEXT and owner is not None and holds(catalog, user, owner.securable, "INSERT"):
        return
    if not any(holds(catalog, user, sequence.securable, privilege) for privilege in _PRIVILEGES[name]):
        raise permission_denied(f"permission denied for sequence {sequence.name}")


_PRIVILEGES = {NEXT: ("USAGE", "UPDATE"), LAST: ("USAGE", "SELECT"), SET: ("UPDATE",)}


def _variable(sequence: int | None) -> exp.Expr:
    value = duckdb_call("getvariable", exp.Literal.string(last_name(sequence)))
    return exp.cast(value, exp.DataType.Type.BIGINT)


def _noted(node: exp.Expr, note: str, value: object) -> exp.Expr:
    node.meta[note] = value
    return node


def draws_of(tree: exp.Expr) -> Draws:
    """What a tree of `with_sequences` has to do with sequences."""
    nexts: dict[int, None] = {}
    lasts: dict[int, None] = {}
    settings: list[Setting] = []
    reads_last_of_all = False
    for node in tree.find_all(exp.Anonymous, exp.Cast):
        meta = node.meta
        if _SEQUENCE in meta:
            is_drawn = isinstance(node, exp.Anonymous)
            (nexts if is_drawn else lasts)[meta[_SEQUENCE]] = None
        elif SET in meta:
            settings.append(meta[SET])
        reads_last_of_all = reads_last_of_all or _LAST_OF_ALL in meta
    return Draws(tuple(nexts), tuple(lasts), reads_last_of_all, tuple(settings))
