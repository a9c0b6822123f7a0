"""The only reader and writer of the relations `users` and `grants`.

What writes takes the cursor of an open lake transaction, as the methods of `catalog.store` do. Owners and grantees are
names, so renaming a user renames them there too.
"""

from __future__ import annotations

from collections.abc import Iterable

from catalog.lake import Cursor
from catalog.names import system_table
from catalog.users import Grant, Securable, User

_OWNED = ("databases", "schemas", "relations", "functions")


def load_users(cursor: Cursor) -> dict[str, User]:
    rows = cursor.execute(
        "SELECT id, name, is_super, create_db, create_user, can_login, verifier "
        f"FROM {system_table('users')} ORDER BY id"
    ).fetchall()
    return {row[1]: User(*row) for row in rows}


def load_grants(cursor: Cursor) -> frozenset[Grant]:
    rows = cursor.execute(
        f"SELECT object_id, grantee, privilege, grantor, is_grantable FROM {system_table('grants')}"
    ).fetchall()
    return frozenset(Grant(*row) for row in rows)


def put_user(cursor: Cursor, user: User) -> None:
    """Store a user in the place of the one with the same id, if there is one; a new name goes everywhere."""
    row = cursor.execute(f"SELECT name FROM {system_table('users')} WHERE id = ?", [user.id]).fetchone()
    if row is not None and row[0] != user.name:
        _rename(cursor, row[0], user.name)
    cursor.execute(f"DELETE FROM {system_table('users')} WHERE id = ?", [user.id])
    cursor.execute(
        f"INSERT INTO {system_table('users')} VALUES (?, ?, ?, ?, ?, ?, ?)",
        [user.id, user.name, user.is_super, user.create_db, user.create_user, user.can_login, user.verifier],
    )


def _rename(cursor: Cursor, old: str, new: str) -> None:
    columns = [*((table, "owner") for table in _OWNED), ("grants", "grantee"), ("grants", "grantor")]
    for table, column in columns:
        cursor.execute(f"UPDATE {system_table(table)} SET {column} = ? WHERE {column} = ?", [new, old])


def drop_user(cursor: Cursor, user: User) -> None:
    """Remove a user, who owns nothing and holds no grants."""
    cursor.execute(f"DELETE FROM {system_table('users')} WHERE id = ?", [user.id])


def put_grants(cursor: Cursor, removed: Iterable[Grant], added: Iterable[Grant]) -> None:
    """Take grants away, then add others. Where a privilege is granted again, `removed` has the old grant."""
    for grant in removed:
        cursor.execute(
            f"DELETE FROM {system_table('grants')} "
            "WHERE object_id = ? AND grantee = ? AND privilege = ? AND grantor = ?",
            [grant.object_id, grant.grantee, grant.privilege, grant.grantor],
        )
    for grant in added:
        cursor.execute(
            f"INSERT INTO {system_table('grants')} VALUES (?, ?, ?, ?, ?)",
            [grant.object_id, grant.grantee, grant.privilege, grant.grantor, grant.is_grantable],
        )


def move_grants(cursor: Cursor, thing: Securable, owner: str) -> None:
    """What the owner of a thing has granted its new owner grants; what that one held before it needs no more."""
    grants = system_table("grants")
    cursor.execute(f"DELETE FROM {grants} WHERE object_id = ? AND grantee = ?", [thing.id, owner])
    cursor.execute(
        f"UPDATE {grants} SET grantor = ? WHERE object_id = ? AND grantor = ?", [owner, thing.id, thing.owner]
    )
    # Of what both had granted alike there would be two rows.
    kept = cursor.execute(
        f"SELECT grantee, privilege, grantor, bool_or(is_grantable) FROM {grants} WHERE object_id = ? GROUP BY ALL",
        [thing.id],
    ).fetchall()
    cursor.execute(f"DELETE FROM {grants} WHERE object_id = ?", [thing.id])
    put_grants(cursor, (), (Grant(thing.id, *row) for row in kept))


def forget_grants(cursor: Cursor, object_ids: Iterable[int]) -> None:
    """What the grants were on has been dropped."""
    listed = ", ".join(map(str, object_ids))
    if listed:
        cursor.execute(f"DELETE FROM {system_table('grants')} WHERE object_id IN ({listed})")
