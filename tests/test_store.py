"""The catalog in memory follows the rows of the lake."""

from __future__ import annotations

from pathlib import Path

from servers import DUCKDB_THREADS, with_lake

from sparkwave.catalog.lake.ducklake import Lake
from sparkwave.catalog.lake.storage import Storage
from sparkwave.catalog.model import Column, Relation
from sparkwave.catalog.names import system_table
from sparkwave.catalog.stores.relation_store import create_relation
from sparkwave.catalog.stores.store import Store
from sparkwave.catalog.types import INTEGER, VARCHAR


def test_only_relations_that_change_are_made_anew(tmp_path: Path) -> None:
    """Each change of the schema reads all relations; thousands of them are not parsed each time."""
    lake = Lake(Storage(with_lake(tmp_path)), threads=DUCKDB_THREADS)
    store = Store(lake)

    def relation(id_: int, *columns: Column) -> Relation:
        return Relation(id_, "dev", "public", f"t{id_}", "table", columns, ("a",), "", True)

    with store.change() as cursor:
        for id_ in (20_001, 20_002, 20_003):
            create_relation(store, cursor, relation(id_, Column("a", INTEGER)))
    kept, renamed, widened = store.catalog.relations
    wide = relation(widened.id, Column("a", INTEGER), Column("b", VARCHAR))
    with store.change() as cursor:
        cursor.execute(f"UPDATE {system_table('relations')} SET name = 'other' WHERE id = {renamed.id}")
        store.replace_columns(cursor, wide)
    same, other, wider = store.catalog.relations
    lake.close()
    assert same is kept
    assert (other.name, wider.columns) == ("other", wide.columns)
