"""The system catalogs: SQL of pg_catalog, information_schema and rw_catalog."""
