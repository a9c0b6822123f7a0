"""What tables, indexes, sinks and sources are defined by, and how stored definitions follow renames."""
