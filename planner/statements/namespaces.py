"""Databases and schemas."""

from __future__ import annotations

from dataclasses import dataclass

from sparkwave.planner.statements.relation_names import Name


@dataclass(frozen=True)
class DatabaseParameter:
    """A system parameter that a database has a value of its own for; None is the system's value."""

    name: str
    value: str | None
    position: int


@dataclass(frozen=True)
class CreateDatabase:
    name: str
    group: str | None
    if_not_exists: bool
    position: int
    owner: str | None = None
    parameters: tuple[DatabaseParameter, ...] = ()


@dataclass(frozen=True)
class DropDatabase:
    name: str
    if_exists: bool
    position: int


@dataclass(frozen=True)
class AlterDatabase:
    """ALTER DATABASE … SET RESOURCE_GROUP; None is the default one."""

    name: str
    group: str | None
    position: int


@dataclass(frozen=True)
class AlterDatabaseParameter:
    name: str
    position: int
    parameter: DatabaseParameter


@dataclass(frozen=True)
class RenameDatabase:
    name: str
    new_name: str
    position: int
    new_position: int


@dataclass(frozen=True)
class CreateSchema:
    """CREATE SCHEMA. A database before the schema's name is in `name.schema`. `owner` has its position."""

    name: Name
    owner: tuple[str, int] | None
    if_not_exists: bool


@dataclass(frozen=True)
class DropSchema:
    names: tuple[Name, ...]
    if_exists: bool
    cascade: bool


@dataclass(frozen=True)
class RenameSchema:
    name: Name
    new_name: str
    new_position: int
