"""Whether a view can get another definition under those that read it (ALTER MATERIALIZED VIEW … AS).

RisingWave wants the same columns (src/frontend/src/handler/alter_mv.rs). Here they may be others as long as what is
made of the view stays what it is: its readers have the same plans as before, and take the difference between the old
rows and the new ones up like any other change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from catalog import errors
from catalog.errors import Error
from catalog.model import Catalog, Column, Relation
from planner.delta.nullability import never_null
from planner.dependence import lake_columns_read
from planner.nodes import Node, Scan, transform
from planner.stream import StreamPlan, plan_definition


def with_relation(catalog: Catalog, relation: Relation) -> Catalog:
    """The catalog in which a relation is another one."""
    return replace(catalog, relations=tuple(relation if r.id == relation.id else r for r in catalog.relations))


def readers(catalog: Catalog, view: Relation) -> list[Relation]:
    """What depends on a view, but for the rows that are to take its place."""
    return [reader for reader in catalog.dependents(view.id) if reader.replaces != view.id]


def check_readers(before: Relation, after: Relation, catalog: Catalog) -> None:
    """Whether everything that depends on a view goes on when it is another one.

    Raises Error 55006 for what is being created, 0A000 for a subscription, 2BP01 for what would not be what it is.
    """
    found = readers(catalog, before)
    creating = [f"{r.kind} {r.qualified_name} is still being created" for r in found if not r.created]
    if creating:
        message = f'cannot alter {before.kind} "{before.name}" because what reads it is still being created'
        raise Error(message, errors.OBJECT_IN_USE, detail="\n".join(creating), hint="WAIT waits for it.")
    subscriptions = [f"subscription {r.qualified_name} is on it" for r in found if r.is_subscription]
    if subscriptions:
        message = f'cannot alter the query of {before.kind} "{before.name}" because it is subscribed'
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, detail="\n".join(subscriptions), hint="Drop them first.")
    changed = with_relation(catalog, after)
    lost = [reason for reader in found for reason in _differences(reader, before, catalog, changed)]
    if lost:
        raise Error(
            f'cannot alter the query of {before.kind} "{before.name}" because other objects depend on it',
            errors.DEPENDENT_OBJECTS_STILL_EXIST,
            detail="\n".join(lost),
            hint="Give the query the columns they read, or drop them first.",
        )


def _differences(reader: Relation, before: Relation, catalog: Catalog, changed: Catalog) -> Iterator[str]:
    """Why a reader would not be what it is in the changed catalog."""
    what, after = f"{reader.kind} {reader.qualified_name}", changed.by_id[before.id]
    old = plan_definition(reader, catalog) if reader.is_streaming else None
    read = lake_columns_read(reader, before, catalog) if old is None else scanned_columns(before, [old], of_key=False)
    lost = list(_lost(before, after))
    if any(column.lake_name in read for column, _ in lost):
        yield from (f'{what} reads column "{column.name}", which {how}' for column, how in lost)
    elif old is None:
        names = [column.name for column in before.visible if column not in [column for column, _ in lost]]
        if names != [column.name for column in after.visible if column.name in names]:
            yield f"{what} was made when the columns were in another order"
    else:
        try:
            new = plan_definition(reader, changed)
        except Error as error:
            yield f"{what} could not be kept up to date: {error.message}"
        else:
            yield from _differences_of_plan(old, new, before, what)


def _lost(before: Relation, after: Relation) -> Iterator[tuple[Column, str]]:
    """The columns that would be missing or of another type."""
    types = {column.name: column.type for column in after.visible}
    for column in before.visible:
        if column.name not in types:
            yield column, "would be missing"
        elif types[column.name] != column.type:
            yield column, f"would be of type {types[column.name]}"


def _differences_of_plan(old: StreamPlan, new: StreamPlan, before: Relation, what: str) -> Iterator[str]:
    if not _same(old, new, before):
        key = ", ".join(before.key)
        yield f"{what} depends on how the view tells its rows apart ({key}), or on the order of its columns"
        return
    for one, other in zip(old.scans, new.scans, strict=True):
        if one.relation.id == before.id:
            for name in sorted(never_null(one) - never_null(other)):
                yield f'{what} relies on column "{name.removeprefix(one.alias + ".")}", which could be NULL'


def _same(old: StreamPlan, new: StreamPlan, view: Relation) -> bool:
    """Whether two plans do the same, whatever else there is of a view."""

    def bare(node: Node) -> Node:
        if isinstance(node, Scan) and node.relation.id == view.id:
            return replace(node, relation=view, columns=node.output, sent_on=None)
        return node

    def types(plan: StreamPlan) -> list[object]:
        return [scan.fields for scan in plan.scans if scan.relation.id == view.id]

    return transform(old.root, bare) == transform(new.root, bare) and types(old) == types(new)


def scanned_columns(view: Relation, plans: Iterable[StreamPlan], of_key: bool = True) -> tuple[str, ...]:
    """The columns of a view that plans read; those of its key, which they all do, only if they use them or `of_key`."""
    scans = (scan for plan in plans for scan in plan.scans if scan.relation.id == view.id)
    return tuple(dict.fromkeys(name for scan in scans for name in (scan.columns if of_key else scan.output)))
