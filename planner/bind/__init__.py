"""Names and types: what a statement means, given the catalog and who asks."""
