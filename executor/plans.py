"""Plans of the views that exist, made from their definitions and kept while they live."""

from __future__ import annotations

import threading

from catalog.model import Catalog, Relation
from executor.advance import View
from planner.bind import scope_of
from planner.parse.statement import parse_statement
from planner.statements import CreateStreaming
from planner.stream import StreamPlan, plan_view


class Plans:
    """Caches views by relation id. What a definition says never changes, so neither does a plan."""

    def __init__(self) -> None:
        self._plans: dict[int, StreamPlan] = {}
        self._lock = threading.Lock()

    def view(self, relation: Relation, catalog: Catalog) -> View:
        """The view of a relation; planned from its stored definition the first time."""
        with self._lock:
            if relation.id not in self._plans:
                self._plans[relation.id] = plan_definition(relation, catalog)
            return View(relation, self._plans[relation.id])

    def forget(self, relation_id: int) -> None:
        with self._lock:
            self._plans.pop(relation_id, None)


def plan_definition(relation: Relation, catalog: Catalog) -> StreamPlan:
    """Plan a stored definition again. Plans are never stored, so a newer planner takes effect at a restart."""
    statement = parse_statement(relation.definition)
    assert isinstance(statement, CreateStreaming)
    return plan_view(statement, catalog, scope_of(relation), made=relation)
