"""A client's session: its variables, transaction, prepared statements and portals, and how other threads stop it."""
