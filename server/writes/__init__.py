"""INSERT, UPDATE, DELETE, MERGE and COPY: how rows get into tables."""
