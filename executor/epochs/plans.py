"""Plans of the existing views, made from their definitions and kept while the views exist."""

from __future__ import annotations

from collections.abc import Mapping

from sparkwave.catalog.locks import RankedLock
from sparkwave.catalog.model import Catalog, Relation
from sparkwave.executor.epochs.advance import View
from sparkwave.planner.plan.nodes import Scan
from sparkwave.planner.plan.stream_plan import StreamPlan, plan_definition


class Plans:
    """Caches plans by relation id. A plan is valid until its definition, or that of a view it reads, is replaced."""

    def __init__(self) -> None:
        self._plans: dict[int, StreamPlan] = {}
        self._lock = RankedLock()

    def view(self, relation: Relation, catalog: Catalog) -> View:
        """Return the view of a relation. Its stored definition is planned the first time."""
        with self._lock:
            if relation.id not in self._plans:
                self._plans[relation.id] = plan_definition(relation, catalog)
            return View(relation, self._plans[relation.id])

    def scans(self, catalog: Catalog) -> list[Scan]:
        """Return the scans of the created views that have been planned. Forgets the plans of dropped relations."""
        with self._lock:
            self._plans = {id_: plan for id_, plan in self._plans.items() if id_ in catalog.by_id}
            return [s for id_, plan in self._plans.items() if catalog.by_id[id_].created for s in plan.scans]

    def put(self, plans: Mapping[int, StreamPlan]) -> None:
        """Replace the plans of relations, by relation id."""
        with self._lock:
            self._plans.update(plans)

    def forget(self, relation_id: int) -> None:
        with self._lock:
            self._plans.pop(relation_id, None)
