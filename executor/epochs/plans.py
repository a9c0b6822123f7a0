"""Plans of the existing views, made from their definitions and kept while the views exist."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sparkwave.catalog.locks import RankedLock
from sparkwave.catalog.model import Catalog, Relation
from sparkwave.executor.epochs.advance import View
from sparkwave.planner.plan.nodes import Scan
from sparkwave.planner.plan.stream_plan import StreamPlan, plan_definition

# What a plan depends on: the relation's own definition, and the upstreams as they are.
_Origin = tuple[object, ...]


@dataclass(frozen=True)
class _Kept:
    origin: _Origin
    plan: StreamPlan


class Plans:
    """Caches plans by relation id.

    A caller may have an old relation and an old catalog: the definition of the view, or of a view that it reads, may
    have been replaced since. So a plan is returned only for the relation and the catalog that the plan was made from.
    """

    def __init__(self) -> None:
        self._kept: dict[int, _Kept] = {}
        self._lock = RankedLock()

    def view(self, relation: Relation, catalog: Catalog) -> View:
        """Return the view of a relation. Its stored definition is planned the first time."""
        origin = _origin(relation, catalog)
        with self._lock:
            kept = self._kept.get(relation.id)
            if kept is None or kept.origin != origin:
                kept = self._kept[relation.id] = _Kept(origin, plan_definition(relation, catalog))
            return View(relation, kept.plan)

    def scans(self, catalog: Catalog, others: Collection[int]) -> list[Scan]:
        """Return the scans of the created views that have been planned, and of other relations, by id.

        Forgets the plans of dropped relations.
        """
        with self._lock:
            self._kept = {id_: kept for id_, kept in self._kept.items() if id_ in catalog.by_id}
            read = {id_ for id_ in self._kept if id_ in others or catalog.by_id[id_].created}
            return [scan for id_, kept in self._kept.items() if id_ in read for scan in kept.plan.scans]

    def put(self, view: View, catalog: Catalog) -> None:
        """Set the plan of a relation."""
        with self._lock:
            self._kept[view.relation.id] = _Kept(_origin(view.relation, catalog), view.plan)

    def forget(self, relation_id: int) -> None:
        with self._lock:
            self._kept.pop(relation_id, None)


def _origin(relation: Relation, catalog: Catalog) -> _Origin:
    upstreams = (catalog.by_id.get(id_) for id_ in relation.upstreams)
    return (
        relation.definition_id,
        relation.definition,
        relation.planner,
        *((up.id, up.definition_id, up.columns, up.key) for up in upstreams if up is not None),
    )
