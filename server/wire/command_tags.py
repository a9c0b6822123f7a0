"""Command tags: the words of CommandComplete that tell a client which command has run.

Results carry RisingWave's tags (src/utils/pgwire/src/pg_response.rs), which distinguish more commands. Clients get
PostgreSQL's tags unless the variable `risingwave_command_tags` is on.
"""

from __future__ import annotations

# PostgreSQL's other names. All other tags differ from PostgreSQL's only by an underscore instead of a blank.
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
    """Return PostgreSQL's tag for a tag of RisingWave, which may end in a number of rows."""
    return _POSTGRES.get(tag) or tag.replace("_", " ")
