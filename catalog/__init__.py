"""What exists: names, types, relations, jobs, and the lake that keeps them.

`errors`, `types`, `names` and `model` are plain data that every layer shares. `lake` owns DuckDB and DuckLake;
`store` is the only writer of Sparkwave's own relations, which are lake tables in the schema `sparkwave`
(`migrations`), so that they commit in the same transactions as the rows they describe. `system/*.sql` are the
views clients read as `pg_catalog`, `information_schema` and `rw_catalog`. Imports nothing of ours.
"""
