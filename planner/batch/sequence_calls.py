"""`nextval`, `currval`, `lastval` and `setval` in a client's statement.

DuckDB has sequences too, but each transaction that uses one would write it, beside the lake, and a transaction writes
only one database. So a statement draws from a temporary sequence of its cursor, which begins after the last number of
the last statement: see `server.writes.sequence_numbers`.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Catalog, Relation
from sparkwave.catalog.users import User
from sparkwave.planner.bind.binder import Scope
from sparkwave.planner.bind.privileges import holds, permission_denied
from sparkwave.planner.definitions.counting import LAST, LAST_OF_ALL, NEXT, SET, find_sequence
from sparkwave.planner.functions.scalar_functions import duckdb_call
from sparkwave.planner.parse.trees import position_of


@dataclass(frozen=True)
class Setting:
    """A call of `setval` that is an output of a query, counted from 0: its value becomes the sequence's last number."""

    output: int
    sequence: int
    is_called: bool


@dataclass(frozen=True)
class Draws:
    """The uses of sequences by a statement, by their ids.

    These are the sequences from which it draws numbers, those whose last number of the session it reads, whether it
    reads the last number of any sequence, and those that it sets.
    """

    nexts: tuple[int, ...] = ()
    lasts: tuple[int, ...] = ()
    reads_last_of_all: bool = False
    settings: tuple[Setting, ...] = ()

    def __bool__(self) -> bool:
        return self != NO_DRAWS


NO_DRAWS = Draws()


def drawing_name(sequence: int) -> str:
    """Return the name of the cursor's temporary sequence."""
    return f"sequence {sequence}"


def call_of(name: str, sequence: int) -> str:
    """Return DuckDB's text of a call of `nextval` or `currval` on the temporary sequence."""
    return f"""{name}('temp.main."{drawing_name(sequence)}"')"""


def last_name(sequence: int | None) -> str:
    """Return the name of the cursor's variable with the session's last number of a sequence, or of any for None."""
    return f"last_of_{sequence}" if sequence is not None else "last_of_all"


def with_sequences(tree: exp.Expr, catalog: Catalog, scope: Scope, user: User) -> tuple[exp.Expr, Draws]:
    """Return the tree, changed in place, with calls of these functions in DuckDB's form, and its uses of sequences.

    Raises Error 42P01 for an unknown sequence, 42809, 42501, and 0A000 for a name that is no constant and a `setval`
    that is no output of the query.
    """
    calls = [call for call in tree.find_all(exp.Anonymous, bfs=False) if call.name.lower() in _ARITY]
    if not calls:
        return tree, NO_DRAWS
    found = [(call, call.name.lower(), _find(call, catalog, scope)) for call in calls]
    nexts: dict[int, None] = {}
    lasts: dict[int | None, None] = {}
    settings: list[Setting] = []
    spelled: list[exp.Expr] = []
    for call, name, sequence in found:
        id_ = None if sequence is None else sequence.id
        if sequence is not None:
            check_use(catalog, user, sequence, name)
        if name == SET and sequence is not None:
            settings.append(_setting(call, sequence))
            spelled.append(call)
        elif name == NEXT and id_ is not None:
            nexts[id_] = nexts.pop(id_, None)  # the latest draw gives the last number
            spelled.append(_of_cursor(NEXT, id_))
        elif id_ in nexts or (id_ is None and nexts):
            spelled.append(_of_cursor(LAST, [*nexts][-1] if id_ is None else id_))
        else:
            lasts[id_] = None
            spelled.append(_variable(id_))
    _refuse_by_row(tree, found)
    _refuse_beside_settings(found)
    for (call, name, _), made in zip(reversed(found), reversed(spelled), strict=True):  # arguments first
        if name == SET:
            made = exp.cast(call.expressions[1].copy(), exp.DataType.Type.BIGINT)
        tree = made if call is tree else tree
        call.replace(made)
    return tree, Draws(tuple(nexts), tuple(id_ for id_ in lasts if id_ is not None), None in lasts, tuple(settings))


def _of_cursor(name: str, sequence: int) -> exp.Expr:
    return duckdb_call(name, exp.Literal.string(f'temp.main."{drawing_name(sequence)}"'))


def _refuse_by_row(tree: exp.Expr, found: list[tuple[exp.Anonymous, str, Relation | None]]) -> None:
    """Raise Error 0A000 for a query of rows that reads the last number of a sequence and draws from it.

    DuckDB computes an expression for many rows before the next expression.
    """
    drawn = {sequence for _, name, sequence in found if name == NEXT}
    for call, name, sequence in found if drawn and tree.find(exp.From) is not None else ():
        if name == LAST_OF_ALL or (name == LAST and sequence in drawn):
            message = f"{name} beside nextval is not supported in a query that has FROM"
            raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position_of(call))


def _refuse_beside_settings(found: list[tuple[exp.Anonymous, str, Relation | None]]) -> None:
    """Raise Error 0A000 for a sequence that a query sets and draws from, unless the number drawn is what it is set to.

    A query has drawn all its numbers when the sequence is set.
    """
    settings = [(call, sequence) for call, name, sequence in found if name == SET]
    for call, name, sequence in found if settings else ():
        is_other = all(
            sequence not in (None, own) or call.find_ancestor(exp.Anonymous) is set_ for set_, own in settings
        )
        if name != SET and not is_other:
            message = f"{name} beside setval of the same sequence is not supported"
            raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position_of(call), hint="Use two queries.")


_ARITY = {NEXT: (1,), LAST: (1,), LAST_OF_ALL: (0,), SET: (2, 3)}


def _find(call: exp.Anonymous, catalog: Catalog, scope: Scope) -> Relation | None:
    """Return the sequence of a call; None for `lastval`, which has none."""
    name = call.name.lower()
    if len(call.expressions) not in _ARITY[name]:
        message = f"function {name} with {len(call.expressions)} arguments does not exist"
        raise Error(message, errors.UNDEFINED_FUNCTION, position=position_of(call))
    if name == LAST_OF_ALL:
        return None
    sequence = find_sequence(catalog, scope, call.expressions[0])
    if sequence is None:
        message = f"{name} of a sequence whose name is no constant is not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position_of(call))
    return sequence


def _setting(call: exp.Anonymous, sequence: Relation) -> Setting:
    called = call.expressions[2:]
    if called and not isinstance(called[0], exp.Boolean):
        message = "setval whose third argument is no constant is not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position_of(call))
    output = call.parent if isinstance(call.parent, exp.Alias) else call
    if not isinstance(output.parent, exp.Select) or output.arg_key != "expressions" or output.parent.parent is not None:
        message = "setval is supported as an output of a query only"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position_of(call))
    return Setting(output.index or 0, sequence.id, not called or called[0].this)


def check_use(catalog: Catalog, user: User, sequence: Relation, name: str) -> None:
    """Raise Error 42501 unless the user may use a sequence.

    Writers of a table may draw from the table's own sequences.
    """
    owner = catalog.by_id.get(sequence.sequence.table or 0)
    if name == NEXT and owner is not None and holds(catalog, user, owner.securable, "INSERT"):
        return
    if not any(holds(catalog, user, sequence.securable, privilege) for privilege in _PRIVILEGES[name]):
        raise permission_denied(f"permission denied for sequence {sequence.name}")


_PRIVILEGES = {NEXT: ("USAGE", "UPDATE"), LAST: ("USAGE", "SELECT"), SET: ("UPDATE",)}


def _variable(sequence: int | None) -> exp.Expr:
    value = duckdb_call("getvariable", exp.Literal.string(last_name(sequence)))
    return exp.cast(value, exp.DataType.Type.BIGINT)
