"""Command tags: what a client is told that a statement has done.

Results carry RisingWave's tags (src/utils/pgwire/src/pg_response.rs), which tell more apart; clients get PostgreSQL's
unless `risingwave_command_tags` asks for the others.
"""

from __future__ import annotations

# Those that PostgreSQL names otherwise; the others differ in a blank for the underscore.
_POSTGRES = {
    "CREATE_USER": "CREATE ROLE",
    "DROP_USER": "DROP ROLE",
    "UPDATE_USER": "ALTER ROLE",
    "GRANT_PRIVILEGE": "GRANT",
    "REVOKE_PRIVILEGE": "REVOKE",
    "GRANT_ROLE": "GRANT ROLE",
    "REVOKE_ROLE": "REVOKE ROLE",
    "SET_VARIABLE": "SET",
    "SHOW_VARIABLE": "SHOW",
    "SHOW_COMMAND": "SHOW",
}


def postgres_tag(tag: str) -> str:
    """PostgreSQL's tag for one of RisingWave's, which may have a number of rows behind it."""
    return _POSTGRES.get(tag) or tag.replace("_", " ")
