"""The definitions of tables, indexes, sinks and sources, and how stored definitions follow renames."""
