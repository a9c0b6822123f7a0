"""A differential fuzzer: random tables, views and changes, held against the views' queries and PostgreSQL.

`python -m fuzz --help` runs it (with `tests` on the path; `make fuzz` does). README.md here says how to read a failure.
"""
