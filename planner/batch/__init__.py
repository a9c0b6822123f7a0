"""Clients' own queries for DuckDB, with PostgreSQL's catalogs."""
