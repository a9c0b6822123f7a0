"""Reads and writes the relations `users`, `memberships`, `grants` and `default_grants`.

Writing functions take the cursor of an open lake transaction, as the methods of `catalog.stores.store` do. Owners and
grantees are stored by name, so to rename a user changes those names too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.names import system_table
from sparkwave.catalog.users import DefaultGrant, Grant, Membership, Securable, User, roles_of

_OWNED = ("databases", "schemas", "relations", "functions", "types", "secrets", "connections")
_NAMED = (
    ("grants", "grantee"), ("grants", "grantor"),
    ("memberships", "role"), ("memberships", "member"), ("memberships", "grantor"),
    ("default_grants", "role"), ("default_grants", "grantee"),
)  # fmt: skip


# Functions that load take SQL of their relation's present rows.


def load_users(cursor: Cursor, stored: str, memberships: frozenset[Membership]) -> dict[str, User]:
    rows = cursor.execute(
        f"SELECT id, name, is_super, create_db, create_user, can_login, verifier, valid_until FROM {stored} ORDER BY id"
    ).fetchall()
    return {row[1]: replace(User(*row), roles=roles_of(row[1], memberships)) for row in rows}


def load_memberships(cursor: Cursor, stored: str) -> frozenset[Membership]:
    rows = cursor.execute(f"SELECT role, member, grantor, is_admin FROM {stored}").fetchall()
    return frozenset(Membership(*row) for row in rows)


def load_grants(cursor: Cursor, stored: str) -> frozenset[Grant]:
    rows = cursor.execute(
        f"SELECT object_id, grantee, privilege, grantor, is_grantable, column_name FROM {stored}"
    ).fetchall()
    return frozenset(Grant(*row) for row in rows)


def load_default_grants(cursor: Cursor, stored: str) -> frozenset[DefaultGrant]:
    rows = cursor.execute(
        f"SELECT database_id, role, schema_id, kind, grantee, privilege, is_grantable, is_revoked FROM {stored}"
    ).fetchall()
    return frozenset(DefaultGrant(*row) for row in rows)


def put_default_grants(cursor: Cursor, removed: Iterable[DefaultGrant], added: Iterable[DefaultGrant]) -> None:
    """Remove privileges on objects to come, then add others."""
    table = system_table("default_grants")
    for each in removed:
        cursor.execute(
            f"DELETE FROM {table} WHERE database_id = ? AND role = ? AND schema_id IS NOT DISTINCT FROM ? "
            "AND kind = ? AND grantee = ? AND privilege = ?",
            [each.database_id, each.role, each.schema_id, each.kind, each.grantee, each.privilege],
        )
    for each in added:
        values = [
            each.database_id, each.role, each.schema_id, each.kind, each.grantee, each.privilege, each.is_grantable,
            each.is_revoked,
        ]  # fmt: skip
        cursor.execute(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)


def put_user(cursor: Cursor, user: User) -> None:
    """Store a user, replacing the user with the same id; a new name is stored everywhere."""
    row = cursor.execute(f"SELECT name FROM {system_table('users')} WHERE id = ?", [user.id]).fetchone()
    if row is not None and row[0] != user.name:
        _rename(cursor, row[0], user.name)
    cursor.execute(f"DELETE FROM {system_table('users')} WHERE id = ?", [user.id])
    cursor.execute(
        f"INSERT INTO {system_table('users')} VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [user.id, user.name, user.is_super, user.create_db, user.create_user, user.can_login, user.verifier,
         user.valid_until],
    )  # fmt: skip


def _rename(cursor: Cursor, old: str, new: str) -> None:
    for table, column in [*((table, "owner") for table in _OWNED), *_NAMED]:
        cursor.execute(f"UPDATE {system_table(table)} SET {column} = ? WHERE {column} = ?", [new, old])


def drop_user(cursor: Cursor, user: User) -> None:
    """Remove a user, who owns nothing and holds no grants, and all memberships of and in the user."""
    cursor.execute(f"DELETE FROM {system_table('users')} WHERE id = ?", [user.id])
    cursor.execute(f"DELETE FROM {system_table('memberships')} WHERE ? IN (role, member)", [user.name])


def put_memberships(cursor: Cursor, removed: Iterable[Membership], added: Iterable[Membership]) -> None:
    """Remove memberships, then adds others."""
    for each in removed:
        cursor.execute(
            f"DELETE FROM {system_table('memberships')} WHERE role = ? AND member = ?", [each.role, each.member]
        )
    for each in added:
        values = [each.role, each.member, each.grantor, each.is_admin]
        cursor.execute(f"INSERT INTO {system_table('memberships')} VALUES (?, ?, ?, ?)", values)


def put_grants(cursor: Cursor, removed: Iterable[Grant], added: Iterable[Grant]) -> None:
    """Remove grants, then adds others. To change a grant, `removed` has the old one."""
    for grant in removed:
        cursor.execute(
            f"DELETE FROM {system_table('grants')} "
            "WHERE object_id = ? AND grantee = ? AND privilege = ? AND grantor = ? "
            "AND column_name IS NOT DISTINCT FROM ?",
            [grant.object_id, grant.grantee, grant.privilege, grant.grantor, grant.column],
        )
    for grant in added:
        cursor.execute(
            f"INSERT INTO {system_table('grants')} VALUES (?, ?, ?, ?, ?, ?)",
            [grant.object_id, grant.grantee, grant.privilege, grant.grantor, grant.is_grantable, grant.column],
        )


def move_grants(cursor: Cursor, thing: Securable, owner: str) -> None:
    """Make a new owner the grantor of the old owner's grants, and removes the new owner's own privileges."""
    grants = system_table("grants")
    cursor.execute(f"DELETE FROM {grants} WHERE object_id = ? AND grantee = ?", [thing.id, owner])
    cursor.execute(
        f"UPDATE {grants} SET grantor = ? WHERE object_id = ? AND grantor = ?", [owner, thing.id, thing.owner]
    )
    # Merge grants that both owners had given, which are equal now.
    kept = cursor.execute(
        "SELECT grantee, privilege, grantor, bool_or(is_grantable), column_name "
        f"FROM {grants} WHERE object_id = ? GROUP BY ALL",
        [thing.id],
    ).fetchall()
    cursor.execute(f"DELETE FROM {grants} WHERE object_id = ?", [thing.id])
    put_grants(cursor, (), (Grant(thing.id, *row) for row in kept))


def move_column_grants(cursor: Cursor, object_id: int, column: str, name: str | None) -> None:
    """Move the grants on a column to its new name, or removes them for None."""
    where = "WHERE object_id = ? AND column_name = ?"
    if name is None:
        cursor.execute(f"DELETE FROM {system_table('grants')} {where}", [object_id, column])
    else:
        cursor.execute(f"UPDATE {system_table('grants')} SET column_name = ? {where}", [name, object_id, column])


def forget_grants(cursor: Cursor, object_ids: Iterable[int]) -> None:
    """Remove the grants on dropped objects."""
    listed = ", ".join(map(str, object_ids))
    if listed:
        cursor.execute(f"DELETE FROM {system_table('grants')} WHERE object_id IN ({listed})")
