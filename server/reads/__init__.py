"""SELECT and EXPLAIN: where a query runs, and what of it goes to the client."""
