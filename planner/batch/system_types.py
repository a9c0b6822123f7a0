"""The types of the system catalogs' columns that have no engine's type: PostgreSQL's name, "char" and xid.

As in PostgreSQL 15.18, where a column's name nearly always tells its type.
"""

from __future__ import annotations

from sparkwave.catalog.types import CHAR, NAME, TEXT, XID, Type


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NAMES = _words(
    """
    amname attname cfgname collname conname datname dictname enumlabel evtevent evtname extname fdwname funcname groname
    indexname indexrelname lanname matviewname matviewowner nspname opcname opfname oprname owner plugin policyname
    polname proname prsname pubname relname rolname rulename schema schemaname sequencename sequenceowner spcname
    srvname statistics_name statistics_owner statistics_schemaname stxname subname subslotname tablename tableowner
    tablespace tgname tgnewtable tgoldtable tmplname typname usename viewname viewowner
    """
)
_LETTERS = _words(
    """
    aggfinalmodify aggkind aggmfinalmodify amoppurpose amtype attalign attcompression attgenerated attidentity
    attstorage castcontext castmethod collprovider confdeltype confmatchtype confupdtype contype datlocprovider
    defaclobjtype deptype ev_enabled ev_type evtenabled oprkind partstrat polcmd privtype prokind proparallel
    provolatile relkind relpersistence relreplident srsubstate subtwophasestate tgenabled typalign typcategory typdelim
    typstorage typtype
    """
)
_XIDS = _words(
    """
    backend_xid backend_xmin catalog_xmin datfrozenxid datminmxid relfrozenxid relminmxid transaction transactionid xmin
    """
)
# Of the information schema, whose domain sql_identifier is one of name; its other texts are varchars.
_IDENTIFIERS = ("_catalog", "_identifier", "_name", "_owner", "_schema")
_MORE_IDENTIFIERS = _words(
    """
    action_reference_new_row action_reference_new_table action_reference_old_row action_reference_old_table
    character_repertoire dependent_column event_object_column event_object_table form_of_use grantee grantor
    """
)


def system_type(schema: str, column: str, type_: Type) -> Type:
    """Return the type that clients see of a column of pg_catalog or the information schema, from that of the engine."""
    if type_.dimensions:
        return type_.in_rows
    if schema == "information_schema":
        is_identifier = column in _MORE_IDENTIFIERS or column.endswith(_IDENTIFIERS)
        return NAME if type_.is_text and is_identifier else type_
    if type_.name == "oid":
        return XID if column in _XIDS else type_
    if not type_.is_text:
        return type_
    return NAME if column in _NAMES else CHAR if column in _LETTERS else TEXT
