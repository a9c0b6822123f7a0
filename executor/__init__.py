"""Runs plans: barriers, checkpoints and backfills, with DuckDB in the server and in Spark's tasks.

`coordinator` is the clock and the only writer of created views. `backfill` fills a creating view on its resource group.
`duckdb_engine` and `spark_engine` run the same SQL, in the server and in Spark's tasks. `groups` starts and ends Spark
applications. Imports `planner` and `catalog`; `spark_engine` and `groups` are the only importers of pyspark.
"""
