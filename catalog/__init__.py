"""The catalog: names, types, relations, jobs, and the lake that stores them.

`errors`, `types`, `names` and `model` are plain data that every layer uses. `lake` owns DuckDB and DuckLake. Only
`stores` writes Sparkwave's own relations, which are lake tables in the schema `sparkwave` (`migrations`), so that they
commit in the same transactions as the rows that they describe. `system/*.sql` are the views that clients read as
`pg_catalog`, `information_schema` and `rw_catalog`. The package imports no other package of Sparkwave.
"""
