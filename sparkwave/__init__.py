"""Sparkwave: materialized views, backfilled on Spark. The folders at the root of the source are its packages."""
