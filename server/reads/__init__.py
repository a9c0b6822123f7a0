"""SELECT and EXPLAIN: determines where a query runs, and streams its rows."""
