"""Measures the targets: a backfill against plain Spark, and how soon a view shows an inserted row.

`python -m bench` runs both on a server of its own. It drives the server over the wire and plain Spark over Spark
Connect, in the very Spark application that the server backfills with, so that both have the same cores, memory,
settings and warm code.
"""
