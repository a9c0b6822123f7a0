"""Names and types: the meaning of a statement, given the catalog and the user."""
