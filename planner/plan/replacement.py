"""Checks whether a view can get another definition under its readers (ALTER MATERIALIZED VIEW … AS).

RisingWave wants the same columns (src/frontend/src/handler/alter_mv.rs). Here the columns may differ as long as the
readers of the view keep their plans. They take the difference between the old and the new rows as a change like any
other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Catalog, Column, Relation
from sparkwave.planner.definitions.dependence import lake_columns_read
from sparkwave.planner.plan.fingerprint import fingerprint
from sparkwave.planner.plan.nodes import Node, Scan, transform
from sparkwave.planner.plan.stream_plan import StreamPlan, plan_definition


def with_relation(catalog: Catalog, relation: Relation) -> Catalog:
    """Return the catalog with another version of a relation."""
    return _with_relations(catalog, [relation])


def _with_relations(catalog: Catalog, changed: Iterable[Relation]) -> Catalog:
    by_id = {relation.id: relation for relation in changed}
    return replace(catalog, relations=tuple(by_id.get(r.id, r) for r in catalog.relations))


def readers(catalog: Catalog, view: Relation) -> list[Relation]:
    """Return the relations that depend on a view, except for the one that is to replace it."""
    return [reader for reader in catalog.dependents(view.id) if reader.replaces != view.id]


@dataclass(frozen=True)
class Readers:
    """The relations that directly depend on a view that gets another definition, and the effects on further ones.

    If a column of the view can be NULL only with the new definition, columns of its readers can be, and so on.
    `relaxed` are these relations in their new form, and `plans` the plans, by relation id, that do not rely on the
    columns being never NULL. The plans are right for the old rows, too.
    """

    direct: tuple[Relation, ...]
    relaxed: tuple[Relation, ...]
    plans: dict[int, StreamPlan]


def check_readers(before: Relation, after: Relation, catalog: Catalog) -> Readers:
    """Check that all readers of a view can go on with its new definition, and return them.

    Raises Error 55006 for a reader that is being created, 0A000 for a subscription, 2BP01 for a reader that would
    change.
    """
    found = readers(catalog, before)
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
    relaxed, plans = _relaxed(before, after, catalog)
    creating = [r for r in catalog.relations if not r.created and (r in found or r.id in plans)]
    if creating:
        raise Error(
            f'cannot alter {before.kind} "{before.name}" because what reads it is still being created',
            errors.OBJECT_IN_USE,
            detail="\n".join(f"{r.kind} {r.qualified_name} is still being created" for r in creating),
            hint="WAIT waits for it.",
        )
    return Readers(tuple(found), tuple(relaxed), plans)


def relaxed_readers(before: Relation, after: Relation, catalog: Catalog) -> list[Relation]:
    """Return what reads a relation whose columns can be NULL from now on, as far as its own can be then, in new form.

    Raises Error 2BP01 for a view whose plan relies on the columns being never NULL.
    """
    relaxed, plans = _relaxed(before, after, catalog)
    for id_, plan in plans.items():
        reader = catalog.by_id[id_]
        if fingerprint(plan) != fingerprint(plan_definition(reader, catalog)):
            raise Error(
                f'cannot drop NOT NULL of a column of {before.kind} "{before.name}" because other objects depend on it',
                errors.DEPENDENT_OBJECTS_STILL_EXIST,
                detail=f"{reader.kind} {reader.qualified_name} would be computed in another way",
                hint="Drop the views first and make them again afterwards.",
            )
    return relaxed


def _relaxed(before: Relation, after: Relation, catalog: Catalog) -> tuple[list[Relation], dict[int, StreamPlan]]:
    present = {column.name for column in after.columns if column.not_null}
    changed = [_with_nulls(before, present)]
    plans: dict[int, StreamPlan] = {}
    for relation in catalog.in_dependency_order(catalog.by_id):
        if (
            relation.is_streaming
            and relation.replaces != before.id
            and any(c.id in relation.upstreams for c in changed)
        ):
            plans[relation.id] = plan_definition(relation, _with_relations(catalog, changed))
            relaxed = _with_nulls(relation, plans[relation.id].present)
            changed += [relaxed] if relaxed != relation else []
    return changed[1:], plans


def _with_nulls(relation: Relation, present: Collection[str]) -> Relation:
    """Return the relation with only these columns as never NULL."""
    columns = (replace(c, not_null=c.not_null and c.name in present) for c in relation.columns)
    return replace(relation, columns=tuple(columns))


def _differences(reader: Relation, before: Relation, catalog: Catalog, changed: Catalog) -> Iterator[str]:
    """Return why a reader would change with the changed catalog, in words."""
    what, after = f"{reader.kind} {reader.qualified_name}", changed.by_id[before.id]
    old = plan_definition(reader, catalog) if reader.is_streaming else None
    read = lake_columns_read(reader, before, catalog) if old is None else scanned_columns(before, [old], of_key=False)
    lost = list(_lost(before, after))
    if missed := [(column, how) for column, how in lost if column.lake_name in read]:
        yield from (f'{what} reads column "{column.name}", which {how}' for column, how in missed)
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
    """Return the columns that would be missing or of another type."""
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


def _same(old: StreamPlan, new: StreamPlan, view: Relation) -> bool:
    """Return whether two plans do the same, whatever else the view has."""

    def bare(node: Node) -> Node:
        if isinstance(node, Scan) and node.relation.id == view.id:
            return replace(node, relation=view, columns=node.output, sent_on=None)
        return node

    def types(plan: StreamPlan) -> list[object]:
        return [scan.fields for scan in plan.scans if scan.relation.id == view.id]

    return transform(old.root, bare) == transform(new.root, bare) and types(old) == types(new)


def scanned_columns(view: Relation, plans: Iterable[StreamPlan], of_key: bool = True) -> tuple[str, ...]:
    """Return the columns of a view that plans read, by their names in the lake.

    All plans scan its key; without `of_key` its columns count only if they are used.
    """
    scans = (scan for plan in plans for scan in plan.scans if scan.relation.id == view.id)
    read = (scan.relation.in_lake(scan.columns if of_key else scan.output) for scan in scans)
    return tuple(dict.fromkeys(name for names in read for name in names))
