"""Measures Sparkwave beside plain Spark, Spark's declarative pipelines, PostgreSQL and DuckDB on one machine.

`python -m bench` runs the sections one after another, each on a server of its own. It drives the server over the wire,
and plain Spark over Spark Connect in the very Spark application that the server backfills with, so that both have the
same cores, memory, settings and warm code. What a section finds is plain data (`results`), which `report` makes a page
and plots of.
"""
