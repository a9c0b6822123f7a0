"""One client: its variables, its transaction, its prepared statements and portals, and how others stop it."""
