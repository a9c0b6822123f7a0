"""Clients' own queries as DuckDB's text, with PostgreSQL's catalogs."""
