"""Users' functions in Python: the processes that run their code, and DuckDB's calls of them."""
