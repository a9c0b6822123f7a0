"""The storage engine: the only modules that know DuckLake's tables and files."""
