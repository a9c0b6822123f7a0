"""Spark: resource groups, the kernel that runs DuckDB in tasks, and what a task reads and writes."""
