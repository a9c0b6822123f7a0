"""DROP … CASCADE: whether it may remove anything (RisingWave: drop_cascade_guard.rs), and the NOTICE of what goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Connection, Function, Relation, Secret, UserType
from sparkwave.server.session.session import Session
from sparkwave.server.statements.table_keys import described, foreign_keys_into, shown_name
from sparkwave.server.wire.result import Notice

_VARIABLE = "allow_drop_cascade"
_HINT = (
    f"SET {_VARIABLE} = true to enable DROP ... CASCADE in the current session, or ALTER SYSTEM SET {_VARIABLE} = true "
    "to change the default."
)
_MOST_REPORTED = 100  # PostgreSQL's MAX_REPORTED_DEPS
_PLURALS = {"index": "indexes"}


def check_cascade(session: Session, command: str, kinds: Iterable[str]) -> None:
    """Raise Error 0A000 if the session refuses CASCADE; `kinds` has the kind of each object that would be removed."""
    if session.variables.flag(_VARIABLE):
        return
    counts = Counter(kinds)
    listed = ", ".join(f"{count} {_counted(kind, count)}" for kind, count in counts.items())
    message = f"{command} CASCADE is disabled. It would remove {counts.total()} object(s): {listed}."
    raise Error(message, errors.FEATURE_NOT_SUPPORTED, hint=_HINT)


def _counted(kind: str, count: int) -> str:
    return kind if count == 1 else _PLURALS.get(kind, f"{kind}s")


def cascaded(
    session: Session,
    dropped: Iterable[Relation],
    named: Iterable[int],
    others: Iterable[Function | UserType | Secret | Connection] = (),
) -> list[Notice]:
    """Return PostgreSQL's notice of what a DROP removes besides the relations with the ids `named`.

    Indexes, subscriptions and the sequences of columns go with their relation, without CASCADE too.
    """
    catalog, dropped, apart = session.context.store.catalog, list(dropped), set(named)
    apart |= {sequence.id for relation in dropped for sequence in catalog.sequences_of(relation)}
    lines = [described(session, key, table) for table, key, _ in foreign_keys_into(catalog, dropped)]
    relations = [
        relation
        for relation in dropped
        if relation.id not in apart
        and not (relation.is_index or relation.is_subscription or relation.replaces is not None)
    ]
    things = sorted([*relations, *others], key=lambda thing: thing.id)
    lines += [f"{thing.securable.kind} {_shown(session, thing)}" for thing in things]
    lines = [f"drop cascades to {line}" for line in lines]
    if len(lines) < 2:
        return [Notice(line) for line in lines]
    more = len(lines) - _MOST_REPORTED
    told = lines[:_MOST_REPORTED] + [f"and {more} other {'object' if more == 1 else 'objects'}"] * (more > 0)
    return [Notice(f"drop cascades to {len(lines)} other objects", detail="\n".join(told))]


def _shown(session: Session, thing: Relation | Function | UserType | Secret | Connection) -> str:
    match thing:
        case Function():
            return f"{shown_name(session, thing)}({', '.join(str(type_) for _, type_ in thing.arguments)})"
        case Relation() | UserType():
            return shown_name(session, thing)
    return thing.name
