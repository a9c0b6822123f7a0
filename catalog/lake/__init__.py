"""The storage engine: all that knows the tables and files of DuckLake."""
