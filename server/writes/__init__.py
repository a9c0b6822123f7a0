"""INSERT, UPDATE, DELETE, MERGE and COPY: writes rows to tables."""
