"""Turns the text of statements into data, without a clock, I/O, Spark or DuckDB.

The life of a view's query: `parse` makes a statement, `bind` gives names and types, `build` makes nodes, `rules`
rewrites them, `stream_plan` decides keys, state and strategy, `delta` writes the SQL that maintains the view and
`backfill` the SQL that fills it, `emit` turns that into an engine's text. Imports `catalog`; the only importer of
sqlglot.
"""

from sparkwave.planner.parse.kept_parses import keep_parses
from sparkwave.planner.parse.tree_editing import edit_in_place
from sparkwave.planner.parse.tree_walking import walk_fast

edit_in_place()
keep_parses()
walk_fast()
