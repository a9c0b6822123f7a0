"""Spark: resource groups, the kernel that runs DuckDB in tasks, and the files that a task reads and writes."""
